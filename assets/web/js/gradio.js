// A page that Gradio hosts: its script starts when the browser has nothing else to do, and what stands in the page
// moves into the interface as it is.
import { onChange } from "./changes.js";
import { element } from "./dom.js";

const start = ({ dataset: { script } }) => document.head.append(element("script", { type: "module", src: script }));

const whenIdle = window.requestIdleCallback ?? setTimeout;
const app = document.querySelector("gradio-app[data-script]");
if (app) addEventListener("load", () => whenIdle(() => start(app)));

// Nothing moves under a button, a key or a word that is half way through.
const held = new Set();
for (const [begin, end] of [["pointerdown", ["pointerup", "pointercancel"]], ["keydown", ["keyup"]], ["compositionstart", ["compositionend"]]]) {
  addEventListener(begin, () => held.add(begin), true);
  for (const name of end) addEventListener(name, () => setTimeout(() => held.delete(begin) && settle()), true);
}
addEventListener("blur", () => held.clear());

// Where a browser cannot move what has the focus, it is given back.
const move = (page, host) => {
  if (host.moveBefore) return host.moveBefore(page, null);
  const { activeElement: held } = document;
  const selected = [held?.selectionStart, held?.selectionEnd];
  host.append(page);
  held?.focus({ preventScroll: true });
  if (selected[0] != null) held.setSelectionRange(...selected);
};

const settle = () => {
  const host = app?.querySelector("#host");
  const page = document.querySelector(".plain > main > .page");
  if (!host || !page || held.size) return;
  const main = page.parentElement;
  app.classList.add("host");
  move(page, host);
  // The interface has a main of its own.
  main.remove();
};
onChange(settle);
