// Hints explain a word, next to it, while a pointer, the focus or a finger is on it. Each text is in the page once, in a
// popover (`terms.html`) that elements name with `data-hint`. Without this script, pressing a term shows its hint in the middle
// of the window.
import { onChange } from "./dom.js";
import { readKey } from "./keys.js";

// Milliseconds that a pointer must rest before a hint appears, and that it has to move to the hint.
const REST = 200;
// Pixels between the hint and the word, and between the hint and the edge of the window.
const GAP = 6;
const EDGE = 8;

let term = null;
let hint = null;
let timer = 0;

const termOf = (target) => target.closest?.("[data-hint]") ?? null;

// Above the word, since people continue reading below it; below the word if there is no room.
const place = () => {
  const at = term.getBoundingClientRect();
  const { width, height } = hint.getBoundingClientRect();
  const left = Math.max(EDGE, Math.min(at.left, document.documentElement.clientWidth - width - EDGE));
  const above = at.top - height - GAP;
  hint.style.inset = `${above < EDGE ? at.bottom + GAP : above}px auto auto ${left}px`;
};

const hide = () => {
  clearTimeout(timer);
  const old = hint;
  [term, hint] = [null, null];
  if (old?.matches(":popover-open")) old.hidePopover();
};

const show = (next) => {
  clearTimeout(timer);
  if (next !== term) hide();
  const found = document.getElementById(`hint-${next.dataset.hint}`);
  if (!found?.showPopover) return;
  [term, hint] = [next, found];
  hint.style.margin = 0;
  if (!hint.matches(":popover-open")) hint.showPopover({ source: term });
  place();
};

const later = (run) => {
  clearTimeout(timer);
  timer = setTimeout(run, REST);
};

const hasFocus = () => term?.matches(":focus, :has(:focus)");

document.addEventListener("pointerover", ({ target, pointerType }) => {
  if (pointerType === "touch") return;
  const next = termOf(target);
  if (next && next !== term) later(() => next.isConnected && show(next));
  else if (next || hint?.contains(target)) clearTimeout(timer);
  else if (term && !hasFocus()) later(hide);
  else clearTimeout(timer);
});

document.addEventListener("focusin", ({ target }) => {
  const next = termOf(target);
  if (next) show(next);
  else hide();
});
document.addEventListener("focusout", ({ target }) => term?.contains(target) && hide());
// Escape, or a press elsewhere.
document.addEventListener("beforetoggle", ({ target, newState }) => {
  if (target === hint && newState === "closed") [term, hint] = [null, null];
}, true);
// Safari does not focus a button that is pressed.
document.addEventListener("click", ({ target }) => termOf(target) && show(termOf(target)));

addEventListener("scroll", () => term && place(), { capture: true, passive: true });
addEventListener("resize", () => term && place());
onChange(() => term && !term.isConnected && hide());

// The content of details is scrolled into view when they are opened.
document.addEventListener("click", ({ target }) => {
  const details = target.closest?.("summary")?.parentElement;
  if (!details) return;
  setTimeout(() => {
    if (!details.open) return;
    details.lastElementChild.scrollIntoView({ block: "nearest" });
    details.firstElementChild.scrollIntoView({ block: "nearest" });
  });
});

// Details that open over the page are closed by Escape and by a press elsewhere. Opening one closes the others, since they
// share a name.
const popup = () => document.querySelector("details[name=popup][open]");

document.addEventListener("pointerdown", ({ target }) => {
  const open = popup();
  if (open && !open.contains(target)) open.open = false;
});
document.addEventListener("keydown", (event) => {
  const open = popup();
  if (readKey(event) !== "Escape" || event.defaultPrevented || !open || hint) return;
  event.preventDefault();
  open.open = false;
  open.querySelector("summary").focus({ preventScroll: true });
});
