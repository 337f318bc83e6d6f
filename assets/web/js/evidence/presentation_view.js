// The content of a presentation: the steps, the matrix and the curves as far as revealed, then the conclusions.
//
// Anything not yet revealed is not in the document, so that nothing can show, name or find it.
import { element, shortened } from "../shared/dom.js";
import { drawMaths } from "../shared/maths.js";
import { isValid } from "../shared/verdicts.js";
import { drawCurves } from "./curve.js";
import { colourCell, NOTABLE, RevealedJudgment } from "./reveal.js";

// The matrix and the curves have room for this many steps from the start, and shrink for more.
const ROOM = 8;
// The largest number of steps whose numbers fit into the matrix, and of names beside it.
const NUMBERED = 10;
const MOST_NAMES = 16;
// The most steps in the matrix and the curves: of a long solution the last ones revealed.
const MOST_STEPS = 60;
// The font sizes of the steps, of which the first that fits is used, and the window that they are meant for, in pixels.
const SIZES = [29, 26, 24, 22];
const OF_PROBLEM = [27, 23, 20];
const WINDOW = [1280, 900];
const SMALLEST = 16;
// Moves are described for this many steps, and only counted for the others.
const MOST_TOLD = 2;

const sentenceCase = (text) => text[0].toUpperCase() + text.slice(1);

// A text for screen readers, with formulas as their source.
const spoken = (node) => {
  const copy = node.cloneNode(true);
  for (const span of copy.querySelectorAll("span.math")) span.textContent = span.dataset.source;
  return copy.textContent.trim();
};

// The length up to which a problem or a step is read out.
const ENOUGH = 120;
const begun = (node) => shortened(spoken(node), ENOUGH);

const contents = (section, name) => [...section.querySelector(`template.${name}`).content.cloneNode(true).children];

export class PresentationView extends RevealedJudgment {
  constructor(section) {
    super(section);
    this.focus = Number(section.dataset.focus);
    this.hasGold = false;
    this.list = section.querySelector("ol.steps");
    this.steps = contents(section, "of-steps");
    this.conclusions = contents(section, "of-conclusions");
    this.gold = contents(section, "of-gold");
    for (const part of [...this.steps, ...this.conclusions]) drawMaths(part);
    this.steps.forEach((step) => step.querySelector(".bar").append(element("span", { class: "before" })));
    this.fit();
  }

  /** Choose the font size with all steps in place, so that it stays while they are revealed; none of them is painted. */
  fit() {
    const shown = [...this.list.children];
    const { hasGold } = this;
    const scale = Math.min(innerWidth / WINDOW[0], innerHeight / WINDOW[1]);
    this.section.style.setProperty("--scale", scale.toFixed(3));
    this.list.replaceChildren(...this.steps);
    this.showGold(true);
    const choose = (name, sizes, room) => {
      for (const size of sizes) {
        this.section.style.setProperty(name, `${Math.max(SMALLEST, Math.floor(size * scale))}px`);
        if (room.scrollHeight <= room.clientHeight) break;
      }
    };
    choose("--problem", OF_PROBLEM, this.section.querySelector(".q"));
    choose("--type", SIZES, this.list);
    this.list.replaceChildren();
    choose("--alone", OF_PROBLEM, this.section.querySelector(".q"));
    this.list.replaceChildren(...shown);
    this.showGold(hasGold);
    if (shown.length) this.showCurves();
    this.follow();
  }

  /** Show the first `steps` steps and `conclusions` conclusions. */
  show(steps, conclusions) {
    this.shown = [steps, conclusions];
    this.showSteps(steps);
    this.showMatrix(steps);
    this.showConclusions(steps, conclusions);
    this.showCurves();
    this.follow();
  }

  showSteps(count) {
    const after = count - 1;
    const there = this.list.children.length;
    for (const step of this.steps.slice(count)) step.remove();
    this.list.append(...this.steps.slice(there, count));
    this.steps.slice(0, count).forEach((item, i) => {
      this.showRow(item, after, i, `after step ${this.names[after]}`);
      const online = this.online(after, i);
      item.querySelector(".d").hidden = after <= this.ends[i];
      // The end of the bar's neg part when the step was revealed.
      const before = item.querySelector(".before");
      before.style.left = `${(100 * (1 - online)).toFixed(1)}%`;
      before.hidden = Math.abs(this.number(after, i) - online) < NOTABLE;
      item.classList.toggle("newest", i === after);
      for (const kind of ["fell", "rose"]) item.classList.toggle(kind, this.kind(after, i) === kind);
    });
  }

  change(after, step) {
    return step < after ? this.number(after, step) - this.number(after - 1, step) : 0;
  }

  hasMoved(after, step) {
    return Math.abs(this.change(after, step)) >= NOTABLE;
  }

  kind(after, step) {
    if (!this.hasMoved(after, step)) return "";
    return this.change(after, step) < 0 ? "fell" : "rose";
  }

