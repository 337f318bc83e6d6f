// From one trace to the next without loading the page: the content is asked for, and takes the place of what is there.
import { patiently, say } from "./away.js";
import { press } from "./keys.js";

const PART = { "stepsight-part": "1" };
const listeners = [];
// The keys pressed since the next content was asked for: they are meant for it.
let kept = null;

const place = () => document.querySelector("main .page");

/** Call `listener` with the section of the page whenever it is another one. */
export const onTurn = (listener) => listeners.push(listener);

const show = (html, url) => {
  const template = document.createElement("template");
  template.innerHTML = html;
  place().replaceChildren(template.content);
  const slot = place().querySelector("[data-slot]")?.dataset.slot;
  history.replaceState(null, "", slot ? `/relabel/label?slot=${slot}` : url);
  const heading = place().querySelector("h1");
  document.title = `${heading.textContent} · StepSight`;
  window.scrollTo({ top: 0 });
  // Who hears the page hears what it is now; on a trace to label the step is gone to instead.
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  for (const listener of listeners) listener();
};

const release = () => {
  const events = kept ?? [];
  kept = null;
  // A key that is held down was meant for what was there.
  for (const event of events) if (!event.repeat) press(event);
};

/** Go to an address of the labelling pages. What cannot be shown in place is loaded, with what is wrong with it. */
export const turnTo = async (url) => {
  if (kept) return;
  kept = [];
  const response = await patiently(url, { headers: PART });
  const html = response.ok ? await response.text().catch(() => null) : null;
  say("");
  if (html === null) return location.replace(url);
  show(html, url);
  release();
};

document.addEventListener(
  "keydown",
  (event) => {
    if (!kept) return;
    kept.push(event);
    event.stopImmediatePropagation();
  },
  true,
);
