// The steps of the Score page: chosen, edited, split, merged, moved, deleted and inserted, with undo.
//
// The server draws them (`#preview ol.preview`) and finds the maths in them; what they are is held here.
import { onChange } from "./changes.js";
import { element } from "./dom.js";
import { register } from "./keys.js";

// Each step is a list of texts: one, or its sub-steps.
let steps = [];
// What the text in the box is split into, and which text that is.
let split = [];
let key = "";
let scored = null;
let chosen = -1;
let editing = false;
const past = [];
const future = [];
// Which list was drawn last, and where the focus belongs once the next one is there.
let drawn = null;
let focus = null;
// Where it was put last.
let held = null;
// The text areas of the step that is edited, which outlive a list that is drawn meanwhile.
let open = null;

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const preview = () => document.querySelector("#preview");
const items = () => [...preview().querySelectorAll("ol.preview > li")];
const press = (id) => document.getElementById(id)?.click();
const isCorrected = () => !same(steps, split);

/** The steps as the server wants them; with `whole`, an edit that goes on is ended first. */
export const state = (whole = true) => {
  look();
  if (editing && whole) save();
  return { steps, key, corrected: isCorrected() };
};

/** That the steps in view are those of the result in view. */
export const markScored = () => {
  scored = structuredClone(steps);
  tell();
};

const button = (act, label, attributes = {}) =>
  element("button", { type: "button", class: "button", "data-act": act, ...attributes }, label);

const toolbar = () => {
  const last = chosen === steps.length - 1;
  const off = (yes) => (yes ? { disabled: "" } : {});
  return element(
    "div",
    { class: "tools", role: "group", "aria-label": `Step ${chosen + 1}` },
    button("edit", "Edit or split"),
    button("merge", "Merge with next", off(last)),
    button("up", "Up", { "aria-label": "Move up", ...off(chosen === 0) }),
    button("down", "Down", { "aria-label": "Move down", ...off(last) }),
    button("insert", "Insert after"),
    button("delete", "Delete", off(steps.length === 1)),
  );
};

const editor = () => {
  if (open?.isConnected === false && open.dataset.place === String(chosen)) return open;
  open = areas();
  open.dataset.place = chosen;
  return open;
};

const areas = () =>
  element(
    "div",
    { class: "edit" },
    ...steps[chosen].map((text, part) => {
      const name = steps[chosen].length > 1 ? `Text of sub-step ${chosen + 1}.${part + 1}` : `Text of step ${chosen + 1}`;
      const area = element("textarea", { "aria-label": name, rows: Math.min(8, 2 + Math.floor(text.length / 60)) });
      area.value = text;
      return area;
    }),
    element(
      "div",
      { class: "tools" },
      button("save", "Done"),
      button("split", "Split at the cursor"),
      button("cancel", "Cancel"),
    ),
  );

// The tools of the chosen step, and the focus where it was.
const dress = () => {
  for (const extra of preview().querySelectorAll("li > .tools, li > .edit")) extra.remove();
  items().forEach((item, i) => {
    item.classList.toggle("chosen", i === chosen);
    item.classList.toggle("editing", i === chosen && editing);
    item.querySelector(".pick").setAttribute("aria-expanded", String(i === chosen));
    if (i === chosen) item.append(editing ? editor() : toolbar());
  });
  const item = items()[chosen];
  if (editing && document.activeElement === document.body) focus = "edit";
  if (!focus || !item) return;
  const wanted = editing ? item.querySelector("textarea") : item.querySelector(`[data-act="${focus}"]:enabled`);
  (wanted ?? item.querySelector(".pick")).focus();
  [held, focus] = [focus, null];
};

// Whether the list was drawn again as it was, so that what is added to it here is gone.
const isUndressed = () => {
  const item = preview().querySelector("ol.preview") && items()[chosen];
  return item && !item.querySelector(":scope > .tools, :scope > .edit");
};

