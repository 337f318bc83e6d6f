// The pages around labelling: campaigns, their forms, a submitted trace; and what an earlier page could not send.
import { register } from "./keys.js";
import { made } from "./made.js";
import { failure, Outbox } from "./outbox.js";
import { freshKey, keptSlots } from "./unsent.js";

const room = document.querySelector("#relabel, #review, #labelling");
const AWAY = "The server does not answer. Try again.";

const say = (message, ...controls) => {
  const notice = made("div", { class: "notice", role: "alert" }, message, ...controls);
  room.querySelector(".told").replaceChildren(...(message ? [notice] : []));
};

const post = async (url, values) => {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(values) }).catch(() => null);
  if (response?.ok) return response.json();
  say(response ? await failure(response) : AWAY);
  return null;
};

// What was filled in stays where the server refuses it.
const send = async (url, values, button) => {
  button.disabled = true;
  const answer = await post(url, values);
  button.disabled = false;
  if (answer) location.assign(answer.go);
};

const reopen = async (button) => {
  const act = { kind: "reopen", key: freshKey(), guideline: Number(button.dataset.guideline) };
  if (await post(button.dataset.reopen, act)) location.reload();
};

// Acts that were said on a page which was closed before they were stored.
const sendRest = (person, slot) => {
  const rest = new Outbox(person, slot, {
    answered: () => {},
    refused: async (act, status, message) => {
      const open = made("a", { href: `/relabel/label?slot=${slot}` }, "Open it");
      const found = await fetch(`/relabel/slots/${slot}`).catch(() => null);
      if (found?.ok) return say(`What you said of another trace is not stored yet: ${message} `, open);
      if (!found || found.status >= 500 || found.status === 401) return;
      rest.clear();
      say(`What you said last of another trace could not be stored: ${message}`);
    },
  });
  rest.send();
};

const begin = () => {
  room.addEventListener("submit", (event) => {
    // A field may be called dataset, and would stand for the form's own.
    const url = event.target.getAttribute("data-post");
    if (!url) return;
    event.preventDefault();
    send(url, Object.fromEntries(new FormData(event.target)), event.submitter);
  });
  room.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (button?.dataset.post) send(button.dataset.post, {}, button);
    if (button?.dataset.reopen) reopen(button);
  });
  const { person, slot } = room.dataset;
  // The page to label on sends its own.
  const others = keptSlots(person).filter((other) => room.id !== "labelling" || other !== Number(slot));
  for (const other of others) sendRest(person, other);
};

const next = () => document.querySelector("#review a.next");
register({ key: ["n", "Enter"], label: "next trace", when: () => next() !== null, run: () => next().click() });
if (room) begin();
// A page that comes back from the browser's memory shows what was.
window.addEventListener("pageshow", (event) => event.persisted && room && location.reload());
