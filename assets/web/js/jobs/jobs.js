// The Jobs page: refreshes the list of jobs; starts, cancels and resumes them.
import { AWAY, failure, patiently, say } from "../shared/connection.js";
import { html, onChange } from "../shared/dom.js";
import { remember, update } from "../live/in_place.js";
import { CardNotice } from "../live/live_part.js";

const EVERY = 2000;
const headers = { "content-type": "application/json" };
let asking = null;
let lost = false;

const room = () => document.querySelector("#jobs");

const notice = new CardNotice(room);

const show = (text) => {
  const content = html(text);
  for (const part of [".start", ".list"]) update(room().querySelector(part), content.querySelector(part));
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
  const tell = (message) => notice.tell(button, message);
  const response = await patiently(url, { method: "POST", headers, body: JSON.stringify(values) }, tell);
  tell(response.ok ? "" : await failure(response));
  // A list that was asked for before may not have it yet.
  await asking;
  await ask();
};

// A number left empty is left out.
const valuesOf = (form) => {
  const data = new FormData(form);
  const values = {};
  for (const name of data.keys()) {
    if (form.elements[name].type !== "number") values[name] = data.get(name);
    else if (data.get(name)) values[name] = Number(data.get(name));
  }
  return values;
};

// The form may be on a page that has nothing to show before the job is done.
const lead = async (_, url, values) => {
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
  for (const part of [".start", ".list"]) remember(room().querySelector(part));
  ask();
  setInterval(ask, EVERY);
  document.addEventListener("visibilitychange", ask);
};

// The page may have been drawn before this script was loaded.
start();
onChange(start);
