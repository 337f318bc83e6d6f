// The record of a hindsight judgment as the server writes it, what can be read from an entry of its triangle, and what
// the list of steps and the matrix show of one: bar, mark, change, colour.

const LABELS = ["neg", "neu", "pos"];
const MARKS = { valid: "✓", redundant: "○", "not valid": "✕" };

/**
 * Read rows of entries: three probabilities each, validity alone, or null. Gives a function of row and column, whose
 * three numbers have single precision, as the server's have; row `j` has the columns 0 to `j`.
 */
export const readTriangle = (rows) => (row, column) => {
  const entry = rows[row][column] ?? [0, 0, 0];
  return (typeof entry === "number" ? [1 - entry, 0, entry] : entry).map(Math.fround);
};

/** The triangle of a section's record, its thresholds, and for each sub-step its name and the place its step ends at. */
export const readJudgment = ({ dataset }) => {
  const { hindsight, offline, thresholds } = JSON.parse(dataset.judgment);
  const steps = offline.steps.map(({ step }) => step);
  const ends = steps.map((step) => steps.lastIndexOf(step));
  const isWhole = steps.map((step, i) => steps.indexOf(step) === ends[i]);
  const threeWay = thresholds.redundancy !== null;
  return {
    at: readTriangle(hindsight),
    names: offline.steps.map(({ step, substep }, i) => (isWhole[i] ? `${step}` : `${step}.${substep}`)),
    ends,
    thresholds: {
      threeWay,
      validity: Math.fround(thresholds.validity),
      redundancy: threeWay ? Math.fround(thresholds.redundancy) : Infinity,
    },
  };
};

/** One of the numbers of an entry: its validity, or a label's probability. In single precision, as the server has it. */
export const valueOf = (probs, name) =>
  name === "validity" ? Math.fround(probs[1] + probs[2]) : probs[LABELS.indexOf(name)];

/** What thresholds make of an entry. */
export const verdictOf = (probs, { validity, redundancy }) => {
  if (valueOf(probs, "validity") < validity) return "not valid";
  return probs[1] >= redundancy ? "redundant" : "valid";
};

// Its three probabilities in words.
const tell = (probs) => LABELS.map((name, i) => `${name} ${probs[i].toFixed(2)}`).join(", ");

/** From here on a change is set in colour, as on the other pages. */
export const NOTABLE = 0.1;

// A change with its sign.
const signed = (value) => {
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
