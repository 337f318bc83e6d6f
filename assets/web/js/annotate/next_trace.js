// Moving from one trace to the next without loading the page: only the content is requested and replaced.
import { patiently, say } from "../shared/connection.js";
import { html } from "../shared/dom.js";
import { press } from "../shared/keys.js";
import { PART } from "./outbox.js";

// Milliseconds after which a recorded key no longer counts.
const STALE = 2000;
const listeners = [];
// The keys pressed since the next content was requested; they are meant for that content.
let kept = null;
let isTurning = false;

const place = () => document.querySelector("main .page");

/** Call `listener` with the section of the page whenever it is a new one. */
export const onTurn = (listener) => listeners.push(listener);

const show = (text, url) => {
  place().replaceChildren(html(text));
  const slot = place().querySelector("[data-slot]")?.dataset.slot;
  history.replaceState(null, "", slot ? `/annotate/label?slot=${slot}` : url);
  const heading = place().querySelector("h1");
  document.title = `${heading.textContent} · StepSight`;
  window.scrollTo({ top: 0 });
  // Screen readers announce the new heading; on a trace to label, the focus goes to a step instead.
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  for (const listener of listeners) listener();
};

/** From now on, record keys for the next content. */
export const keepKeys = () => (kept ??= []);

/** Carry out the recorded keys, on the new content or, if there is none, on the current one. */
export const releaseKeys = () => {
  const events = kept ?? [];
  kept = null;
  const since = performance.now() - STALE;
  // A key that is held down was meant for the previous content.
  for (const event of events) if (!event.repeat && event.timeStamp > since) press(event);
};

const ask = async (url) => {
  const response = await patiently(url, { headers: PART });
  const text = response.ok ? await response.text().catch(() => null) : null;
  say("");
  return text;
};

/**
 * Go to an address of the labelling pages, whose content may already be known. If it cannot be shown in place, the page is
 * loaded, with the error message.
 */
export const turnTo = async (url, content = null) => {
  if (isTurning) return;
  isTurning = true;
  keepKeys();
  const text = content ?? (await ask(url));
  isTurning = false;
  if (text === null) return location.replace(url);
  show(text, url);
  releaseKeys();
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
