// The steps of the labelling page as they stand: pressed labels, kinds of errors, texts, and what is not saved yet.
import { setText } from "./dom.js";
import { nameOf, stepOf } from "./labelling_texts.js";

const STATES = { waiting: "saving", lost: "not stored", stored: "saved", unasked: "not asked", "": "" };

const press = (button, yes) => button.setAttribute("aria-pressed", yes);

const paintField = (field, value, { typed, opened }) => {
  const [kept, open] = [typed.has(nameOf(field)), opened.has(nameOf(field))];
  if (!kept && !open) field.querySelector("textarea").value = value ?? "";
  field.hidden = value === null && !kept && !open;
  field.classList.toggle("unsaved", kept);
};

// What is no error has no kind; one that was chosen before counts again once the label is neg again.
const paintKinds = (group, label, kind) => {
  group.hidden = label !== "neg";
  for (const chip of group.querySelectorAll("[data-error]")) press(chip, chip.dataset.error === kind);
};

const stateOf = (step, { annotation, needed, waiting, lost }) => {
  const isAbout = (event) => event.step === step;
  if (lost.some(isAbout)) return "lost";
  if (waiting.some(isAbout)) return "waiting";
  if (step >= needed) return "unasked";
  const said = [annotation.labels, annotation.comments, annotation.corrections, annotation.errors].some((list) => list[step] !== null);
  return said ? "stored" : "";
};

/**
 * Bring a step's row up to what `shown` holds: the annotation, up to which step labels are `needed`, the events `waiting` and
 * `lost`, the `texts`, and whether all is `over`.
 */
export const paintRow = (row, shown) => {
  const step = stepOf(row);
  const { annotation, over } = shown;
  const label = annotation.labels[step];
  const state = stateOf(step, shown);
  row.dataset.said = label ?? "";
  row.dataset.kept = state;
  setText(row.querySelector(".kept"), STATES[state]);
  for (const button of row.querySelectorAll("[data-label]")) {
    press(button, button.dataset.label === label);
    button.disabled = over || step >= shown.needed;
  }
  paintKinds(row.querySelector(".kinds"), label, annotation.errors[step]);
  for (const field of row.querySelectorAll("[data-field]")) {
    paintField(field, annotation[`${field.dataset.field}s`][step], shown.texts);
  }
  for (const other of row.querySelectorAll("[data-error], [data-open]")) other.disabled = over;
};

/** How many labels there are, and whether all that was said is stored. `whole` says that every step is in view. */
export const statusText = ({ annotation, needed, waiting, texts }, away, whole) => {
  const labelled = annotation.labels.slice(0, needed).filter((label) => label !== null).length;
  const done = whole ? `${labelled} of ${needed} labelled` : `${labelled} labelled`;
  const said = waiting.map(({ kind, step }) => `${kind}.${step}`);
  const open = waiting.length + [...texts.typed.keys()].filter((name) => !said.includes(name)).length;
  if (!open) return labelled ? `${done} · all saved` : done;
  return `${done} · ${open} not saved yet${away ? ": the server does not answer" : ""}`;
};
