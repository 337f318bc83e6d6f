// The keys of a page: pages register theirs here, and `?` lists them.
import { element } from "./dom.js";

const entries = [];
const NAMES = {
  " ": "Space",
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  Escape: "Esc",
  PageUp: "Page Up",
  PageDown: "Page Down",
};
const ACTIVE = "a, button, summary, [type=radio], [role=button], [role=slider], [role=tab], [role=option]";

/**
 * Register a key. `key` is what `KeyboardEvent.key` says, or a list of such; `label` tells what it does, in few
 * words; `when` says whether it does so now (always, if left out), and only then is it listed; `run` does it. An
 * entry without `run` is only listed: for keys that the browser or a control of the page handles itself. `shown` is
 * what is listed in place of the keys. Where it is heard `everywhere`, also a link or button that has the focus leaves
 * it the key, but for Enter and Space.
 */
export const register = ({ key, label, when = () => true, run = null, shown = key, everywhere = false }) =>
  entries.push({ keys: [key].flat(), shown: [shown].flat(), label, when, run, everywhere });

const isTyping = (target) => target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]:not([contenteditable=false])");

// Enter and Space belong to the link or button that has the focus, arrows to a slider, a tab or a choice.
const isTaken = (event) => event.key !== "?" && event.key.length !== 1 && event.target.closest?.(ACTIVE);
const isLeft = (event, { everywhere }) => !isTaken(event) || (everywhere && event.key !== "Enter");
const isPressing = (event) => event.key === " " && event.target.closest?.(ACTIVE);

const isOurs = (event) =>
  !(event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) &&
  !(event.isComposing || event.keyCode === 229) &&
  !(isTyping(event.target) || isPressing(event) || document.querySelector("dialog[open]"));

/** Do what a key is registered for. */
export const press = (event) => {
  if (!isOurs(event)) return;
  const found = entries.find((entry) => entry.run && entry.keys.includes(event.key) && isLeft(event, entry) && entry.when());
  if (!found) return;
  event.preventDefault();
  found.run(event);
};

// Where a page keeps what is pressed early, `early.js` begins.
if (!window.early) document.addEventListener("keydown", press);

const line = ({ shown, label }) => [
  element("dt", {}, ...shown.map((key) => element("kbd", {}, NAMES[key] ?? key))),
  element("dd", {}, label),
];

const listed = () => element("dl", {}, ...entries.filter((entry) => entry.when()).flatMap(line));

/** The keys that give labels on the page of a section, as pairs with their labels; "" is none. */
export const labelKeys = (section) => JSON.parse(section?.dataset.labelKeys ?? "[]");

// Open the list of the keys that do something now.
const showKeys = () => {
  document.querySelector("dialog.keys")?.remove();
  const close = element("form", { method: "dialog" }, element("button", { type: "submit" }, "Close"));
  const title = element("h2", { id: "keys-title" }, "Keys of this page");
  const dialog = element("dialog", { class: "keys", "aria-labelledby": "keys-title" }, title, listed(), close);
  // A click beside the list is one on the dialog's own backdrop.
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("keydown", (event) => {
    if (event.key !== "?") return;
    // Or the same press, seen further out, would open the list again.
    event.preventDefault();
    dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
};

document.addEventListener("click", (event) => event.target.closest?.("button.keys-button") && showKeys());
register({ key: "?", label: "list the keys of this page", run: showKeys });