const tell = () => {
  const tools = document.querySelector("#split-tools");
  if (!tools) return;
  const corrected = steps.length > 0 && isCorrected();
  const text = corrected ? "Corrected. These steps are what is scored, not the text in the box." : "";
  const status = tools.querySelector("[data-status]");
  if (status.textContent !== text) status.textContent = text;
  tools.querySelector("[data-history=undo]").disabled = !past.length;
  tools.querySelector("[data-history=redo]").disabled = !future.length;
  for (const name of ["write", "again"]) tools.querySelector(`[data-steps=${name}]`).hidden = !corrected;
  tools.querySelector("[data-steps=score]").hidden = !scored || !steps.length || same(scored, steps);
};

const show = (place, act = "pick") => {
  chosen = Math.max(-1, Math.min(place, steps.length - 1));
  focus = act;
  tell();
  // The focus moves at once, so that no key is lost until the steps are drawn; there it is put again. A step that
  // was just inserted has no place yet, unless another one of the same texts is there.
  if (!editing || same(steps, JSON.parse(preview().querySelector("ol.preview")?.dataset.steps ?? "null"))) dress();
  focus = act;
  press("steps-show");
};

const remember = () => {
  past.push({ steps: structuredClone(steps), chosen });
  future.length = 0;
};

// Change the steps, so that it can be undone.
const change = (place, then, edit) => {
  remember();
  edit();
  [editing, open] = [false, null];
  show(place, then);
};

// With `then`, the focus is in the list and stays there.
const travel = (from, to, then = null) => {
  const found = from.pop();
  if (!found) return;
  to.push({ steps, chosen });
  ({ steps } = found);
  [editing, open] = [false, null];
  show(then ? Math.max(0, found.chosen) : found.chosen, then);
};

// What the text areas hold, without what is blank.
const typed = () => [...preview().querySelectorAll("li > .edit textarea")].map((area) => area.value);
const kept = (parts) => parts.map((text) => text.trim()).filter(Boolean);

function save() {
  const parts = kept(typed());
  if (!kept(steps[chosen]).length) return finish(parts);
  [editing, open] = [false, null];
  if (!parts.length && steps.length > 1) change(chosen, "pick", () => steps.splice(chosen, 1));
  else if (parts.length && !same(parts, steps[chosen])) change(chosen, "edit", () => steps.splice(chosen, 1, parts));
  else redraw("edit");
}

// A step that was just inserted: the insertion is what can be undone.
function finish(parts) {
  if (!parts.length) return cancel();
  [editing, open] = [false, null];
  steps[chosen] = parts;
  show(chosen, "edit");
}

const redraw = (act) => {
  focus = act;
  dress();
};

let caret = null;
const cut = () => {
  const areas = [...preview().querySelectorAll("li > .edit textarea")];
  const at = Math.max(0, areas.indexOf(caret?.area));
  const texts = typed();
  const place = caret?.area === areas[at] ? caret.place : texts[at].length;
  const left = kept([...texts.slice(0, at), texts[at].slice(0, place)]);
  const right = kept([texts[at].slice(place), ...texts.slice(at + 1)]);
  if (!left.length || !right.length) {
    document.querySelector("#split-tools [data-status]").textContent =
      "Put the cursor between the two parts, then split.";
    areas[at].focus();
    return;
  }
  change(chosen, "edit", () => steps.splice(chosen, 1, left, right));
};

const cancel = () => {
  [editing, open] = [false, null];
  // A step that was just inserted and never written.
  if (!kept(steps[chosen]).length) {
    ({ steps, chosen } = past.pop());
    show(chosen);
  } else redraw("edit");
};

const merged = (one, other) =>
  one.length === 1 && other.length === 1 ? [`${one[0]}\n${other[0]}`] : [...one, ...other];

const swap = (i, j) => ([steps[i], steps[j]] = [steps[j], steps[i]]);

const acts = {
  edit: () => ((editing = true), redraw("edit")),
  save,
  split: cut,
  cancel,
  merge: () =>
    chosen < steps.length - 1 &&
    change(chosen, "merge", () => steps.splice(chosen, 2, merged(steps[chosen], steps[chosen + 1]))),
  up: () => chosen > 0 && change(chosen - 1, "up", () => swap(chosen, chosen - 1)),
  down: () => chosen < steps.length - 1 && change(chosen + 1, "down", () => swap(chosen, chosen + 1)),
  insert: () => {
    remember();
    steps.splice(chosen + 1, 0, [""]);
    editing = true;
    show(chosen + 1);
  },
  delete: () => steps.length > 1 && change(chosen, "delete", () => steps.splice(chosen, 1)),
};

