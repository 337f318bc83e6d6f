// The page on which a trace is labelled. What the person says goes to the server act by act; what the page shows is
// the server's answer with the acts that are still on their way.
import { lap } from "./clock.js";
import { after, asked, firstChange, isUndoable, valueOf } from "./draft.js";
import { register } from "./keys.js";
import { listen } from "./labelling_hands.js";
import { paintRow, statusText } from "./labelling_rows.js";
import { Texts } from "./labelling_texts.js";
import { handleRefusal } from "./labelling_troubles.js";
import { setText } from "./made.js";
import { Outbox } from "./outbox.js";
import { dropTexts, freshKey, keepText, keptText } from "./unsent.js";

const LABELS = [["1", "neg"], ["2", "neu"], ["3", "pos"], ["u", "unsure"]];
// The name under which the step is kept that the person was at.
const HERE = "here";
const AGAIN = 2000;
const ON_ITS_WAY = "The next step is on its way.";

class Labelling {
  constructor(section) {
    const { slot, person, campaign, guideline, steps, draft } = section.dataset;
    Object.assign(this, { section, person, campaign, slot: Number(slot), guideline: Number(guideline), steps: Number(steps) });
    this.stepwise = "stepwise" in section.dataset;
    this.afterError = "afterError" in section.dataset;
    this.server = JSON.parse(draft);
    // The acts stored since the page was opened, by number; those that never will be; whether it is all over; and
    // whether a key would mean a step that is not there yet.
    this.events = new Map();
    this.lost = [];
    this.over = false;
    this.early = false;
    this.away = false;
    this.frame = null;
    this.texts = new Texts(this);
    this.outbox = new Outbox(person, this.slot, {
      answered: (act, answer) => this.answered(act, answer),
      refused: (act, status, message) => handleRefusal(this, act, status, message),
      changed: () => this.paint(),
    });
  }

  begin() {
    listen(this);
    this.texts.restore(this.rows);
    this.paint();
    this.moveTo(this.start());
    this.outbox.send();
    this.reveal();
    this.fetchSteps();
  }

  start() {
    const kept = keptText(this.person, this.slot, HERE);
    const open = this.firstOpen();
    const step = kept === null ? (open < 0 ? this.steps : open) : Number(kept);
    return Math.min(step, this.rows.length - 1);
  }

  get rows() {
    return [...this.section.querySelectorAll("ol.steps > li")];
  }

  /** What the person has said: what is stored, and what is on its way. */
  get draft() {
    return after(this.server, [...this.outbox.acts, ...this.lost], this.events);
  }

  get asked() {
    return asked(this.draft, this.afterError);
  }

  get isClosed() {
    return this.over || this.outbox.acts.some(({ kind }) => kind === "submit" || kind === "skip");
  }

  /** The first step whose label is missing, -1 where none is. */
  firstOpen() {
    return this.draft.labels.slice(0, this.asked).indexOf(null);
  }

  say(kind, fields = {}) {
    if (this.isClosed) return;
    const about = { revealed: this.rows.length, guideline: this.guideline, seconds: lap() };
    this.outbox.add({ kind, key: freshKey(), ...fields, ...about });
  }

  label(value, step) {
    if (this.isClosed || step >= this.asked) return;
    if (this.early && step === this.here) return this.tell(ON_ITS_WAY);
    if (this.draft.labels[step] !== value) this.say("label", { step, new: value });
    this.tell(`Step ${step + 1}: ${value ?? "no label"}.`);
    if (value === null) return this.moveTo(step);
    this.reveal();
    this.advance(step);
  }

  advance(step) {
    const last = step === this.rows.length - 1;
    this.moveTo(last ? step : step + 1);
    this.early = last && this.draft.revealed > this.rows.length;
    if (this.firstOpen() < 0) this.tell("Every step has its label. Enter submits.");
  }

  chooseError(kind, step) {
    const chosen = this.draft.errors[step] === kind ? null : kind;
    this.say("error", { step, new: chosen });
    this.moveTo(step);
  }

  move(by) {
    this.moveTo(Math.min(Math.max(this.here + by, 0), this.rows.length - 1));
  }

  moveTo(step) {
    this.here = step;
    this.early = false;
    keepText(this.person, this.slot, HERE, String(step));
    this.rows.forEach((row, place) => {
      if (place === step) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    });
    this.rows[step]?.focus({ preventScroll: true });
    this.rows[step]?.scrollIntoView({ block: "nearest" });
  }

  /** Take the last act back, or repeat it. */
  turn(kind) {
    if (this.isClosed) return;
    const before = this.draft;
    if (!before[kind].length) return this.tell(`There is nothing to ${kind}.`);
    this.outbox.add({ kind, key: freshKey() });
    this.follow(before);
  }

  // Go where something has changed without a hand on it.
  follow(before) {
    const step = firstChange(before, this.draft);
    if (step >= 0 && step < this.rows.length) this.moveTo(step);
  }

