// A hindsight judgment whose steps are revealed one by one: its record from the server, the numbers in its triangle, and
// their display in the list of steps and the matrix.
import { setText } from "../shared/dom.js";
import { isValid, MARKS, verdictOf } from "../shared/verdicts.js";

const LABELS = ["neg", "neu", "pos"];

/**
 * Read rows of entries, which are three probabilities, only a validity, or null. Returns a function from row and column
 * to three numbers in single precision, as on the server; row `j` has the columns 0 to `j`.
 */
const readTriangle = (rows) => (row, column) => readProbs(rows[row][column] ?? [0, 0, 0]);

/**
 * The same for a packed triangle: the numbers of its rows one after another, in single precision and base64. For a constant
 * one, in which later steps change nothing, it is only the last row.
 */
const readPacked = ({ triangle, constant }) => {
  const letters = atob(triangle);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const numbers = new Float32Array(bytes.buffer);
  const cell = (at) => [numbers[3 * at], numbers[3 * at + 1], numbers[3 * at + 2]];
  if (constant) return (_, column) => cell(column);
  return (row, column) => cell((row * (row + 1)) / 2 + column);
};

/** The three numbers of an entry; a validity or a label alone is expanded to the numbers that it stands for. */
export const readProbs = (entry) => {
  if (typeof entry === "string") return LABELS.map((label) => Number(label === entry));
  return (typeof entry === "number" ? [1 - entry, 0, entry] : entry).map(Math.fround);
};

/** The validity of an entry, in single precision as on the server. */
export const validityOf = (probs) => Math.fround(probs[1] + probs[2]);

/** The smallest change that is coloured, as on the other pages. */
export const NOTABLE = 0.1;

/** A change with its sign. */
export const signed = (value) => {
  const text = Math.abs(value).toFixed(2);
  return text === "0.00" ? text : `${value > 0 ? "+" : "−"}${text}`;
};

/** Colour a cell with a validity by its verdict and its distance from the threshold. */
export const colourCell = (cell, value, validity) => {
  const valid = isValid(value, { validity });
  cell.className = valid ? "yes" : "no";
  const far = valid ? (value - validity) / (1 - validity || 1) : (validity - value) / validity;
  cell.style.setProperty("--x", (0.12 + 0.88 * far).toFixed(3));
};

/**
 * The judgment of a section: its triangle, its thresholds, and for each sub-step its name and the last sub-step of its
 * step. Numbers of a sub-step are those `after` another one has been revealed.
 */
export class RevealedJudgment {
  constructor(section) {
    const { hindsight, offline, thresholds } = JSON.parse(section.dataset.judgment);
    const steps = offline.steps.map(({ step }) => step);
    const ends = steps.map((step) => steps.lastIndexOf(step));
    const isWhole = steps.map((step, i) => steps.indexOf(step) === ends[i]);
    const names = offline.steps.map(({ step, substep }, i) => (isWhole[i] ? `${step}` : `${step}.${substep}`));
    const at = hindsight ? readTriangle(hindsight) : readPacked(section.dataset);
    Object.assign(this, { section, names, ends, at, last: names.length - 1 });
    const threeWay = thresholds.redundancy !== null;
    this.thresholds = { threeWay, validity: thresholds.validity, redundancy: threeWay ? thresholds.redundancy : Infinity };
  }

  /** The validity of a step. */
  number(after, step) {
    return validityOf(this.at(after, step));
  }

  /** The validity when its step was revealed; online, a step is judged once all of its sub-steps are. */
  online(after, step) {
    return this.number(Math.min(after, this.ends[step]), step);
  }

  verdict(after, step) {
    return verdictOf(this.number(after, step), this.at(after, step)[1], this.thresholds);
  }

  /** Update the row of a step in the list: its bar, and the change since it was revealed; `when` describes the time. */
  showRow(item, after, step, when) {
    const [probs, verdict, validity] = [this.at(after, step), this.verdict(after, step), this.number(after, step)];
    const bar = item.querySelector(".bar");
    for (const part of bar.querySelectorAll("i")) part.style.width = `${(100 * probs[LABELS.indexOf(part.className)]).toFixed(1)}%`;
    const told = LABELS.map((name, i) => `${name} ${probs[i].toFixed(2)}`);
    const words = this.thresholds.threeWay ? told.join(", ") : `validity ${validity.toFixed(2)}`;
    for (const name of ["title", "aria-label"]) bar.setAttribute(name, `${when}: ${words}; ${verdict}`);
    Object.assign(item.querySelector(".mark"), { textContent: MARKS[verdict], title: verdict });
    item.querySelector(".num").textContent = validity.toFixed(2);
    const change = validity - this.online(after, step);
    const holder = item.querySelector(".d");
    holder.className = `d ${Math.abs(change) < NOTABLE ? "" : change > 0 ? "rise" : "fall"}`;
    holder.lastChild.textContent = signed(change);
  }
}

/** Plays automatically: calls `step` every `pace` milliseconds, until it returns false or the button is pressed. */
export class Player {
  constructor(button, pace, step) {
    Object.assign(this, { button, pace, step, timer: 0 });
    this.show();
  }

  toggle() {
    if (this.timer) return this.stop();
    this.timer = setInterval(() => this.step() || this.stop(), this.pace);
    this.show();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.show();
  }

  show() {
    setText(this.button, this.timer ? "Pause" : "Play");
    this.button.setAttribute("aria-pressed", this.timer !== 0);
  }
}
