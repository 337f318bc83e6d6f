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
 * Register a key. `key` is a value of `KeyboardEvent.key`, or a list of them; `label` describes its effect in a few
 * words; `when` tells whether it is active, by default always; only active keys are listed. `run` carries it out; an
 * entry without `run` is only listed, for a key that the browser or a control of the page handles. `shown` is listed
 * instead of the keys. With `everywhere`, the key also works while a link or button has the focus, except Enter and
 * Space.
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

/** Carry out the action of a key. */
export const press = (event) => {
  if (!isOurs(event)) return;
  const found = entries.find((entry) => entry.run && entry.keys.includes(event.key) && isLeft(event, entry) && entry.when());
  if (!found) return;
  event.preventDefault();
  found.run(event);
};

// On a page that records early input, `early_input.js` adds the listener.
if (!window.early) document.addEventListener("keydown", press);

const line = ({ shown, label }) => [
  element("dt", {}, ...shown.map((key) => element("kbd", {}, NAMES[key] ?? key))),
  element("dd", {}, label),
];

const listed = () => element("dl", {}, ...entries.filter((entry) => entry.when()).flatMap(line));

/** The keys that give labels on the page of a section, as pairs with their labels; "" is none. */
export const labelKeys = (section) => JSON.parse(section?.dataset.labelKeys ?? "[]");

// Open the list of active keys.
const showKeys = () => {
  document.querySelector("dialog.keys")?.remove();
  const close = element("form", { method: "dialog" }, element("button", { type: "submit" }, "Close"));
  const title = element("h2", { id: "keys-title" }, "Keys of this page");
  const dialog = element("dialog", { class: "keys", "aria-labelledby": "keys-title" }, title, listed(), close);
  // A click beside the list hits the dialog's backdrop.
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("keydown", (event) => {
    if (event.key !== "?") return;
    // Otherwise the same key press would bubble up and open the list again.
    event.preventDefault();
    dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
};

document.addEventListener("click", (event) => event.target.closest?.("button.keys-button") && showKeys());
register({ key: "?", label: "list the keys of this page", run: showKeys });