  submit() {
    this.texts.saveAll();
    if (this.isClosed) return;
    const open = this.firstOpen();
    if (open < 0) return this.say("submit");
    if (open >= this.rows.length) return this.tell(ON_ITS_WAY);
    this.moveTo(open);
    this.tell(`Step ${open + 1} has no label yet.`);
  }

  /** Ask for the next step once the one before it has its label. */
  reveal() {
    const { labels, revealed } = this.draft;
    const ended = !this.afterError && labels.includes("neg");
    if (!this.stepwise || ended || revealed >= this.steps || labels[revealed - 1] === null) return;
    this.say("reveal", { new: revealed + 1 });
  }

  async fetchSteps() {
    const from = this.rows.length;
    if (this.over || this.server.revealed <= from) return;
    const response = await fetch(`/relabel/label/steps?slot=${this.slot}&from=${from}`).catch(() => null);
    const text = response?.ok ? await response.text().catch(() => null) : null;
    if (text === null) return void setTimeout(() => this.fetchSteps(), AGAIN);
    const template = document.createElement("template");
    template.innerHTML = text;
    // Another answer may have come first.
    if (from !== this.rows.length) return;
    const rows = [...template.content.children];
    this.section.querySelector("ol.steps").append(...rows);
    this.texts.restore(rows);
    this.paint();
    if (this.here === from - 1) this.moveTo(from);
  }

  answered(act, answer) {
    const before = after(this.server, [act, ...this.outbox.acts], this.events);
    if (isUndoable(act.kind)) this.events.set(answer.event, { ...act, old: valueOf(this.server, act) ?? null });
    this.server = answer.state;
    this.texts.stored(act);
    if (act.kind === "submit") return this.leave(`/relabel/label?slot=${this.slot}`);
    if (act.kind === "skip") return this.leave(`/relabel/label?campaign=${this.campaign}`);
    if (act.kind === "reveal") this.fetchSteps();
    if (act.kind === "undo" || act.kind === "redo") this.follow(before);
    this.reveal();
  }

  leave(url) {
    dropTexts(this.person, this.slot);
    this.texts.typed.clear();
    location.replace(url);
  }

  openText(kind, step) {
    if (!this.isClosed) this.texts.open(kind, step);
  }

  openPanel(name) {
    if (this.isClosed) return;
    for (const panel of this.section.querySelectorAll("form[data-panel]")) panel.hidden = panel.dataset.panel !== name;
    const field = this.section.querySelector(`form[data-panel="${name}"] input`);
    if (name === "flag") field.value = this.draft.flag ?? "";
    field.focus();
  }

  closePanels() {
    for (const panel of this.section.querySelectorAll("form[data-panel]")) panel.hidden = true;
    this.moveTo(this.here);
  }

  sendPanel(form, value) {
    const kind = form.dataset.panel;
    if (kind === "skip" && value === null) return this.tell("Say in a few words why.");
    this.closePanels();
    if (kind === "skip" || this.draft.flag !== value) this.say(kind, { new: value });
  }

  /** Bring the page up to what was said, once a frame. */
  paint() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const find = (selector) => this.section.querySelector(selector);
    const { draft, asked: count, outbox, lost, isClosed: over } = this;
    const shown = { draft, asked: count, waiting: outbox.acts, lost, texts: this.texts, over };
    for (const row of this.rows) paintRow(row, shown);
    for (const kind of ["undo", "redo"]) find(`[data-act=${kind}]`).disabled = over || !draft[kind].length;
    for (const kind of ["flag", "skip", "submit"]) find(`[data-act=${kind}]`).disabled = over;
    find("[data-act=submit]").classList.toggle("primary", this.firstOpen() < 0);
    find("[data-act=flag]").setAttribute("aria-pressed", draft.flag !== null);
    find(".flagged").hidden = draft.flag === null;
    setText(find(".flagged span"), draft.flag ?? "");
    const whole = !this.stepwise || draft.revealed >= this.steps;
    setText(find(".status"), statusText(shown, outbox.away, whole));
    if (outbox.away && !this.away) this.tell("What you say is kept here, and sent when the server answers.");
    this.away = outbox.away;
  }

  tell(message) {
    this.section.querySelector(".said").textContent = message;
  }
}

const section = document.querySelector("#labelling");
const page = section && new Labelling(section);
const key = (name, label, run) => register({ key: name, label, when: () => page !== null, run });

for (const [name, value] of LABELS) key(name, value, () => page.label(value, page.here));
key("0", "no label", () => page.label(null, page.here));
key("j", "next step", () => page.move(1));
key("k", "previous step", () => page.move(-1));
key("Enter", "submit, or go to the first step without a label", () => page.submit());
key("z", "undo", () => page.turn("undo"));
key("Z", "redo", () => page.turn("redo"));
key("c", "comment on the step", () => page.openText("comment", page.here));
key("e", "correct the step", () => page.openText("correction", page.here));
key("f", "flag a bad problem", () => page.openPanel("flag"));
key("x", "skip the trace", () => page.openPanel("skip"));
page?.begin();
