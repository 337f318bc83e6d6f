// The pages of disputes: their forms are sent without leaving the page, so that nothing typed is lost.
import { showNotice } from "./dom.js";
import { failure } from "./away.js";
import { AWAY, post } from "./outbox.js";

const busy = new WeakSet();

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
  const response = await post(form.getAttribute("data-post"), read(form, button));
  if (response?.ok) {
    const { go } = await response.json();
    if (go === location.pathname) location.reload();
    else location.assign(go);
    return;
  }
  showNotice(form.querySelector(".told"), response ? await failure(response) : AWAY);
  busy.delete(form);
};

document.addEventListener("submit", (event) => {
  const form = event.target.closest("#disputes form[data-post]");
  if (!form) return;
  event.preventDefault();
  send(form, event.submitter);
});
