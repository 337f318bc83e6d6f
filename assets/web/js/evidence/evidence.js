// The Evidence page: the hindsight matrix, the curve and the bars of one trace, as its steps are revealed.
import { onArrival, onChange, setText } from "../shared/dom.js";
import { readKey, register } from "../shared/keys.js";
import { drawCurve } from "./curve.js";
import { Matrix } from "./matrix.js";
import { Rests } from "./rests.js";
import { Player, RevealedJudgment, validityOf } from "./reveal.js";

// Milliseconds between two steps during playback, for a short trace and for a long one.
const PACE = [900, 350];
const LONG = 20;

// The values of a curve that are read out; if there are many, the ends and the extremes.
const MOST_SPOKEN = 30;
const spoken = (values) => {
  const [first, last, least, most] = [values[0], values.at(-1), Math.min(...values), Math.max(...values)].map((value) => value?.toFixed(2));
  return values.length <= MOST_SPOKEN ? values.map((value) => value.toFixed(2)).join(", ") : `from ${first} to ${last}, between ${least} and ${most}`;
};

let current = null;

export class Evidence extends RevealedJudgment {
  constructor(section) {
    super(section);
    this.begin();
    this.rests = new Rests(this);
    this.player = new Player(section.querySelector("button.play"), this.pace, () => this.tick());
    this.slider = section.querySelector("input[type=range]");
    this.matrix = new Matrix(this);
    this.items = [...section.querySelectorAll("ol.steps > li")];
    this.listen();
    this.show();
    this.rests.learn();
  }

  begin() {
    this.step = Number(this.section.dataset.step);
    this.after = Number(this.section.dataset.after);
    // True from the press of Play until the last step is revealed; until then nothing gives away what is still to come.
    this.hides = false;
  }

  get pace() {
    return PACE[this.last < LONG ? 0 : 1];
  }

  listen() {
    const { section } = this;
    this.slider.addEventListener("input", () => this.reveal(Number(this.slider.value) - 1));
    section.addEventListener("click", (event) => this.click(event));
    section.addEventListener("keydown", (event) => this.pressInside(event));
  }

  click({ target }) {
    const button = target.closest("button.pick");
    if (button) this.look(Number(button.dataset.step));
    if (target.closest("button.play")) this.play();
    if (target.closest("button.offer")) this.rests.ask(target.closest("button.offer"));
    const place = this.matrix.at(target);
    if (place) this.go(place.after, place.step);
  }

  pressInside(event) {
    if (event.target.closest("input")) return;
    const way = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[readKey(event)];
    if (!way) return;
    const { row } = this.matrix;
    if (event.target.closest(".matrix td")) this.go(row + way[0], this.step + way[1]);
    else if (way[1]) this.reveal(this.after + way[1]);
    else return;
    event.preventDefault();
  }

  /** Go to a cell of the matrix. */
  go(after, step) {
    if (after < 0 || after > this.last || step < 0 || step > this.last) return;
    if (step > after && !this.rests.knows(after, step)) return;
    this.player.stop();
    // Above the diagonal, a row stands for the step that is left out, and nothing is hidden.
    if (step > after) this.rests.leftOut = after;
    else [this.rests.leftOut, this.after] = [null, after];
    this.hides &&= this.after < this.last;
    this.step = step;
    this.changed();
    this.matrix.find(after, step).focus();
  }

  look(step) {
    [this.step, this.rests.leftOut] = [step, null];
    this.changed();
  }

  reveal(after, playing = false) {
    if (!playing) this.player.stop();
    this.after = Math.min(Math.max(after, 0), this.last);
    this.hides &&= this.after < this.last;
    this.changed();
  }

  play() {
    if (!this.player.timer && !this.hides) {
      this.hides = this.last > 0;
      this.rests.leftOut = null;
      this.reveal(this.after === this.last ? 0 : this.after);
    }
    this.player.toggle();
  }

  tick() {
    if (!this.section.isConnected) return false;
    this.reveal(this.after + 1, true);
    return this.after < this.last;
  }

  changed() {
    this.show();
    this.address();
  }

  /** The mode of the scores in a cell, in words. */
  mode(after, step) {
    const modes = [...(after === this.ends[step] ? ["online"] : []), ...(after === this.last ? ["offline"] : [])];
    return modes.join(" and ") || `after step ${this.names[after]}`;
  }

