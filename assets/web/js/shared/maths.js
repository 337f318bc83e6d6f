// Formulas are rendered as they appear. One that cannot be rendered is shown as its source.
import { onChange } from "./dom.js";

const OPTIONS = { throwOnError: true, trust: false, strict: "ignore", maxExpand: 500, maxSize: 20 };
// The same formulas appear again with each result and its steps: a copy takes a tenth of the time.
const MOST = 500;
const drawn = new Map();

const typeset = (formula, displayMode) => {
  const key = `${displayMode} ${formula}`;
  if (!drawn.has(key)) {
    if (drawn.size === MOST) drawn.clear();
    const place = document.createElement("span");
    window.katex.render(formula, place, { displayMode, ...OPTIONS });
    drawn.set(key, place);
  }
  return drawn.get(key).cloneNode(true).childNodes;
};

const draw = (span) => {
  try {
    span.replaceChildren(...typeset(span.textContent, "display" in span.dataset));
  } catch {
    span.classList.add("source");
    span.textContent = span.dataset.source;
  }
};

// In a long solution with many formulas, those after the first ones wait until the page is shown and has time for them.
const AT_ONCE = 100;
// Milliseconds of drawing after which the page may do something else.
const SLICE = 12;
// Safari has no requestIdleCallback.
const soon = window.requestIdleCallback ?? setTimeout;
const waiting = [];
let timer = 0;

const drawWaiting = () => {
  const end = performance.now() + SLICE;
  while (waiting.length && performance.now() < end) {
    const span = waiting.shift();
    if ("waits" in span.dataset) begin(span);
  }
  timer = waiting.length ? soon(drawWaiting) : 0;
};

const begin = (span) => {
  delete span.dataset.waits;
  span.dataset.done = "1";
  draw(span);
};

/** Draw the formulas below `root` that are not drawn yet: all with `atOnce`, otherwise only the first of many. */
export const drawMaths = (root = document, atOnce = AT_ONCE) => {
  const spans = [...root.querySelectorAll("span.math:not([data-done])")];
  // A formula runs from left to right, whatever the direction of the text around it.
  for (const span of spans) span.dir = "ltr";
  spans.filter((span) => !("waits" in span.dataset) || atOnce === Infinity).slice(0, atOnce).forEach(begin);
  for (const span of spans) {
    if ("done" in span.dataset || "waits" in span.dataset) continue;
    span.dataset.waits = "";
    waiting.push(span);
  }
  if (waiting.length && !timer) timer = soon(drawWaiting);
};

window.addEventListener("beforeprint", () => drawMaths(document, Infinity));

onChange(() => drawMaths());
drawMaths();
