// Which step rests on which: the scores of a trace with each step left out, above the diagonal of the matrix, as arcs beside
// the steps, and in words.
import { drawn, setText } from "../shared/dom.js";
import { NOTABLE, readProbs, signed, validityOf } from "./reveal.js";

// The distance between the arcs of neighbouring steps, as a fraction of the room beside the steps.
const NEAR = 0.22;

export class Rests {
  constructor(page) {
    const { section } = page;
    Object.assign(this, { page, section, rows: null, leftOut: null });
    this.list = section.querySelector("ol.steps");
    new ResizeObserver(() => this.rows && this.drawArcs()).observe(this.list);
  }

  /** Show the scores that the page has, or request them from the server, unless a button offers to do so. */
  learn() {
    const { leftOut, ask } = this.section.dataset;
    const offer = this.section.querySelector("button.offer");
    if (leftOut) this.learned(JSON.parse(leftOut));
    else if (ask && (!offer || offer.hidden)) this.ask();
  }

  async ask(button) {
    const { ask } = this.section.dataset;
    if (!ask) return;
    if (button) button.hidden = true;
    // Reserve room for the answer, which would otherwise move what is below.
    this.section.classList.add("asks");
    for (const item of this.section.querySelectorAll(".of-rest")) item.hidden = false;
    this.list.parentElement.classList.add("with-arcs");
    this.wait("Leaving out one step at a time …");
    try {
      const answer = await fetch(ask);
      const found = await answer.json();
      if (!this.section.isConnected) return;
      if (answer.ok) this.learned(found);
      else this.wait(`${found.error} ${found.hint}`);
    } catch {
      this.wait("The server does not answer. Reload the page.");
    }
  }

  learned({ rows, says, rests, unused }) {
    this.rows = rows;
    this.carried = this.notable();
    this.tell((step) => says[step], (step) => rests[step]);
    setText(this.section.querySelector(".unused"), unused);
    if (this.carried.length) this.list.parentElement.classList.add("with-arcs");
    this.focus();
    // The address stays: nobody has chosen anything.
    this.page.show();
  }

  /** If later steps change nothing, begin with the step on which most others rest. */
  focus() {
    const { page, section } = this;
    if (!section.querySelector(".say.constant") || new URLSearchParams(location.search).has("step")) return;
    const carried = page.names.map((_, i) => this.carried.filter(({ leftOut }) => leftOut === i).length);
    const most = Math.max(...carried);
    if (most > 0) page.step = carried.indexOf(most);
  }

  // Say the same of every step until the answer is there.
  wait(words) {
    this.tell(() => "", () => words);
  }

  tell(says, rests) {
    for (const told of this.section.querySelectorAll(".told")) {
      const step = Number(told.dataset.of);
      told.querySelector(".without").textContent = says(step);
      told.querySelector(".rests").textContent = rests(step);
    }
  }

  knows(leftOut, step) {
    return (this.rows?.[leftOut]?.[step] ?? null) !== null;
  }

  /** A step's probabilities without each later step in turn, null for an unknown one; undefined if none is known. */
  later(step) {
    return this.rows?.slice(step + 1).map((row) => (row[step] === null ? null : readProbs(row[step])));
  }

  /** The change of a step's validity without another step. */
  change(leftOut, step) {
    const { page } = this;
    return this.without(leftOut, step) - page.number(page.last, step);
  }

  /** The validity of a step without another step. */
  without(leftOut, step) {
    return validityOf(readProbs(this.rows[leftOut][step]));
  }

  show() {
    this.showSteps();
    this.drawArcs();
  }

  // The pairs of a step that is left out and a step that loses validity.
  notable() {
    const { page } = this;
    const places = page.names.map((_, i) => i);
    const offline = places.map((step) => page.number(page.last, step));
    const loses = (leftOut, step) => this.knows(leftOut, step) && this.without(leftOut, step) - offline[step] <= -NOTABLE;
    return places.flatMap((leftOut) => places.filter((step) => step !== leftOut && loses(leftOut, step)).map((step) => ({ leftOut, step })));
  }

  /** The pairs of a step and another: those that rest on it, and those that it rests on. */
  pairs(chosen = this.page.step) {
    if (!this.rows) return [];
    return [
      ...this.carried.filter(({ leftOut }) => leftOut === chosen).map((pair) => ({ other: pair.step, ...pair })),
      ...this.carried.filter(({ step }) => step === chosen).map((pair) => ({ other: pair.leftOut, ...pair })),
    ];
  }

  showSteps() {
    const { page } = this;
    const marks = new Map();
    for (const { other, leftOut, step } of this.pairs()) {
      const lost = this.without(leftOut, step) - page.number(page.last, step);
      const words = leftOut === page.step ? `rests on ${page.names[page.step]}` : `${page.names[page.step]} rests on it`;
      marks.set(other, [...(marks.get(other) ?? []), `${words} (${signed(lost)})`]);
    }
    page.items.forEach((item, i) => {
      item.classList.toggle("related", marks.has(i));
      setText(item.querySelector(".rest-mark"), (marks.get(i) ?? []).join(", "));
    });
  }

  drawArcs() {
    const { page, list } = this;
    const holder = list.parentElement;
    holder.querySelector("svg.arcs")?.remove();
    const pairs = this.pairs();
    if (!pairs.length) return;
    const middle = (i) => page.items[i].offsetTop + Math.min(page.items[i].offsetHeight / 2, 24);
    const room = list.offsetLeft;
    const svg = drawn("svg", { class: "arcs", width: room, height: holder.offsetHeight, "aria-hidden": "true" });
    const order = pairs.sort((a, b) => Math.abs(a.other - page.step) - Math.abs(b.other - page.step));
    order.forEach(({ other, leftOut }, place) => {
      const [from, to] = [middle(page.step), middle(other)];
      const reach = Math.max(4, room - 2 - NEAR * room * (place + 1));
      const path = `M ${room} ${from} C ${reach} ${from} ${reach} ${to} ${room} ${to}`;
      svg.append(drawn("path", { class: leftOut === page.step ? "carries" : "rests-on", d: path }));
      svg.append(drawn("circle", { class: leftOut === page.step ? "carries" : "rests-on", cx: room - 1, cy: to, r: 3 }));
    });
    holder.append(svg);
  }
}
