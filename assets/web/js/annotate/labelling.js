// The page for labelling a trace. Each event goes to the server at once; the page shows the server's annotation with the
// events folded in that are still on their way.
import { failure } from "../shared/connection.js";
import { element, html, setText, showNotice } from "../shared/dom.js";
import { labelKeys, register } from "../shared/keys.js";
import { changedSteps, fold, isUndoable, neededSteps, valueOf } from "./annotation.js";
import { paintRow, statusText, stepOf, Texts } from "./labelling_steps.js";
import { keepKeys, onTurn, releaseKeys, turnTo } from "./next_trace.js";
import { dropTexts, freshKey, isEvent, keepText, keptText, Outbox } from "./outbox.js";

// The name under which the current step is stored.
const HERE = "here";
const AGAIN = 2000;
const NEXT_COMES = "The next step is on its way.";

// The time spent counts while the page is in view, up to a while after the last movement.
const IDLE = 60_000;
const SIGNS = ["keydown", "pointerdown", "pointermove", "wheel", "scroll", "touchmove"];
let spent = 0;
let since = performance.now();
let running = !document.hidden;

const countTime = () => {
  const now = performance.now();
  if (running) spent += Math.min(now - since, IDLE);
  since = now;
};

for (const sign of SIGNS) document.addEventListener(sign, countTime, { passive: true, capture: true });
document.addEventListener("visibilitychange", () => {
  countTime();
  running = !document.hidden;
});

// The seconds since the last call.
const lap = () => {
  countTime();
  const seconds = Math.round(spent) / 1000;
  spent = 0;
  return seconds;
};

// Clicks on the labelling page, and keys within its fields.
const click = (page, { target }) => {
  const button = target.closest("button");
  const row = target.closest("[data-step]");
  if (!button) {
    page.labelled = null;
    if (row && !target.closest("textarea, label")) page.moveTo(stepOf(row));
    return;
  }
  const { label, error, open, act } = button.dataset;
  if (label) page.label(label, stepOf(row));
  if (error) page.chooseError(error, stepOf(row));
  if (open) page.openText(open, stepOf(row));
  if (act === "submit") page.submit();
  if (act === "flag" || act === "skip") page.openPanel(act);
  if (act === "undo" || act === "redo") page.undoOrRedo(act);
  if (act === "close") page.closePanels();
  if (act === "unflag") page.sendPanel(button.form, null);
};

// Add the listeners of the page.
const listen = (page) => {
  const { section } = page;
  const isText = (target) => target.matches("[data-field] textarea");
  section.addEventListener("click", (event) => click(page, event));
  section.addEventListener("input", ({ target }) => {
    if (isText(target)) page.texts.type(target);
    page.paint();
  });
  section.addEventListener("focusout", ({ target }) => {
    if (isText(target)) page.texts.save(target);
    if (target.matches(".link input")) page.link(target);
    page.paint();
  });
  section.addEventListener("submit", (event) => {
    event.preventDefault();
    page.sendPanel(event.target, event.target.querySelector("input").value.trim() || null);
  });
  const leaving = (event) => {
    if (page.outbox.events.length || page.texts.typed.size) event.preventDefault();
  };
  window.addEventListener("beforeunload", leaving, { signal: page.life.signal });
  // Another window of this browser has stored an event. A window elsewhere is noticed only when the person returns to this one.
  const heard = ({ key, newValue }) => newValue === null && isEvent(key, page.person, page.slot) && page.refresh();
  window.addEventListener("storage", heard, { signal: page.life.signal });
  for (const sign of ["focus", "visibilitychange"]) window.addEventListener(sign, () => page.refresh(), { signal: page.life.signal });
  // The problem stays in view, so steps are scrolled to below it.
  const problem = section.querySelector(".problem");
  const measure = new ResizeObserver(() => section.style.setProperty("--problem", `${problem.offsetHeight}px`));
  measure.observe(problem);
  page.life.signal.addEventListener("abort", () => measure.disconnect());
};

// If the server refuses an event, the page says why, takes the mark back, and keeps typed texts.

// The event may be valid, but the slot, the guideline or the campaign has changed since the page was loaded.
const HAS_CHANGED = [403, 404, 409];

