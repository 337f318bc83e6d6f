// The hindsight matrix as a table: a row for each step revealed, and a column for each step. Steps of a long solution are
// grouped; the group with the chosen step and the one with the row in view are open.
//
// A group of rows shows its last row, and a group of columns its worst step, so each cell belongs to a row and a step.
import { element } from "../shared/dom.js";
import { colourCell, NOTABLE, signed } from "./reveal.js";

// The most names that fit beside the matrix without touching.
const MOST_NAMES = 20;

const single = (place) => ({ from: place, to: place });

// The spans of an axis in groups; the group with the place `open` is divided into its steps.
const spansOf = (count, open) => {
  const size = Math.ceil(Math.sqrt(count));
  return [...Array(Math.ceil(count / size)).keys()].flatMap((group) => {
    const [from, to] = [group * size, Math.min(count, (group + 1) * size) - 1];
    return open >= from && open <= to ? [...Array(to - from + 1).keys()].map((i) => single(from + i)) : [{ from, to }];
  });
};

const isGroup = ({ from, to }) => from !== to;
const has = ({ from, to }, place) => from <= place && place <= to;

export class Matrix {
  constructor(page) {
    this.page = page;
    this.table = page.section.querySelector(".matrix table");
    // Words for cells with failing equations, as [row, column, words].
    this.marked = JSON.parse(page.section.dataset.marked);
    // The server draws all cells unless there are too many.
    this.isGrouped = !this.table.tBodies[0].rows.length;
    this.table.classList.toggle("grouped", this.isGrouped);
    this.drawn = "";
  }

  spans(open) {
    const count = this.page.names.length;
    return this.isGrouped ? spansOf(count, open) : [...Array(count).keys()].map(single);
  }

  /** The row in view: that of a left-out step, or else the last one revealed, or that of the chosen step. */
  get row() {
    const { page } = this;
    return page.rests.leftOut ?? Math.max(page.after, page.step);
  }

  /** Draw the table again if other groups are open, or if the numbers have changed. */
  show() {
    const [rows, columns] = [this.spans(this.row), this.spans(this.page.step)];
    const drawn = JSON.stringify([rows, columns, Boolean(this.page.rests.rows)]);
    if (drawn !== this.drawn) this.draw(rows, columns);
    this.drawn = drawn;
    this.showState();
  }

  draw(rows, columns) {
    const held = this.table.contains(document.activeElement);
    Object.assign(this, { rows, columns });
    this.table.tHead.rows[0].replaceChildren(this.table.tHead.rows[0].cells[0], ...columns.map((span, i) => this.header("col", span, i, columns)));
    this.cells = rows.map((row) => columns.map((column) => this.cell(row, column)).filter(Boolean));
    this.table.tBodies[0].replaceChildren(
      ...rows.map((row, j) => element("tr", {}, this.header("row", row, j, rows), ...this.cells[j].map(({ cell }) => cell))),
    );
    if (this.isGrouped) this.page.section.style.setProperty("--n", Math.max(rows.length, columns.length));
    if (held) this.find(this.row, this.page.step)?.focus({ preventScroll: true });
  }

  // A phone has room for every second one of the names.
  header(scope, span, place, spans) {
    const every = Math.ceil(spans.length / MOST_NAMES);
    const kind = place % every ? "" : place % (2 * every) ? "named also" : "named";
    const [first, last] = [this.page.names[span.from], this.page.names[span.to]];
    const attributes = { scope, ...(kind && { class: kind }), ...(isGroup(span) && { title: `steps ${first} to ${last}`, "data-group": "" }) };
    if (scope === "col") return element("th", attributes, first);
    return element("th", attributes, element("span", {}, "after "), last);
  }

  // The cell of a row and a column with its meaning, or null where there is none.
  cell(row, column) {
    const { page } = this;
    if (column.from > row.to) return page.rests.rows ? this.restCell(row, column) : null;
    const after = row.to;
    const steps = [...Array(Math.min(column.to, after) - column.from + 1).keys()].map((i) => column.from + i);
    const step = this.worst(after, steps);
    const value = page.number(after, step);
    const cell = element("td", this.marks(row, column), value.toFixed(2));
    cell.setAttribute("aria-label", this.words(row, column, after, step, value));
    colourCell(cell, value, page.thresholds.validity);
    if (isGroup(row) || isGroup(column)) cell.title = [cell.getAttribute("aria-label"), cell.title].filter(Boolean).join("; ");
    return { cell, after, step };
  }

