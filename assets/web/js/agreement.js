// Cells of a heatmap by the arrow keys: of its links one is in the order of Tab, the one last moved to.

import { register } from "./keys.js";

const GRID = "table[data-moves]";
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

const linkAt = (grid, row, column) => grid.tBodies[0].rows[row]?.cells[column]?.querySelector("a");

const move = (link, [down, right]) => {
  const cell = link.closest("th, td");
  const grid = link.closest(GRID);
  const row = cell.parentElement.sectionRowIndex + down;
  // Traces differ in length: from a long one to the last step of a short one.
  const last = (grid.tBodies[0].rows[row]?.cells.length ?? 1) - 1;
  const next = linkAt(grid, row, down ? Math.min(cell.cellIndex, last) : cell.cellIndex + right);
  if (!next) return;
  if (cell.tagName === "TD") link.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
};

document.addEventListener("keydown", (event) => {
  const link = event.target.closest?.(`${GRID} tbody a`);
  if (!link || !MOVES[event.key] || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  event.preventDefault();
  move(link, MOVES[event.key]);
});

register({
  key: Object.keys(MOVES),
  label: "go to another cell of the heatmap",
  when: () => Boolean(document.querySelector(GRID)),
});