  showMatrix(count) {
    const { validity } = this.thresholds;
    const first = Math.max(0, count - MOST_STEPS);
    const shown = count - first;
    const every = Math.ceil(shown / MOST_NAMES);
    const name = (i) => ((i - first) % every === 0 ? this.names[i] : "");
    const cell = (after, step) => {
      const value = this.number(after, step);
      const marks = {
        ...(after === count - 1 && this.hasMoved(after, step) && { "data-moved": "" }),
        ...(after === this.ends[step] && { "data-online": "" }),
      };
      const data = element("td", marks, value.toFixed(2));
      colourCell(data, value, validity);
      return data;
    };
    const places = [...Array(shown).keys()].map((i) => first + i);
    const head = element("tr", {}, element("td"), ...places.map((i) => element("th", { scope: "col" }, name(i))));
    const rows = places.map((j) =>
      element("tr", {}, element("th", { scope: "row" }, name(j)), ...places.filter((i) => i <= j).map((i) => cell(j, i))),
    );
    const caption = element("caption", { class: "unseen" }, "Validity of each step, with a row for each step revealed.");
    const kind = count <= NUMBERED ? "numbered" : "bare";
    const table = element("table", { class: kind }, caption, element("thead", {}, head), element("tbody", {}, ...rows));
    table.style.setProperty("--n", Math.max(ROOM, shown));
    table.style.setProperty("--columns", shown);
    this.section.querySelector(".matrix").replaceChildren(...(count ? [table] : []));
    this.section.querySelector(".matrix-key").hidden = !count;
  }

  /** Once the evidence is shown, the whole curve that it is about stands out. */
  whole(step) {
    if (step !== this.focus) return "";
    return this.number(this.last, step) < this.number(step, step) ? "fell" : "rose";
  }

  // What is above and below the curves decides how much room they have.
  showCurves() {
    const [count, conclusions] = this.shown;
    const holder = this.section.querySelector(".curve");
    if (!count) return holder.replaceChildren();
    const after = count - 1;
    const first = Math.max(0, count - MOST_STEPS);
    const revealed = this.names.slice(first, count);
    drawCurves(holder, {
      revealed,
      kinds: revealed.map((_, i) => (conclusions ? this.whole(first + i) : this.kind(after, first + i))),
      curves: revealed.map((_, i) => revealed.slice(i).map((_, later) => this.number(first + i + later, first + i))),
      threshold: this.thresholds.validity,
      room: ROOM,
      title: `Validity of each step as steps were revealed, up to step ${this.names[after]}`,
    });
  }

  showConclusions(steps, count) {
    const holder = this.section.querySelector(".conclusions");
    const moved = steps && !count ? this.moved(steps - 1) : "";
    const shown = this.conclusions.slice(0, count);
    holder.replaceChildren(...(moved ? [element("p", { class: "moves" }, `${sentenceCase(moved)}.`)] : []), ...shown);
    this.showGold(shown.some((part) => part.dataset.name === "gold"));
  }

  showGold(shown) {
    this.hasGold = shown;
    this.steps.forEach((step, i) => {
      step.classList.toggle("wrong", shown && this.gold[i].classList.contains("wrong"));
      if (shown) step.querySelector(".t").append(this.gold[i]);
      else this.gold[i].remove();
    });
  }

  /** How the last step moved the verdicts on the earlier ones, in words; "" for the first. */
  moved(after) {
    if (!after) return "";
    const size = (step) => Math.abs(this.change(after, step));
    const found = [...Array(after).keys()].filter((step) => this.hasMoved(after, step));
    found.sort((a, b) => size(b) - size(a));
    if (!found.length) return "no earlier step moved by 0.10 or more";
    const told = found.slice(0, MOST_TOLD).map((step) => this.movement(after, step));
    const others = found.length - told.length;
    if (others) told.push(`${others} ${others === 1 ? "other step" : "other steps"} moved as well`);
    return told.join("; ");
  }

  movement(after, step) {
    const [before, now] = [this.number(after - 1, step), this.number(after, step)];
    const valid = [before, now].map((value) => isValid(value, this.thresholds));
    const turned = valid[0] === valid[1] ? "" : ` and is ${valid[1] ? "now" : "no longer"} valid`;
    return `step ${this.names[step]} ${now < before ? "fell" : "rose"} from ${before.toFixed(2)} to ${now.toFixed(2)}${turned}`;
  }

  /** The text that is read out for the last thing revealed. */
  told(steps, conclusions) {
    if (conclusions) return spoken(this.conclusions[conclusions - 1]);
    if (!steps) return `Problem: ${begun(this.section.querySelector(".q"))}`;
    const after = steps - 1;
    const moved = this.moved(after);
    const says = `${this.verdict(after, after)}, ${this.number(after, after).toFixed(2)}${moved && `; ${moved}`}.`;
    return `Step ${this.names[after]}: ${begun(this.steps[after].querySelector(".t"))} ${sentenceCase(says)}`;
  }

  /** Add a sentence to the one of the evidence, once it is known. */
  addEvidence(text) {
    const part = this.conclusions.find(({ dataset }) => dataset.name === "evidence");
    if (text) part.append(" ", element("p", { class: "without" }, text));
  }

  /** Scroll to the newest content. */
  follow() {
    this.list.lastElementChild?.scrollIntoView({ block: "nearest" });
    this.section.querySelector(".conclusions > [data-name]:last-child")?.scrollIntoView({ block: "nearest" });
  }
}