const here = () => location.pathname + location.search;
const link = (label, href) => element("a", { class: "button", href }, label);

const show = (page, message, ...controls) => showNotice(page.section.querySelector(".told"), message, ...controls);

const passOver = (page, message) => {
  show(page, message);
  page.outbox.drop();
};

// Nothing more can be stored here; unsaved events stay in view.
const end = (page, message) => {
  page.lost = [...page.outbox.events];
  page.over = true;
  page.outbox.clear();
  const kept = page.lost.length || page.texts.typed.size ? " What is marked as not stored is lost once you leave." : "";
  show(page, message + kept, link("Next trace", page.next));
};

const goOn = (page, version) => {
  const button = element("button", { type: "button", class: "button primary" }, `Continue under version ${version}`);
  button.addEventListener("click", () => {
    page.guideline = version;
    show(page, "");
    page.outbox.resume({ guideline: version });
    page.moveTo(page.here);
  });
  return button;
};

const showGuideline = async (page, version) => {
  const response = await fetch(`/annotate/label/guideline?campaign=${page.campaign}`).catch(() => null);
  if (!response?.ok) return later(page);
  const details = page.section.querySelector("details.guideline");
  details.innerHTML = await response.text();
  details.open = true;
  const message = "The guideline has changed: the new one is shown above. Your labels since then are stored when you continue.";
  show(page, message, goOn(page, version));
  details.scrollIntoView({ block: "start" });
};

const later = (page) => void setTimeout(() => page.outbox.resume(), AGAIN);

// Handle the refusal of the first event in the outbox of `page`, with a status and a message.
const handleRefusal = async (page, event, status, message) => {
  if (status === 401) return show(page, message, link("Log in", `/login?next=${encodeURIComponent(here())}`));
  if (!HAS_CHANGED.includes(status)) return passOver(page, message);
  const response = await fetch(`/annotate/slots/${page.slot}`).catch(() => null);
  if (!response || response.status >= 500) return later(page);
  if (!response.ok) return end(page, message);
  const assignment = await response.json();
  // The event may come from a page that was closed before the guideline changed.
  if (event.guideline && event.guideline !== assignment.guideline) return showGuideline(page, assignment.guideline);
  if (assignment.state.submitted && event.kind === "submit") return page.submitted();
  return adopt(page, assignment) && passOver(page, message);
};

// Show the server's state of the trace, including changes from another window. False if nothing more can be stored here.
const adopt = (page, { expires, state }) => {
  if (expires === null) {
    end(page, state.submitted ? "You submitted this trace in another window." : "You skipped this trace, or withdrew it, in another window.");
    return false;
  }
  const before = page.annotation;
  page.server = state;
  const steps = changedSteps(before, page.annotation).map((step) => step + 1);
  if (steps.length) page.announce(`Changed in another window: step ${steps.join(", ")}.`);
  page.paint();
  page.fetchSteps();
  return true;
};

