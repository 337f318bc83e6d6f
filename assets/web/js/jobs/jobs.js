// The Jobs page: refreshes the list of jobs; starts, cancels and resumes them.
import { AWAY, failure, patiently, say } from "../shared/connection.js";
import { html, onChange } from "../shared/dom.js";
import { CardNotice } from "../shared/live_part.js";

const EVERY = 2000;
const shown = new Map();
let asking = null;
let lost = false;

const room = () => document.querySelector("#jobs");

const notice = new CardNotice(room);

// Unchanged parts stay, as does a form that is being filled in; a button keeps the focus.
const put = (slot, part) => {
  const text = part?.outerHTML ?? "";
  if (text === (shown.get(slot) ?? slot.firstElementChild?.outerHTML ?? "")) return;
  const active = slot.contains(document.activeElement) ? document.activeElement : null;
  if (active?.closest("form")) return;
  shown.set(slot, text);
  slot.replaceChildren(...(part ? [part] : []));
  const job = active?.dataset.post?.replace(/\w+$/, "");
  if (job) slot.querySelector(`[data-post^="${job}"]`)?.focus({ preventScroll: true });
};

const show = (text) => {
  const content = html(text);
  for (const name of ["start", "list"]) put(room().querySelector(`.${name}`), content.querySelector(`.${name} > *`));
  if (notice.message) notice.put();
};

const refresh = async () => {
  try {
    const response = await fetch(`/jobs/list${location.search}`);
    if (response.ok) show(await response.text());
    if (!response.ok) say(await failure(response));
    else if (lost) say("");
    lost = !response.ok;
  } catch {
    lost = true;
    say(AWAY);
  } finally {
    asking = null;
  }
};

const ask = () => {
  if (!document.hidden) asking ??= refresh();
  return asking;
};

const post = async (button, url, values) => {
  const headers = { "content-type": "application/json" };
  const tell = (message) => notice.tell(button, message);
  const response = await patiently(url, { method: "POST", headers, body: JSON.stringify(values) }, tell);
  tell(response.ok ? "" : await failure(response));
  // A list that was asked for before may not have it yet.
  await asking;
  await ask();
};

// A name with a point is a field of an object, which holds numbers and lists.
const valuesOf = (form) => {
  const data = new FormData(form);
  const values = {};
  for (const name of new Set(data.keys())) {
    const [outer, inner] = name.split(".");
    const number = form.elements[name].type === "number";
    if (inner) (values[outer] ??= {})[inner] = number ? Number(data.get(name)) : data.getAll(name);
    else values[name] = data.get(name);
  }
  return values;
};

// The form may be on a page that has nothing to show before the job is done.
const lead = async (_, url, values) => {
  const headers = { "content-type": "application/json" };
  const response = await patiently(url, { method: "POST", headers, body: JSON.stringify(values) });
  if (response.ok) location.assign("/jobs");
  else say(await failure(response));
};

document.addEventListener("submit", (event) => {
  const form = event.target.closest("#jobs form[data-post], form[data-leads]");
  if (!form) return;
  event.preventDefault();
  // Not `form.dataset`, which is the field of that name.
  const start = form.hasAttribute("data-leads") ? lead : post;
  start(form, form.getAttribute("data-post"), valuesOf(form));
});

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("#jobs button[data-post]");
  if (button) post(button, button.dataset.post, {});
});

document.addEventListener("changed", () => room() && ask());

let started = false;
const start = () => {
  if (started || !room()) return;
  started = true;
  ask();
  setInterval(ask, EVERY);
  document.addEventListener("visibilitychange", ask);
};

// The page may have been drawn before this script was loaded.
start();
onChange(start);