  show() {
    for (const room of [this.section, this.section.previousElementSibling]) room?.classList.toggle("hides", this.hides);
    this.matrix.show();
    this.showPlayer();
    this.items.forEach((item, i) => this.showStep(item, i));
    for (const told of this.section.querySelectorAll(".told")) told.hidden = Number(told.dataset.of) !== this.step;
    const told = this.section.querySelector(this.hides ? ".player .now" : ".told:not([hidden]) .say");
    setText(this.section.querySelector(".story > [role=status]"), told?.textContent ?? "");
    this.showCurve();
    this.rests.show();
  }

  isShown(step) {
    return !this.hides || step <= this.after;
  }

  /** What is revealed, in words. */
  sentence() {
    return `after step ${this.names[this.after]} of ${this.names[this.last]}`;
  }

  showPlayer() {
    const text = this.sentence();
    this.slider.value = this.after + 1;
    this.slider.setAttribute("aria-valuetext", text);
    this.section.querySelector(".player .now").textContent = text;
    const whole = this.after === this.last;
    this.section.querySelector(".head .state").textContent = whole ? "Offline" : `After step ${this.names[this.after]}`;
  }

  showStep(item, i) {
    const chosen = i === this.step;
    item.classList.toggle("chosen", chosen);
    item.classList.toggle("unrevealed", i > this.after);
    item.classList.toggle("newest", i === this.after && this.after < this.last);
    item.querySelector("button.pick").setAttribute("aria-pressed", chosen);
    if (i > this.after) return;
    this.showRow(item, this.after, i, this.after === this.last ? "offline" : `after step ${this.names[this.after]}`);
  }

  showCurve() {
    const places = [...this.names.keys()].slice(this.step);
    const values = places.filter((j) => this.isShown(j)).map((j) => this.number(j, this.step));
    const without = this.hides ? null : this.rests.later(this.step)?.map((probs) => probs && validityOf(probs));
    drawCurve(this.section.querySelector(".curve"), {
      values,
      revealed: places.map((j) => this.names[j]),
      threshold: this.thresholds.validity,
      without,
      now: this.after === this.last ? -1 : places.indexOf(this.after),
      title: `Validity of step ${this.names[this.step]} as later steps are revealed: ${spoken(values)}`,
    });
    const key = without?.length ? ` ◇ with that one step left out of the whole solution.` : "";
    this.section.querySelector(".curve-key").textContent = `Validity of step ${this.names[this.step]} after each later step.${key}`;
  }

  /** Update the page's address, and that of the file. */
  address() {
    // Scores with steps left out may arrive when another page is open.
    if (!this.section.isConnected) return;
    const change = (url) => {
      const query = new URLSearchParams(url.search);
      query.set("step", this.names[this.step]);
      if (this.after === this.last) query.delete("after");
      else query.set("after", this.names[this.after]);
      return `${url.pathname}?${query}`;
    };
    const link = document.querySelector("a.file");
    if (link) link.href = change(new URL(link.href));
    // The address of a file cannot be changed.
    if (location.protocol !== "file:") history.replaceState(history.state, "", change(location));
  }
}

onArrival("section.evidence.moves:not(.presents)", (section) => {
  current?.player.stop();
  current = new Evidence(section);
});

// Keys pressed before the current trace has arrived wait for it.
const waiting = [];
const pager = () => document.querySelector("#evidence .pager[data-trace]");
const link = (kind) => pager()?.querySelector(`a.${kind}`);
const hasArrived = () => pager()?.dataset.trace === new URLSearchParams(location.search).get("trace");
const move = (kind) => (hasArrived() ? link(kind)?.click() : waiting.push(kind));

onChange(() => waiting.length && hasArrived() && move(waiting.shift()));
window.addEventListener("popstate", () => (waiting.length = 0));

const isShown = () => current?.section.isConnected;
const hasNeighbours = () => link("next") || link("prev");
register({ key: "ArrowRight", label: "reveal the next step", when: isShown, repeats: true, run: () => current.reveal(current.after + 1) });
register({ key: "ArrowLeft", label: "hide the last step", when: isShown, repeats: true, run: () => current.reveal(current.after - 1) });
register({ key: "p", label: "play, pause", when: isShown, run: () => current.play() });
register({ key: ["↑", "↓"], label: "in the matrix: earlier, later", when: isShown });
register({ key: "j", label: "next", when: hasNeighbours, repeats: true, run: () => move("next") });
register({ key: "k", label: "previous", when: hasNeighbours, repeats: true, run: () => move("prev") });
