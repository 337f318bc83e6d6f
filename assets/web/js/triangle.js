// The record of a hindsight judgment as the server writes it, and what can be read from an entry of its triangle.

const LABELS = ["neg", "neu", "pos"];

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

/** Its three probabilities in words. */
export const tell = (probs) => LABELS.map((name, i) => `${name} ${probs[i].toFixed(2)}`).join(", ");
