// The list of steps on the Score page, which can be edited, split, merged, moved, deleted and inserted, with undo.
//
// The server draws it (`#preview ol.preview`) and finds the maths in it; `solution.js` holds the steps.
import { element, setText } from "../shared/dom.js";
import { readKey, register } from "../shared/keys.js";
import { canRedo, canUndo, changeSteps, isSame, onSteps, redo, solutionSteps, undo } from "./solution.js";

let chosen = -1;
let editing = false;
// True if a new step is being edited.
let inserting = false;
// The target of the focus once the next list is drawn.
let focus = null;
// The text areas of the edited step, which are kept when the list is redrawn.
let open = null;
// The steps after the last change here.
let own = null;

const preview = () => document.querySelector("#preview");
const items = () => [...preview().querySelectorAll("ol.preview > li:not(.new)")];
const status = (text) => setText(document.querySelector("#split-tools [data-status]"), text);

const button = (act, label, attributes = {}) =>
  element("button", { type: "button", class: "button", "data-act": act, ...attributes }, label);

const toolbar = () => {
  const count = solutionSteps().length;
  const last = chosen === count - 1;
  const off = (yes) => (yes ? { disabled: "" } : {});
  return element(
    "div",
    { class: "tools", role: "group", "aria-label": `Step ${chosen + 1}` },
    button("edit", "Edit or split"),
    button("merge", "Merge with next", off(last)),
    button("up", "Up", { "aria-label": "Move up", ...off(chosen === 0) }),
    button("down", "Down", { "aria-label": "Move down", ...off(last) }),
    button("insert", "Insert after"),
    button("delete", "Delete", off(count === 1)),
  );
};

const areas = () => {
  const parts = inserting ? [""] : solutionSteps()[chosen];
  return element(
    "div",
    { class: "edit" },
    ...parts.map((text, part) => {
      const name = parts.length > 1 ? `Text of sub-step ${chosen + 1}.${part + 1}` : `Text of step ${chosen + 1}`;
      const area = element("textarea", { dir: "auto", "aria-label": name, rows: Math.min(8, 2 + Math.floor(text.length / 60)) });
      area.value = text;
      return area;
    }),
    element(
      "div",
      { class: "tools" },
      button("save", "Done"),
      button("split", "Split at the cursor", inserting ? { disabled: "" } : {}),
      button("cancel", "Cancel"),
    ),
  );
};

// A new step gets a place for its text.
const placed = () => {
  if (!inserting) return items()[chosen];
  const item = element("li", { class: "new editing" });
  items()[chosen - 1]?.after(item);
  return item;
};

// Draw the tools of the chosen step, and restore the focus.
const dress = () => {
  for (const extra of preview().querySelectorAll("li.new, li > .tools, li > .edit")) extra.remove();
  items().forEach((item, i) => {
    const isChosen = i === chosen && !inserting;
    item.classList.toggle("chosen", isChosen);
    item.classList.toggle("editing", isChosen && editing);
    item.querySelector(".pick").setAttribute("aria-expanded", String(isChosen));
  });
  const item = chosen < 0 ? null : placed();
  if (!item) return;
  if (editing) open ??= areas();
  item.append(editing ? open : toolbar());
  if (!focus) return;
  const wanted = editing ? item.querySelector("textarea") : item.querySelector(`[data-act="${focus}"]:enabled`);
  (wanted ?? item.querySelector(".pick")).focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest" });
};

const history = () => {
  document.querySelector("#split-tools [data-history=undo]").disabled = !canUndo();
  document.querySelector("#split-tools [data-history=redo]").disabled = !canRedo();
};

const stop = () => ([editing, inserting, open] = [false, false, null]);

const hasFocus = () => preview().contains(document.activeElement);

// A list from the text or from a result is new; a list that was changed here is drawn as it was left.
const drawn = () => {
  if (own && isSame(own, solutionSteps())) return dress();
  [chosen, own, focus] = [-1, null, null];
  stop();
  dress();
};

onSteps((isDrawn) => {
  history();
  status("");
  // An edit continues in a list that is redrawn.
  if (isDrawn) drawn();
});

const show = (place, act = "pick") => {
  chosen = Math.max(-1, Math.min(place, solutionSteps().length - 1));
  focus = act;
};

// With `then`, the focus stays in the list.
const change = (place, then, edit) => {
  const steps = structuredClone(solutionSteps());
  edit(steps);
  own = steps;
  stop();
  chosen = Math.max(-1, Math.min(place, steps.length - 1));
  focus = then;
  changeSteps(steps);
  // Done immediately, so that no key is lost before the steps are drawn.
  dress();
};

const travel = (run) => {
  const stays = hasFocus();
  const place = chosen;
  stop();
  if (!run()) return;
  own = structuredClone(solutionSteps());
  show(stays ? Math.max(0, place) : -1, stays ? "pick" : null);
  dress();
};

// The texts of the text areas, without blank ones.
const typed = () => [...preview().querySelectorAll("li > .edit textarea")].map((area) => area.value);
const kept = (parts) => parts.map((text) => text.trim()).filter(Boolean);

const redraw = (act) => {
  focus = act;
  dress();
};

const cancel = () => {
  if (inserting) chosen -= 1;
  stop();
  redraw("edit");
};

