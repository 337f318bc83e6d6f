// The keys of a page: pages register theirs here, and `?` lists them. Other listeners read keys with `readKey`.
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
const MODIFIERS = ["Shift", "Control", "Alt", "AltGraph", "Meta", "OS", "CapsLock"];

const isDigit = (character) => /\p{Nd}/u.test(character);

// The digits of a script follow each other, from its zero on.
const digit = (character) => {
  const code = character.codePointAt(0);
  let zero = code;
  while (isDigit(String.fromCodePoint(zero - 1))) zero--;
  return String(code - zero);
};

const isForeign = (character) => /[\p{L}\p{M}]/u.test(character) && !/[\p{Script=Latin}\p{Script=Inherited}\p{Script=Common}]/u.test(character);

// What a key enters, in ASCII where possible: full-width characters and the digits of all scripts are converted, and a
// non-Latin letter is replaced by what is in its place on a Latin keyboard.
const inAscii = (entered, { code, shiftKey }) => {
  const character = /[\u3000\uff01-\uff5e]/.test(entered) ? entered.normalize("NFKC") : entered;
  if (isDigit(character)) return digit(character);
  if (character === "؟") return "?";
  if (!isForeign(character)) return character;
  return code.match(shiftKey ? /^Key(.)$/ : /^(?:Key|Digit)(.)$/)?.[1] ?? character;
};

/**
 * The key of a keyboard event, by which all of the page's keys are named: a value of `KeyboardEvent.key`, after `Ctrl+` (Meta
 * too) and `Alt+` (AltGr too) and, unless it enters a character other than Space, `Shift+`. A letter is a capital one by
 * Shift, whatever Caps Lock says. "" for a key that belongs to an input method, and for a modifier alone.
 */
export const readKey = (event) => {
  // Safari ends a composition before it reports the Enter that ended it, with the code of an input method.
  if (event.isComposing || event.keyCode === 229) return "";
  // A browser that fills in a form sends events without a key.
  if (!event.key || MODIFIERS.includes(event.key)) return "";
  const isNamed = event.key === " " || [...event.key].length > 1;
  const prefixes = [
    (event.ctrlKey || event.metaKey) && "Ctrl+",
    (event.altKey || event.getModifierState("AltGraph")) && "Alt+",
    isNamed && event.shiftKey && "Shift+",
  ];
  const character = isNamed ? event.key : inAscii(event.key, event);
  const key = isNamed ? character : event.shiftKey ? character.toUpperCase() : character.toLowerCase();
  return [...prefixes, key].filter(Boolean).join("");
};

/**
 * Register a key. `key` is one that `readKey` gives, or a list of them; `label` describes its effect in a few words; `when`
 * tells whether it is active, by default always; only active keys are listed. `run` carries it out, with the key and the
 * element that has the focus; an entry without `run` is only listed, for a key that the browser or a control of the page
 * handles. `shown` is listed instead of the keys.
 *
 * A key that is held down acts once, unless it `repeats`, as those do that only move. It does not act in a field that is
 * typed into, nor, unless it enters a character, on a link or button; with `everywhere` it also works there, except Enter
 * and Space. With `within`, a selector, it works on these elements alone, whatever they are.
 */
export const register = ({ key, label, when = () => true, run = null, shown = key, repeats = false, everywhere = false, within = null }) =>
  entries.push({ keys: [key].flat(), shown: [shown].flat(), label, when, run, repeats, everywhere, within });

const MANY_LINES = "textarea, [contenteditable]:not([contenteditable=false])";
const isTyping = (target) => target.closest?.(`input:not([type=checkbox], [type=radio]), select, ${MANY_LINES}`);

const isMeant = (target, key, { everywhere, within }) => {
  if (within) return target.matches?.(within);
  if (isTyping(target)) return false;
  if (!target.closest?.(ACTIVE)) return true;
  // Enter and Space belong to the link or button that has the focus, arrows to a slider, a tab or a choice.
  return key !== "Enter" && key !== " " && (key.length === 1 || everywhere);
};

// The key that is held down and has acted.
let held = null;

/** Carry out the action of a key. */
export const press = (event) => {
  if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
  const key = readKey(event);
  const { target } = event;
  const pressed = entries.find((entry) => entry.run && entry.keys.includes(key) && isMeant(target, key, entry) && entry.when());
  if (!pressed) return;
  event.preventDefault();
  held = pressed.repeats ? null : event.code;
  if (!event.repeat || pressed.repeats) pressed.run(key, target);
};

// A key that is held down types nothing into the field to which it has led, and a held Enter does not press a button or submit
// a form again.
const stopHeld = (event) => {
  if (!event.repeat) held = null;
  else if (event.code === held || (event.key === "Enter" && !event.target.closest?.(MANY_LINES))) event.preventDefault();
};

window.addEventListener("keydown", stopHeld, true);
// On a page that records early input, `early_input.js` adds the listener.
if (!window.early) document.addEventListener("keydown", press);

const nameOf = (key) => key.replace(/[^+]+$/, (last) => NAMES[last] ?? last);

const line = ({ shown, label }) => [
  element("dt", {}, ...shown.map((key) => element("kbd", {}, nameOf(key)))),
  element("dd", {}, label),
];

const listed = () => element("dl", {}, ...entries.filter((entry) => entry.when()).flatMap(line));

/** The keys that give labels on the page of a section, as pairs with their labels; "" means no label. */
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
    if (readKey(event) !== "?") return;
    // Otherwise the same key press would bubble up and open the list again.
    event.preventDefault();
    dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
};

document.addEventListener("click", (event) => event.target.closest?.("button.keys-button") && showKeys());
register({ key: "?", label: "list the keys of this page", run: showKeys });
