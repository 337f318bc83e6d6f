// The current steps of the labelling page: pressed labels, kinds of errors, texts, and unsaved changes.
//
// Texts, which are comments and corrected steps, are stored in the browser while they are typed, and recorded once
// their field loses the focus.
import { setText } from "../shared/dom.js";
import { valueOf } from "./annotation.js";
import { keepText, keptText } from "./outbox.js";

const fieldOf = (area) => area.closest("[data-field]");

/** The step that an element belongs to. */
export const stepOf = (element) => Number(element.closest("[data-step]").dataset.step);

/** The name under which a field's text is stored: its kind and step. */
const nameOf = (field) => `${field.dataset.field}.${stepOf(field)}`;

export class Texts {
  /** `page` is the Labelling whose `record`, `annotation`, `outbox`, `person`, `slot` and `rows` this uses. */
  constructor(page) {
    this.page = page;
    /** Unsaved texts by name, and the fields that were opened, even if empty. */
    this.typed = new Map();
    this.opened = new Set();
  }

  /** Fill the fields of these rows with the unsaved texts from before the page was closed. */
  restore(rows) {
    for (const field of rows.flatMap((row) => [...row.querySelectorAll("[data-field]")])) {
      const text = keptText(this.page.person, this.page.slot, nameOf(field));
      if (text === null) continue;
      this.typed.set(nameOf(field), text);
      field.querySelector("textarea").value = text;
    }
  }

  open(kind, step) {
    const field = this.page.rows[step]?.querySelector(`[data-field="${kind}"]`);
    if (!field) return;
    const area = field.querySelector("textarea");
    this.opened.add(nameOf(field));
    field.hidden = false;
    // A correction begins with the text to be corrected.
    if (!area.value) area.value = field.dataset.source ?? "";
    area.focus();
  }

  type(area) {
    const name = nameOf(fieldOf(area));
    this.typed.set(name, area.value);
    keepText(this.page.person, this.page.slot, name, area.value);
  }

  save(area) {
    const field = fieldOf(area);
    this.opened.delete(nameOf(field));
    const [kind, step, text] = [field.dataset.field, stepOf(field), area.value.trim()];
    const value = text && text !== field.dataset.source?.trim() ? text : null;
    const changed = valueOf(this.page.annotation, { kind, step }) !== value;
    if (changed) this.page.record(kind, { step, new: value });
    else if (!this.page.outbox.events.some((event) => event.kind === kind && event.step === step)) this.forget(nameOf(field));
  }

  saveAll() {
    for (const area of this.page.section.querySelectorAll("[data-field] textarea")) {
      if (this.typed.has(nameOf(fieldOf(area)))) this.save(area);
    }
  }

  /** Forget the text that `event` has stored, unless it has changed since. */
  stored({ kind, step, new: text }) {
    const name = `${kind}.${step}`;
    const field = this.page.rows[step]?.querySelector(`[data-field="${kind}"]`);
    const typed = this.typed.get(name)?.trim();
    if (typed === (text ?? "") || (text === null && typed === field?.dataset.source?.trim())) this.forget(name);
  }

  forget(name) {
    this.typed.delete(name);
    keepText(this.page.person, this.page.slot, name, null);
  }
}

const STATES = { waiting: "saving", lost: "not stored", stored: "saved", suggested: "suggested", unasked: "not asked", "": "" };

const press = (button, yes) => button.setAttribute("aria-pressed", yes);

const paintField = (field, value, { typed, opened }) => {
  const [kept, open] = [typed.has(nameOf(field)), opened.has(nameOf(field))];
  if (!kept && !open) field.querySelector("textarea").value = value ?? "";
  field.hidden = value === null && !kept && !open;
  field.classList.toggle("unsaved", kept);
};

// Only errors have a kind; one chosen before counts again once the label is neg again.
const paintKinds = (group, label, kind) => {
  group.hidden = label !== "neg";
  for (const chip of group.querySelectorAll("[data-error]")) press(chip, chip.dataset.error === kind);
};

// Only changed labels have evidence, whose field stays in view once it is cleared.
const paintLink = (field, evidence, over) => {
  const input = field.querySelector("input");
  field.hidden = evidence === null && field.hidden;
  if (input !== document.activeElement) input.value = evidence === null ? "" : evidence + 1;
  input.disabled = over;
};

const stateOf = (step, { annotation, needed, waiting, lost }) => {
  const isAbout = (event) => event.step === step;
  if (lost.some(isAbout)) return "lost";
  if (waiting.some(isAbout)) return "waiting";
  if (step >= needed) return "unasked";
  if (annotation.suggested[step] !== null) return "suggested";
  const said = [annotation.labels, annotation.comments, annotation.corrections, annotation.errors].some((list) => list[step] !== null);
  return said ? "stored" : "";
};

/**
 * Update a step's row to `shown`: the annotation, the number of steps whose labels are `needed`, the events `waiting`
 * and `lost`, the `texts`, and `over` once nothing more can be stored.
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
  for (const field of row.querySelectorAll(".link")) paintLink(field, annotation.evidence[step], over);
  for (const field of row.querySelectorAll("[data-field]")) {
    paintField(field, annotation[`${field.dataset.field}s`][step], shown.texts);
  }
  for (const other of row.querySelectorAll("[data-error], [data-open]")) other.disabled = over;
};

/** The number of labels, and whether everything is stored. `whole` is true if every step is in view. */
export const statusText = ({ annotation, needed, waiting, texts }, away, whole) => {
  const labelled = annotation.labels.slice(0, needed).filter((label) => label !== null).length;
  const done = whole ? `${labelled} of ${needed} labelled` : `${labelled} labelled`;
  const said = waiting.map(({ kind, step }) => `${kind}.${step}`);
  const open = waiting.length + [...texts.typed.keys()].filter((name) => !said.includes(name)).length;
  if (!open) return labelled ? `${done} · all saved` : done;
  return `${done} · ${open} not saved yet${away ? ": the server does not answer" : ""}`;
};
