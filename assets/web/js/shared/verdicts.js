// Verdicts on steps from numbers on the page. They are compared in single precision, as the server compares them:
// otherwise a step whose number equals the threshold would be judged differently here.

/** The signs of verdicts. */
export const MARKS = { valid: "✓", redundant: "○", "not valid": "✕" };

/** True if a validity reaches its threshold. */
export const isValid = (validity, thresholds) => Math.fround(validity) >= Math.fround(thresholds.validity);

/** True if a redundancy reaches its threshold; it is null for an evaluator that gives none. */
export const isRedundant = (redundancy, thresholds) =>
  redundancy !== null && Math.fround(redundancy) >= Math.fround(thresholds.redundancy);

/** The verdict on a step. */
export const verdictOf = (validity, redundancy, thresholds) => {
  if (!isValid(validity, thresholds)) return "not valid";
  return isRedundant(redundancy, thresholds) ? "redundant" : "valid";
};