const save = () => {
  const parts = kept(typed());
  const steps = solutionSteps();
  if (inserting && parts.length) change(chosen, "edit", (changed) => changed.splice(chosen, 0, parts));
  else if (inserting || (!parts.length && steps.length === 1) || isSame(parts, steps[chosen])) cancel();
  else if (parts.length) change(chosen, "edit", (changed) => changed.splice(chosen, 1, parts));
  else change(chosen, "pick", (changed) => changed.splice(chosen, 1));
};

/** End an edit of a step and accept it. */
export const endEdit = () => editing && save();

let caret = null;
const cut = () => {
  const fields = [...preview().querySelectorAll("li > .edit textarea")];
  const at = Math.max(0, fields.indexOf(caret?.area));
  const texts = typed();
  const place = caret?.area === fields[at] ? caret.place : texts[at].length;
  const left = kept([...texts.slice(0, at), texts[at].slice(0, place)]);
  const right = kept([texts[at].slice(place), ...texts.slice(at + 1)]);
  if (left.length && right.length) return change(chosen, "edit", (changed) => changed.splice(chosen, 1, left, right));
  status("Put the cursor between the two parts, then split.");
  fields[at].focus();
};

const merged = (one, other) =>
  one.length === 1 && other.length === 1 ? [`${one[0]}\n${other[0]}`] : [...one, ...other];

const swap = (steps, i, j) => ([steps[i], steps[j]] = [steps[j], steps[i]]);
const isLast = () => chosen === solutionSteps().length - 1;

const acts = {
  edit: () => ((editing = true), redraw("edit")),
  save,
  split: cut,
  cancel,
  merge: () => isLast() || change(chosen, "merge", (steps) => steps.splice(chosen, 2, merged(steps[chosen], steps[chosen + 1]))),
  up: () => chosen > 0 && change(chosen - 1, "up", (steps) => swap(steps, chosen, chosen - 1)),
  down: () => isLast() || change(chosen + 1, "down", (steps) => swap(steps, chosen, chosen + 1)),
  insert: () => {
    [chosen, editing, inserting] = [chosen + 1, true, true];
    redraw("edit");
  },
  delete: () => solutionSteps().length > 1 && change(chosen, "delete", (steps) => steps.splice(chosen, 1)),
};

const choose = (place) => {
  endEdit();
  show(place);
  dress();
};

document.addEventListener("click", ({ target }) => {
  const tool = target.closest?.("#preview [data-act]");
  if (tool) return void acts[tool.dataset.act]();
  const item = target.closest?.("#preview ol.preview > li:not(.new)");
  if (item && !target.closest(".edit, .tools")) {
    const place = items().indexOf(item);
    if (place !== chosen || target.closest(".pick")) choose(place === chosen ? -1 : place);
    return;
  }
  const end = target.closest?.("#split-tools [data-history]");
  if (end) travel(end.dataset.history === "undo" ? undo : redo);
});

document.addEventListener("focusout", ({ target }) => {
  if (target.matches?.("#preview textarea")) caret = { area: target, place: target.selectionStart };
});

document.addEventListener("focusin", ({ target }) => {
  if (!preview()?.contains(target)) focus = null;
});

const inList = () => chosen >= 0 && preview() && (hasFocus() || document.activeElement === document.body);
// Keys while a text is edited, and in the list or its tools; and those that act once, however long they are held down.
const IN_TEXT = { Escape: cancel, "Ctrl+Shift+Enter": cut };
const IN_LIST = {
  "Ctrl+z": () => travel(undo),
  "Ctrl+Z": () => travel(redo),
  "Ctrl+y": () => travel(redo),
  ArrowUp: () => choose(Math.max(0, chosen - 1)),
  ArrowDown: () => choose(chosen + 1),
  "Alt+ArrowUp": acts.up,
  "Alt+ArrowDown": acts.down,
  Delete: () => inList() && acts.delete(),
};
const ONCE = ["Escape", "Ctrl+Shift+Enter", "Delete"];

document.addEventListener("keydown", (event) => {
  const { target } = event;
  // Nothing has the focus while the list is being redrawn.
  const isHere = target.closest?.("#preview ol.preview, #split-tools") || (target === document.body && focus && inList());
  if (!isHere || event.defaultPrevented) return;
  const isText = target.matches("textarea");
  const key = readKey(event);
  const act = (isText ? IN_TEXT : IN_LIST)[key];
  if (!act) return;
  event.preventDefault();
  if (isText) caret = { area: target, place: target.selectionStart };
  if (!event.repeat || !ONCE.includes(key)) act();
});

register({ key: "e", label: "edit or split the chosen step", when: inList, run: () => acts.edit() });
register({ key: "m", label: "merge it with the next", when: inList, run: () => acts.merge() });
register({ key: "i", label: "insert a step after it", when: inList, run: () => acts.insert() });
for (const [keys, label] of [
  [["ArrowUp", "ArrowDown"], "choose a step (in the list of steps)"],
  [["Alt+↑", "Alt+↓"], "move the chosen step"],
  [["Delete"], "delete it"],
  [["Ctrl+Shift+Enter"], "split at the cursor while editing"],
  [["Ctrl+Z", "Ctrl+Y"], "undo, redo (in the list of steps)"],
])
  register({ key: keys, label, when: () => solutionSteps().length > 0 && preview() });
