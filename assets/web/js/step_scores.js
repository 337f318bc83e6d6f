// What the list of steps and the matrix show of one entry of the triangle: bar, mark, change, colour.
import { tell, valueOf, verdictOf } from "./triangle.js";

const MARKS = { valid: "✓", redundant: "○", "not valid": "✕" };
const LABELS = ["neg", "neu", "pos"];

/** From here on a change is set in colour, as on the other pages. */
export const NOTABLE = 0.1;

/** A change with its sign. */
export const signed = (value) => {
  const text = Math.abs(value).toFixed(2);
  return text === "0.00" ? text : `${value > 0 ? "+" : "−"}${text}`;
};

/** The bar of a step's row, as its scores are now; `when` says when that is. */
export const showScores = (item, probs, thresholds, when) => {
  const verdict = verdictOf(probs, thresholds);
  const bar = item.querySelector(".bar");
  for (const part of bar.querySelectorAll("i")) part.style.width = `${(100 * valueOf(probs, part.className)).toFixed(1)}%`;
  const told = thresholds.threeWay ? tell(probs) : `validity ${valueOf(probs, "validity").toFixed(2)}`;
  for (const name of ["title", "aria-label"]) bar.setAttribute(name, `${when}: ${told}; ${verdict}`);
  const mark = item.querySelector(".mark");
  mark.textContent = MARKS[verdict];
  mark.title = verdict;
  item.querySelector(".num").textContent = valueOf(probs, "validity").toFixed(2);
  item.querySelectorAll(".three > span").forEach((part, label) => {
    part.textContent = `${LABELS[label]} ${probs[label].toFixed(2)}`;
  });
};

/** The change of a step's row since it was revealed. */
export const showChange = (item, change) => {
  const holder = item.querySelector(".d");
  const kind = Math.abs(change) < NOTABLE ? "" : change > 0 ? "rise" : "fall";
  holder.className = `d ${kind}`;
  holder.lastChild.textContent = signed(change);
};

/** The colour of a cell that shows a validity: the verdict, and how far from the threshold it is. */
export const colourCell = (cell, value, validity) => {
  const valid = value >= validity;
  cell.className = valid ? "yes" : "no";
  const far = valid ? (value - validity) / (1 - validity || 1) : (validity - value) / validity;
  cell.style.setProperty("--x", (0.12 + 0.88 * far).toFixed(3));
};