const choose = (place) => {
  if (editing) save();
  chosen = Math.max(-1, Math.min(place, steps.length - 1));
  redraw("pick");
};

// A new split replaces what was corrected; undo brings that back.
const adopt = (list) => {
  const found = JSON.parse(list.dataset.steps);
  if (list.dataset.origin === "text") {
    if (isCorrected() && !same(steps, found)) remember();
    if (!same(steps, found)) [chosen, editing] = [-1, false];
    split = found;
    steps = structuredClone(found);
  }
  key = list.dataset.key;
  dress();
};

// A click may come before the frame in which a change is told.
const look = () => {
  if (!preview()) return;
  const list = preview().querySelector("ol.preview");
  const now = list?.dataset.state ?? "";
  if (now === drawn) {
    if (!isUndressed()) return;
    if (document.activeElement === document.body) focus ??= held;
    dress();
    return;
  }
  drawn = now;
  if (list) adopt(list);
  else {
    if (isCorrected()) remember();
    [steps, split, key, chosen, editing] = [[], [], "", -1, false];
  }
  tell();
};
onChange(look);

document.addEventListener("click", ({ target }) => {
  look();
  const tool = target.closest?.("#preview [data-act]");
  if (tool) return void acts[tool.dataset.act]();
  const item = target.closest?.("#preview ol.preview > li");
  if (item && !target.closest(".edit, .tools")) {
    const place = items().indexOf(item);
    if (place !== chosen || target.closest(".pick")) choose(place === chosen ? -1 : place);
    return;
  }
  const end = target.closest?.("#split-tools button");
  if (!end) return;
  if (end.dataset.history) travel(...(end.dataset.history === "undo" ? [past, future] : [future, past]));
  else if (end.dataset.steps === "again") change(-1, null, () => (steps = structuredClone(split)));
  else press({ write: "steps-write", score: "score" }[end.dataset.steps]);
});

document.addEventListener("focusout", ({ target }) => {
  if (target.matches?.("#preview textarea")) caret = { area: target, place: target.selectionStart };
});

// A key may come when the list was just drawn anew, before the focus is back in it.
const inList = () => {
  if (document.activeElement === document.body) look();
  return chosen >= 0 && preview()?.contains(document.activeElement);
};
const inEdit = (event, run) => {
  if (event.key === "Escape") run(cancel);
  else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event.shiftKey ? cut : save);
};
const inTools = (event, run) => {
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key.toLowerCase() === "z") run(() => travel(...(event.shiftKey ? [future, past] : [past, future]), "pick"));
  else if (command && event.key.toLowerCase() === "y") run(() => travel(future, past, "pick"));
  else if (command) return;
  else if (event.key === "ArrowUp") run(event.altKey ? acts.up : () => choose(Math.max(0, chosen - 1)));
  else if (event.key === "ArrowDown") run(event.altKey ? acts.down : () => choose(chosen + 1));
  else if (event.key === "Delete" && inList()) run(acts.delete);
};

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.defaultPrevented) return;
  look();
  const target = event.target === document.body ? document.activeElement : event.target;
  if (!target.closest?.("#preview ol.preview, #split-tools")) return;
  const run = (act) => {
    event.preventDefault();
    if (target.matches("textarea")) caret = { area: target, place: target.selectionStart };
    act();
  };
  (target.matches("textarea") ? inEdit : inTools)(event, run);
});

register({ key: "e", label: "edit or split the chosen step", when: inList, run: () => acts.edit() });
register({ key: "m", label: "merge it with the next", when: inList, run: () => acts.merge() });
register({ key: "i", label: "insert a step after it", when: inList, run: () => acts.insert() });
for (const [keys, label] of [
  [["ArrowUp", "ArrowDown"], "choose a step (in the list of steps)"],
  [["Alt+↑", "Alt+↓"], "move the chosen step"],
  [["Delete"], "delete it"],
  [["Ctrl+Enter"], "end editing"],
  [["Ctrl+Shift+Enter"], "split at the cursor while editing"],
  [["Ctrl+Z", "Ctrl+Y"], "undo, redo (in the list of steps)"],
])
  register({ key: keys, label, when: () => steps.length > 0 && preview() });