  worst(after, steps) {
    const value = (step) => this.page.number(after, step);
    return steps.reduce((found, step) => (value(step) < value(found) ? step : found));
  }

  words(row, column, after, step, value) {
    const { page } = this;
    const says = `${value.toFixed(2)}, ${page.verdict(after, step)}`;
    if (!isGroup(column)) return `validity ${says}, ${page.mode(after, step)}`;
    return `steps ${page.names[column.from]} to ${page.names[column.to]}: lowest validity in step ${page.names[step]}, ${says}, ${page.mode(after, step)}`;
  }

  marks(row, column) {
    const isOnline = !isGroup(row) && !isGroup(column) && this.page.ends[column.from] === row.from;
    const found = this.marked.find(([j, i]) => has(row, j) && has(column, i));
    const group = isGroup(row) || isGroup(column);
    return { ...(group && { "data-group": "" }), ...(isOnline && { "data-online": "" }), ...(found && { "data-equation": "", title: found[2] }) };
  }

  // Above the diagonal: the change of the column's step without the row's; for groups, the largest loss.
  restCell(row, column) {
    const { page } = this;
    const { rests, names } = page;
    let found = null;
    for (let leftOut = row.from; leftOut <= row.to; leftOut++) {
      for (let step = column.from; step <= column.to; step++) {
        if (!rests.knows(leftOut, step)) continue;
        const change = rests.change(leftOut, step);
        if (!found || change < found.change) found = { change, after: leftOut, step };
      }
    }
    const kind = !found || Math.abs(found.change) < NOTABLE ? "" : found.change < 0 ? "fell" : "rose";
    const cell = element("td", { class: `rest ${kind}`, ...((isGroup(row) || isGroup(column)) && { "data-group": "" }) }, found ? signed(found.change) : "");
    if (!found) return { cell, after: row.to, step: column.from };
    cell.title = `step ${names[found.step]} without step ${names[found.after]}: ${signed(found.change)}`;
    cell.style.setProperty("--x", Math.min(1, Math.abs(found.change)).toFixed(3));
    return { cell, after: found.after, step: found.step };
  }

  find(row, step) {
    const [j, i] = [this.rows.findIndex((span) => has(span, row)), this.columns.findIndex((span) => has(span, step))];
    return this.cells[j]?.[i]?.cell;
  }

  /** The row and the step of a cell or of the header of a group, or null. */
  at(node) {
    const cell = node.closest("td, th");
    if (!cell?.parentElement || !this.table.contains(cell)) return null;
    const [j, i] = [cell.parentElement.rowIndex - 1, cell.cellIndex - 1];
    if (cell.matches("td")) return this.cells[j]?.[i] ?? null;
    if (!("group" in cell.dataset)) return null;
    if (j < 0) return this.headed(this.columns[i]);
    return { after: this.rows[j].to, step: Math.min(this.page.step, this.rows[j].to) };
  }

  headed({ from, to }) {
    const after = Math.max(this.page.after, to);
    return { after, step: this.worst(after, [...Array(to - from + 1).keys()].map((i) => from + i)) };
  }

  showState() {
    const { page, table } = this;
    this.columns.forEach((span, i) => {
      const head = table.tHead.rows[0].cells[i + 1];
      head.classList.toggle("on", has(span, page.step) && page.isShown(page.step));
      head.classList.toggle("later", span.from > page.after);
    });
    this.rows.forEach((span, j) => {
      const row = table.tBodies[0].rows[j];
      row.classList.toggle("on", has(span, page.after));
      row.classList.toggle("later", span.to > page.after);
    });
    const now = this.find(this.row, page.step);
    const before = table.querySelector("td[tabindex]");
    if (before === now) return;
    before?.removeAttribute("tabindex");
    now?.setAttribute("tabindex", "0");
  }
}
