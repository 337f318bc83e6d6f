// The pages around labelling: campaigns, their forms, a submitted trace; and what an earlier page could not send.
import { register } from "./keys.js";
import { element, showNotice } from "./dom.js";
import { failure } from "./away.js";
import { turnTo } from "./turns.js";
import { AWAY, freshKey, keptSlots, Outbox, post } from "./outbox.js";

const page = () => document.querySelector("#relabel, #review, #labelling");

const show = (message, ...controls) => showNotice(page().querySelector(".told"), message, ...controls);

const request = async (url, values) => {
  const response = await post(url, values);
  if (response?.ok) return response.json();
  show(response ? await failure(response) : AWAY);
  return null;
};

// What was filled in stays where the server refuses it.
const send = async (url, values, button) => {
  button.disabled = true;
  const answer = await request(url, values);
  button.disabled = false;
  if (answer) location.assign(answer.go);
};

// Boxes stand for the list of those that are ticked.
const read = (form) => {
  const data = new FormData(form);
  const values = Object.fromEntries(data);
  for (const { name } of form.querySelectorAll("input[type=checkbox]")) values[name] = data.getAll(name);
  return values;
};

const reopen = async (button) => {
  const event = { kind: "reopen", key: freshKey(), guideline: Number(button.dataset.guideline) };
  if (await request(button.dataset.reopen, event)) turnTo(location.href);
};

// Events of a page that was closed before they were stored.
const sendRest = (person, slot) => {
  const rest = new Outbox(person, slot, {
    answered: () => {},
    refused: async (event, status, message) => {
      const open = element("a", { href: `/relabel/label?slot=${slot}` }, "Open it");
      const assignment = await fetch(`/relabel/slots/${slot}`).catch(() => null);
      if (assignment?.ok) return show(`Your labels of another trace are not stored yet: ${message}`, open);
      if (!assignment || assignment.status >= 500 || assignment.status === 401) return;
      rest.clear();
      show(`Your last labels of another trace could not be stored: ${message}`);
    },
  });
  rest.send();
};

const isPlain = (event) => !(event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

document.addEventListener("submit", (event) => {
  // A field may be called dataset, and would stand for the form's own.
  const url = page()?.contains(event.target) && event.target.getAttribute("data-post");
  if (!url) return;
  event.preventDefault();
  send(url, read(event.target), event.submitter);
});

document.addEventListener("click", (event) => {
  if (!page()?.contains(event.target)) return;
  const button = event.target.closest("button");
  if (button?.dataset.post) send(button.dataset.post, {}, button);
  if (button?.dataset.reopen) reopen(button);
  const link = event.target.closest("a[data-turn]");
  if (!link || !isPlain(event)) return;
  event.preventDefault();
  turnTo(link.href);
});

// The page to label on sends its own.
const sendOthers = () => {
  const { person, slot } = page().dataset;
  for (const other of keptSlots(person)) if (page().id !== "labelling" || other !== slot) sendRest(person, other);
};

const next = () => document.querySelector("#review a.next");
register({ key: ["n", "Enter"], label: "next trace", when: () => next() !== null, run: () => next().click() });
if (page()) sendOthers();
// A page that comes back from the browser's memory shows what was.
window.addEventListener("pageshow", (event) => event.persisted && page() && location.reload());
