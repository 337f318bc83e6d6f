// The texts of the labelling page, comments and corrected steps: kept in the browser while they are typed, and said
// once their field is left.
import { valueOf } from "./annotation.js";
import { keepText, keptText } from "./unsent.js";

const fieldOf = (area) => area.closest("[data-field]");

/** The step that an element is of. */
export const stepOf = (element) => Number(element.closest("[data-step]").dataset.step);

/** The name under which a field's text is kept: its kind and step. */
export const nameOf = (field) => `${field.dataset.field}.${stepOf(field)}`;

export class Texts {
  /** `page` is the Labelling whose `record`, `annotation`, `outbox`, `person`, `slot` and `rows` this uses. */
  constructor(page) {
    this.page = page;
    /** What is typed and not stored, by name; and the fields that were opened, whatever is in them. */
    this.typed = new Map();
    this.opened = new Set();
  }

  /** Fill the fields of these rows with what was typed in them before the page was closed. */
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
    // A correction begins with what is to be corrected.
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

  /** Forget what `event` has stored, unless it was typed on since. */
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
