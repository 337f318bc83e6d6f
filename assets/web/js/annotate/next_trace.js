// From one trace to the next without loading the page: the content is asked for, and takes the place of what is there.
import { patiently, say } from "../shared/connection.js";
import { html } from "../shared/dom.js";
import { press } from "../shared/keys.js";
import { PART } from "./outbox.js";

// Milliseconds after which a key that was pressed meanwhile is not meant any more.
const STALE = 2000;
const listeners = [];
// The keys pressed since the next content was asked for: they are meant for it.
let kept = null;
let isTurning = false;

const place = () => document.querySelector("main .page");

/** Call `listener` with the section of the page whenever it is another one. */
export const onTurn = (listener) => listeners.push(listener);

const show = (text, url) => {
  place().replaceChildren(html(text));
  const slot = place().querySelector("[data-slot]")?.dataset.slot;
  history.replaceState(null, "", slot ? `/annotate/label?slot=${slot}` : url);
  const heading = place().querySelector("h1");
  document.title = `${heading.textContent} · StepSight`;
  window.scrollTo({ top: 0 });
  // Who hears the page hears what it is now; on a trace to label the step is gone to instead.
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  for (const listener of listeners) listener();
};

/** From now on keys are meant for what comes next. */
export const keepKeys = () => (kept ??= []);

/** Do what was pressed meanwhile: on what came, or on what is there where nothing did. */
export const releaseKeys = () => {
  const events = kept ?? [];
  kept = null;
  const since = performance.now() - STALE;
  // A key that is held down was meant for what was there.
  for (const event of events) if (!event.repeat && event.timeStamp > since) press(event);
};

const ask = async (url) => {
  const response = await patiently(url, { headers: PART });
  const text = response.ok ? await response.text().catch(() => null) : null;
  say("");
  return text;
};

/**
 * Go to an address of the labelling pages, whose content may be there already. What cannot be shown in place is
 * loaded, with what is wrong with it.
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
