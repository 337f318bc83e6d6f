// Formulas are rendered as they appear or, by the switch in the header, all shown as their source.
import { onChange } from "./dom.js";
import { quietly } from "./storage.js";

const KEPT = "stepsight.maths";
const OPTIONS = { throwOnError: true, trust: false, strict: "ignore", maxExpand: 500, maxSize: 20 };
// The source of a formula without its delimiters, as the span contained it at first.
const formulas = new WeakMap();

let raw = quietly(() => localStorage.getItem(KEPT)) === "source";

const showSource = (span) => {
  span.classList.add("source");
  span.textContent = span.dataset.source;
};

const render = (span) => {
  span.classList.remove("source");
  try {
    window.katex.render(formulas.get(span), span, { displayMode: "display" in span.dataset, ...OPTIONS });
  } catch {
    showSource(span);
  }
};

const draw = (span) => (raw || !window.katex ? showSource(span) : render(span));

/** Draw the formulas below `root` that are not drawn yet. */
export const drawMaths = (root = document) => {
  for (const span of root.querySelectorAll("span.math:not([data-done])")) {
    span.dataset.done = "1";
    formulas.set(span, span.textContent);
    // A formula runs from left to right, and says nothing about the direction of the text around it.
    span.dir = "ltr";
    draw(span);
  }
};

const press = () => {
  for (const button of document.querySelectorAll("button.maths-switch")) button.setAttribute("aria-pressed", raw);
};

// Flip every formula of the page between rendered and source, and remember it.
const flipMaths = () => {
  raw = !raw;
  quietly(() => localStorage.setItem(KEPT, raw ? "source" : "rendered"));
  press();
  for (const span of document.querySelectorAll("span.math[data-done]")) draw(span);
};

document.addEventListener("click", (event) => event.target.closest?.("button.maths-switch") && flipMaths());

onChange(() => {
  drawMaths();
  press();
});
drawMaths();
press();
