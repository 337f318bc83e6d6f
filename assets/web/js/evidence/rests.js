// What rests on what: the scores of a trace with each step left out, above the diagonal of the matrix, beside the steps
// as arcs, and in words.
import { drawn, setText } from "../shared/dom.js";
import { NOTABLE, readProbs, signed, valueOf } from "./reveal.js";

// How far apart the arcs of neighbouring steps are, in parts of the room that they have beside the steps.
const NEAR = 0.22;

export class Rests {
  constructor(page) {
    const { section } = page;
    Object.assign(this, { page, section, rows: null, leftOut: null });
    this.gap = section.querySelector("input[name=gap]:checked")?.value ?? "deleted";
    this.list = section.querySelector("ol.steps");
    new ResizeObserver(() => this.rows && this.drawArcs()).observe(this.list);
  }

  /** Show what the page says itself, or ask the server, unless a button offers to. */
  learn() {
    const { leftOut, ask } = this.section.dataset;
    const offer = this.section.querySelector("button.offer");
    if (leftOut) this.learned(JSON.parse(leftOut));
    else if (ask && (!offer || offer.hidden)) this.ask();
  }

  choose(gap) {
    this.gap = gap;
    this.rows = this.leftOut = null;
    this.page.changed();
    const button = this.section.querySelector("button.offer");
    if (button) button.hidden = false;
    else this.ask();
  }

  async ask(button) {
    const { ask } = this.section.dataset;
    const { gap } = this;
    if (!ask) return;
    if (button) button.hidden = true;
    this.tell(() => "Leaving out one step at a time …");
    try {
      const answer = await fetch(`${ask}&gap=${gap}`);
      const found = await answer.json();
      if (gap !== this.gap || !this.section.isConnected) return;
      if (answer.ok) this.learned(found);
      else this.tell(() => `${found.error} ${found.hint}`);
    } catch {
      this.tell(() => "The server does not answer. Reload the page.");
    }
  }

  learned({ rows, says, rests, unused }) {
    this.rows = rows.map((row) => row.map((entry) => (entry === null ? null : readProbs(entry))));
    this.page.rows.forEach((row, i) => {
      if (row.length > i + 1) return;
      const added = [...Array(rows.length - row.length)].map(() => Object.assign(document.createElement("td"), { className: "rest" }));
      row[i].after(...added);
      row.push(...added);
    });
    this.tell((step) => says[step], (step) => rests[step]);
    setText(this.section.querySelector(".unused"), unused);
    this.section.querySelector(".of-rest").hidden = false;
    this.list.parentElement.classList.toggle("with-arcs", this.hasPairs());
    this.focus();
    // The address stays: nobody has chosen anything.
    this.page.show();
  }

  hasPairs() {
    return this.page.names.some((_, i) => this.pairs(i).length > 0);
  }

  /** Where later steps change nothing, begin with the step on which most rests. */
  focus() {
    const { page, section } = this;
    if (!section.querySelector(".say.constant") || new URLSearchParams(location.search).has("step")) return;
    const carried = page.names.map((_, i) => this.pairs(i).filter(({ leftOut }) => leftOut === i).length);
    const most = Math.max(...carried);
    if (most > 0) page.step = carried.indexOf(most);
  }

  tell(says, rests = () => "") {
    for (const told of this.section.querySelectorAll(".told")) {
      const step = Number(told.dataset.of);
      told.querySelector(".without").textContent = says(step);
      told.querySelector(".rests").textContent = rests(step);
    }
  }

  knows(leftOut, step) {
    return Boolean(this.rows?.[leftOut]?.[step]);
  }

  /** A step's probabilities without each later one in turn, null for one that is not known; undefined if none is. */
  later(step) {
    return this.rows?.slice(step + 1).map((row) => row[step]);
  }

  /** The change of a step's number without another one. */
  change(leftOut, step) {
    const { page } = this;
    return valueOf(this.rows[leftOut][step], page.value) - page.number(page.last, step, page.value);
  }

  show() {
    this.showCells();
    this.showSteps();
    this.drawArcs();
  }

  showCells() {
    const { page } = this;
    page.rows.forEach((row, leftOut) =>
      row.slice(leftOut + 1).forEach((cell, place) => {
        const step = leftOut + 1 + place;
        const known = this.knows(leftOut, step);
        const change = known ? this.change(leftOut, step) : 0;
        cell.className = known ? `rest ${Math.abs(change) < NOTABLE ? "" : change < 0 ? "fell" : "rose"}` : "rest";
        cell.textContent = known ? signed(change) : "";
        cell.title = known ? `step ${page.names[step]} without step ${page.names[leftOut]}: ${signed(change)}` : "";
        cell.style.setProperty("--x", Math.min(1, Math.abs(change)).toFixed(3));
      }),
    );
  }

  /** The pairs of a step and another: those that rest on it, and those that it rests on. */
  pairs(chosen = this.page.step) {
    const { page } = this;
    const others = page.names.map((_, i) => i).filter((i) => this.rows && i !== chosen);
    const notable = (leftOut, step) =>
      this.knows(leftOut, step) &&
      valueOf(this.rows[leftOut][step], "validity") - page.number(page.last, step) <= -NOTABLE;
    return [
      ...others.filter((i) => notable(chosen, i)).map((i) => ({ other: i, leftOut: chosen, step: i })),
      ...others.filter((i) => notable(i, chosen)).map((i) => ({ other: i, leftOut: i, step: chosen })),
    ];
  }

  showSteps() {
    const { page } = this;
    const marks = new Map();
    for (const { other, leftOut, step } of this.pairs()) {
      const lost = valueOf(this.rows[leftOut][step], "validity") - page.number(page.last, step);
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
