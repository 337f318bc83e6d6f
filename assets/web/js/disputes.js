// The pages of disputes: their forms are sent without leaving the page, so that nothing typed is lost.
import { made } from "./made.js";
import { failure } from "./outbox.js";

const AWAY = "The server does not answer. What you typed stays here; try again.";
const busy = new WeakSet();

const say = (form, message) => {
  const slot = form.querySelector(".told");
  slot.replaceChildren(...(message ? [made("div", { class: "notice", role: "alert" }, message)] : []));
};

// A new dispute is of a step of a trace; no choice is sent as null.
const read = (form, button) => {
  const fields = Object.fromEntries(new FormData(form, button));
  const { trace, step, digest } = form.dataset;
  if (trace === undefined) return fields;
  return { ...fields, proposed: fields.proposed || null, trace: Number(trace), step: Number(step), digest };
};

const send = async (form, button) => {
  if (busy.has(form)) return;
  busy.add(form);
  const options = { method: "POST", headers: { "content-type": "application/json" } };
  const body = JSON.stringify(read(form, button));
  const response = await fetch(form.getAttribute("data-post"), { ...options, body }).catch(() => null);
  if (response?.ok) {
    const { go } = await response.json();
    if (go === location.pathname) location.reload();
    else location.assign(go);
    return;
  }
  say(form, response ? await failure(response) : AWAY);
  busy.delete(form);
};

document.addEventListener("submit", (event) => {
  const form = event.target.closest("#disputes form[data-post]");
  if (!form) return;
  event.preventDefault();
  send(form, event.submitter);
});
