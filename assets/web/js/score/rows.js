// Editing the steps of a result in place: the text is scored when typing pauses.
import { element } from "../shared/dom.js";
import { register } from "../shared/keys.js";
import { amendSteps, changeSteps } from "./solution.js";

// Milliseconds without a key after which the text is scored.
const PAUSE = 350;

// The edit in progress: the cell with its text area, its step, and the original text.
let edit = null;
let timer = 0;
let rescore = () => {};
let isQuick = () => true;

/** Call `listener` when the text of a step has changed, with true for the first time in an edit; if scoring is not
 * `quick`, only when the edit ends. */
export const onRowEdit = (listener, quick) => ([rescore, isQuick] = [listener, quick]);

/** True if a step of the result is being edited. */
export const isEditingRow = () => edit !== null;

const rows = () => [...document.querySelectorAll("#result ol.steps > li")];

const changed = () => {
  const steps = structuredClone(edit.steps);
  steps[edit.step][edit.part] = edit.area.value.trim();
  return steps;
};

// Score the text, unless it is empty or the same as last time.
const commit = () => {
  clearTimeout(timer);
  const text = edit.area.value.trim();
  if (!text || text === edit.scored) return;
  const isFirst = !edit.wasScored;
  [edit.scored, edit.wasScored] = [text, true];
  if (isFirst) changeSteps(changed(), true);
  else amendSteps(changed());
  rescore(isFirst);
};

// The place of a row's text among the steps and sub-steps.
const placeOf = (steps, row) => {
  const places = steps.flatMap((parts, step) => parts.map((_, part) => [step, part]));
  return places[row];
};

const begin = (row) => {
  finish();
  const item = rows()[row];
  const cell = item.querySelector(".t");
  const steps = JSON.parse(item.parentElement.dataset.steps);
  const [step, part] = placeOf(steps, row);
  const text = steps[step][part];
  const label = item.querySelector("[data-edit]").getAttribute("aria-label").replace("Edit", "Text of");
  const area = element("textarea", { dir: "auto", "aria-label": label, rows: Math.min(8, 1 + Math.ceil(text.length / 50)) });
  area.value = text;
  edit = { cell, area, steps, step, part, row, text, shown: text, scored: text, content: [...cell.childNodes] };
  cell.replaceChildren(area);
  item.classList.add("editing");
  area.focus();
  area.setSelectionRange(text.length, text.length);
};

// The cell shows the text again, as in the last result if it has the same text.
const close = () => {
  const { cell, content, scored, shown } = edit;
  clearTimeout(timer);
  edit = null;
  cell.closest("li")?.classList.remove("editing");
  cell.replaceChildren(...(scored === shown ? content : [scored]));
};

/** End the edit and accept the text. */
export const finish = () => {
  if (!edit) return;
  commit();
  close();
};

/** End the edit silently, since its result is being replaced. */
export const abandon = () => edit && close();

const cancel = () => {
  const { row } = edit;
  edit.area.value = edit.text;
  finish();
  rows()[row]?.querySelector("[data-edit]").focus();
};

/** Make an element like its `twin`, but leave `kept` in it untouched, which corresponds to `place` in the twin. */
export const morph = (old, twin, kept, place) => {
  for (const { name } of [...old.attributes]) if (!twin.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of twin.attributes) old.setAttribute(name, value);
  const [at, like] = [[...old.childNodes].find((node) => node.contains(kept)), [...twin.childNodes].find((node) => node.contains(place))];
  for (const node of [...old.childNodes]) if (node !== at) node.remove();
  const children = [...twin.childNodes];
  at.before(...children.slice(0, children.indexOf(like)));
  at.after(...children.slice(children.indexOf(like) + 1));
  if (at !== kept) morph(at, like, kept, place);
};

/** Replace a result around the text area of the edit in progress. */
export const putAround = (section, next) => {
  const place = next.querySelectorAll("ol.steps > li > .t")[edit.row];
  if (!place || !section?.contains(edit.cell)) return false;
  const content = [...place.childNodes];
  morph(section, next, edit.cell, place);
  edit.content = content;
  edit.shown = JSON.parse(section.querySelector("ol.steps").dataset.steps)[edit.step]?.[edit.part];
  edit.cell.closest("li").classList.add("editing");
  return true;
};

const isSelecting = () => !getSelection().isCollapsed;

document.addEventListener("click", ({ target }) => {
  const item = target.closest?.("#result ol.steps > li");
  if (!item || item.contains(edit?.area ?? null)) return;
  if (target.closest("[data-edit]") || (target.closest(".t") && !target.closest("a, button") && !isSelecting()))
    begin(rows().indexOf(item));
});

document.addEventListener("input", ({ target }) => {
  if (target !== edit?.area) return;
  clearTimeout(timer);
  if (isQuick()) timer = setTimeout(commit, PAUSE);
});

document.addEventListener("focusout", ({ target }) => target === edit?.area && target.isConnected && finish());

register({ key: "Escape", label: "cancel the edit of a step", when: isEditingRow, within: "#result ol.steps textarea", run: cancel });