class Labelling {
  constructor(section) {
    const { slot, person, campaign, guideline, annotation, after } = section.dataset;
    Object.assign(this, { section, person, campaign, after, slot, guideline: Number(guideline) });
    this.afterError = "afterError" in section.dataset;
    // The server's last annotation, and the events that it stored since the page was opened, by key; the events that will
    // never be stored; whether nothing more can be stored; and whether keys are meant for a step that is not there yet.
    this.server = JSON.parse(annotation);
    this.stored = new Map();
    this.lost = [];
    this.over = false;
    this.early = false;
    // The step that was labelled last, until the person moves to another one.
    this.labelled = null;
    this.away = false;
    this.frame = null;
    // The number of events answered, whether another window may have changed something, and whether a check is running.
    this.answers = 0;
    this.stale = false;
    this.asking = false;
    this.life = new AbortController();
    this.texts = new Texts(this);
    this.outbox = new Outbox(person, this.slot, {
      answered: (event, answer) => this.answered(event, answer),
      refused: (event, status, message) => {
        releaseKeys();
        handleRefusal(this, event, status, message);
      },
      changed: () => this.paint(),
      goesOn: true,
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
    const { labels, suggested } = this.annotation;
    // Suggested labels have not been reviewed yet.
    const open = labels.slice(0, this.needed).findIndex((label, step) => label === null || suggested[step] !== null);
    const step = kept === null ? (open < 0 ? labels.length : open) : Number(kept);
    return Math.min(step, this.rows.length - 1);
  }

  get rows() {
    return [...this.section.querySelectorAll("ol.steps > li")];
  }

  /** The person's annotation, with the events that are still on their way. */
  get annotation() {
    return fold(this.server, [...this.outbox.events, ...this.lost], this.stored);
  }

  get needed() {
    return neededSteps(this.annotation, this.afterError);
  }

  get isClosed() {
    return this.over || this.outbox.events.some(({ kind }) => kind === "submit" || kind === "skip");
  }

  /** True if no step is left to reveal; otherwise the server's lists have an entry for the next one. */
  get isWhole() {
    return this.annotation.revealed >= this.annotation.labels.length;
  }

  /** The first step without a label, or -1 if there is none. */
  firstOpen() {
    return this.annotation.labels.slice(0, this.needed).indexOf(null);
  }

  /** Go to the next step without a label; after the last one, to the first. */
  nextOpen() {
    const shown = this.annotation.labels.slice(0, Math.min(this.needed, this.rows.length));
    const open = shown.flatMap((label, step) => (label === null ? [step] : []));
    if (!open.length) return this.announce("Every step has its label. Enter submits.");
    this.labelled = null;
    this.moveTo(open.find((step) => step > this.here) ?? open[0]);
  }

  record(kind, fields = {}) {
    if (this.isClosed) return;
    const about = { revealed: this.rows.length, guideline: this.guideline, seconds: lap() };
    this.outbox.add({ kind, key: freshKey(), ...fields, ...about });
  }

  label(value, step) {
    if (this.isClosed || step >= this.needed) return;
    if (this.early && step === this.here) return this.announce(NEXT_COMES);
    if (this.annotation.labels[step] !== value) this.record("label", { step, new: value });
    const by = this.annotation.evidence[step];
    this.announce(`Step ${step + 1}: ${value ?? "no label"}.${by === null ? "" : ` Changed by step ${by + 1}; w names another.`}`);
    if (value === null) return this.moveTo(step);
    this.labelled = step;
    this.reveal();
    this.advance(step);
  }

  advance(step) {
    const last = step === this.rows.length - 1;
    this.moveTo(last ? step : step + 1);
    this.early = last && this.annotation.revealed > this.rows.length;
    if (this.firstOpen() < 0) this.announce("Every step has its label. Enter submits.");
  }

  toggleError(kind, step) {
    const chosen = this.annotation.errors[step] === kind ? null : kind;
    this.record("error", { step, new: chosen });
    return chosen;
  }

  chooseError(kind, step) {
    this.toggleError(kind, step);
    this.moveTo(step);
  }

  /**
   * Choose the kind of error with the key `name`, or take it back: of the step just labelled neg, from which the page
   * has moved on, or else of the current one.
   */
  pressKind(name) {
    const { labels } = this.annotation;
    const step = labels[this.labelled] === "neg" ? this.labelled : this.here;
    const chip = this.rows[step]?.querySelector(`[data-error][aria-keyshortcuts="${name}"]`);
    if (!chip) return;
    if (labels[step] !== "neg") return this.announce("Only a step labelled neg has a kind of error.");
    const kind = this.toggleError(chip.dataset.error, step);
    this.announce(`Step ${step + 1}: ${kind === null ? "no kind of error" : chip.lastChild.textContent}.`);
  }

  /** Store the step that a field names as the one that changed the label of its own step, or that none did. */
  link(input) {
    const step = stepOf(input);
    const to = input.value === "" ? null : Number(input.value) - 1;
    if (to === this.annotation.evidence[step]) return;
    if (to !== null && !(Number.isInteger(to) && to > step && to < this.rows.length)) {
      return this.announce(`Name a step after step ${step + 1}, up to ${this.rows.length}.`);
    }
    this.record("evidence", { step, new: to });
    this.announce(`Step ${step + 1}: changed by ${to === null ? "no step" : `step ${to + 1}`}.`);
  }

  /** Go to the field of the evidence: of the step just labelled, from which the page has moved on, or else of the current one. */
  openLink() {
    const fields = [this.labelled, this.here].map((step) => this.rows[step]?.querySelector(".link:not([hidden])"));
    const field = fields.find((one) => one);
    if (!field) return this.announce("No label was changed here.");
    field.querySelector("input").select();
  }

  move(by) {
    this.labelled = null;
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

  /** Undo the last event, or redo it. */
  undoOrRedo(kind) {
    if (this.isClosed) return;
    const before = this.annotation;
    const last = before[kind].at(-1);
    if (!last) return this.announce(`There is nothing to ${kind}.`);
    this.outbox.add({ kind, key: freshKey(), of: last.key ?? last });
    this.follow(before);
  }

  // Go to the step that has changed by undo or redo.
  follow(before) {
    const [step] = changedSteps(before, this.annotation);
    if (step < this.rows.length) this.moveTo(step);
  }

  submit() {
    this.texts.saveAll();
    if (this.isClosed) return;
    const open = this.firstOpen();
    if (open < 0) return this.recordLast();
    if (open >= this.rows.length) return this.announce(NEXT_COMES);
    this.moveTo(open);
    this.announce(`Step ${open + 1} has no label yet.`);
  }

  recordLast() {
    keepKeys();
    this.record("submit");
  }

  /** Request the next step once the one before it has a label. */
  reveal() {
    const { labels, revealed } = this.annotation;
    const ended = !this.afterError && labels.includes("neg");
    if (ended || this.isWhole || labels[revealed - 1] === null) return;
    this.record("reveal", { new: revealed + 1 });
  }

  async fetchSteps() {
    const from = this.rows.length;
    if (this.over || this.server.revealed <= from) return;
    const response = await fetch(`/annotate/label/steps?slot=${this.slot}&from=${from}`).catch(() => null);
    const text = response?.ok ? await response.text().catch(() => null) : null;
    if (text === null) return void setTimeout(() => this.fetchSteps(), AGAIN);
    // Another response may have arrived first.
    if (from !== this.rows.length) return;
    const rows = [...html(text).children];
    this.section.querySelector("ol.steps").append(...rows);
    this.texts.restore(rows);
    this.paint();
    if (this.here === from - 1) this.moveTo(from);
  }

  /** Show what the person did to this trace in another window, once no event is on its way. */
  async refresh() {
    this.stale = true;
    if (document.hidden || this.asking) return;
    this.asking = true;
    while (this.stale && !this.isClosed && !this.outbox.events.length) {
      this.stale = false;
      const answers = this.answers;
      const response = await fetch(`/annotate/slots/${this.slot}`).catch(() => null);
      const assignment = response?.ok ? await response.json().catch(() => null) : null;
      if (this.outbox.events.length || answers !== this.answers) this.stale = true;
      else if (assignment) adopt(this, assignment);
      else if (HAS_CHANGED.includes(response?.status)) end(this, await failure(response));
    }
    this.asking = false;
  }

  answered(event, answer) {
    this.answers++;
    const before = fold(this.server, [event, ...this.outbox.events], this.stored);
    if (isUndoable(event.kind)) this.stored.set(event.key, { ...event, old: valueOf(this.server, event) });
    this.server = answer.state;
    this.texts.stored(event);
    if (event.kind === "submit") return this.submitted(answer.next);
    if (event.kind === "skip") return this.leave(this.next);
    if (event.kind === "reveal") this.fetchSteps();
    if (event.kind === "undo" || event.kind === "redo") this.follow(before);
    this.reveal();
    if (this.stale) this.refresh();
  }

  get next() {
    return `/annotate/label?campaign=${this.campaign}`;
  }

  /** If the campaign shows nothing after submission, the next trace follows at once. */
  submitted(content) {
    this.leave(this.after === "nothing" ? this.next : `/annotate/label?slot=${this.slot}`, content);
  }

  leave(url, content) {
    this.over = true;
    dropTexts(this.person, this.slot);
    this.texts.typed.clear();
    turnTo(url, content);
  }

  /** Another trace has replaced this one. */
  close() {
    this.over = true;
    this.life.abort();
    this.outbox.close();
  }

  openText(kind, step) {
    if (!this.isClosed) this.texts.open(kind, step);
  }

  openPanel(name) {
    if (this.isClosed) return;
    for (const panel of this.section.querySelectorAll("form[data-panel]")) panel.hidden = panel.dataset.panel !== name;
    const field = this.section.querySelector(`form[data-panel="${name}"] input`);
    if (name === "flag") field.value = this.annotation.flag ?? "";
    field.focus();
  }

  closePanels() {
    for (const panel of this.section.querySelectorAll("form[data-panel]")) panel.hidden = true;
    this.moveTo(this.here);
  }

  sendPanel(form, value) {
    const kind = form.dataset.panel;
    if (kind === "skip" && value === null) return this.announce("Give a short reason.");
    this.closePanels();
    if (kind === "skip" || this.annotation.flag !== value) this.record(kind, { new: value });
  }

  /** Update the page, at most once per frame. */
  paint() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const find = (selector) => this.section.querySelector(selector);
    const { annotation, needed, outbox, lost, isClosed: over } = this;
    const shown = { annotation, needed, waiting: outbox.events, lost, texts: this.texts, over };
    for (const row of this.rows) paintRow(row, shown);
    for (const kind of ["undo", "redo"]) find(`[data-act=${kind}]`).disabled = over || !annotation[kind].length;
    for (const kind of ["flag", "skip", "submit"]) find(`[data-act=${kind}]`).disabled = over;
    find("[data-act=submit]").classList.toggle("primary", this.firstOpen() < 0);
    find("[data-act=flag]").setAttribute("aria-pressed", annotation.flag !== null);
    find(".flagged").hidden = annotation.flag === null;
    setText(find(".flagged span"), annotation.flag ?? "");
    setText(find(".status"), statusText(shown, outbox.away, this.isWhole));
    if (outbox.away && !this.away) this.announce("Your labels are kept here and sent when the server answers.");
    this.away = outbox.away;
  }

  announce(message) {
    this.section.querySelector(".said").textContent = message;
  }
}

let page = null;
const key = (name, label, run, how = {}) => register({ key: name, label, when: () => page !== null, run, ...how });

const registerKeys = (section) => {
  for (const [name, label] of labelKeys(section)) {
    key(name, label || "no label", () => page.label(label || null, page.here));
  }
  const kinds = [...section.dataset.kindKeys];
  key(kinds, "kind of error of a neg step", (name) => page.pressKind(name), { shown: [kinds[0], "…"] });
  key("j", "next step", () => page.move(1), { repeats: true });
  key("k", "previous step", () => page.move(-1), { repeats: true });
  key("n", "next step without a label", () => page.nextOpen(), { repeats: true });
  key("Enter", "submit, or go to the first step without a label", () => page.submit());
  key("z", "undo", () => page.undoOrRedo("undo"), { repeats: true });
  key("Z", "redo", () => page.undoOrRedo("redo"), { repeats: true });
  key("c", "comment on the step", () => page.openText("comment", page.here));
  key("e", "correct the step", () => page.openText("correction", page.here));
  if ("stepwise" in section.dataset) key("w", "step that changed the label", () => page.openLink());
  key("f", "flag a bad problem", () => page.openPanel("flag"));
  key("x", "skip the trace", () => page.openPanel("skip"));
  const texts = "#labelling :is([data-field] textarea, .link input)";
  key(["Enter", "Ctrl+Enter", "Escape"], "store a text, and leave it", (_, field) => page.moveTo(stepOf(field)), { within: texts, shown: ["Enter", "Escape"] });
  key("Escape", "close the flag or the skip", () => page.closePanels(), { within: "#labelling form[data-panel] *" });
};

let registered = false;

const open = () => {
  const section = document.querySelector("#labelling");
  page?.close();
  page = section && new Labelling(section);
  if (page && !registered) registerKeys(section);
  registered ||= page !== null;
  page?.begin();
};

onTurn(open);
open();
