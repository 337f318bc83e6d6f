// Verdicts on steps from numbers on the page. They are compared in single precision, as the server compares them:
// otherwise a step whose number equals the threshold would be judged differently here.

/** The signs of verdicts. */
export const MARKS = { valid: "✓", redundant: "○", "not valid": "✕" };

/** True if a validity reaches its threshold. */
export const isValid = (validity, thresholds) => Math.fround(validity) >= Math.fround(thresholds.validity);

/** The verdict on a step, whose redundancy is null for an evaluator that gives none. */
export const verdictOf = (validity, redundancy, thresholds) => {
  if (!isValid(validity, thresholds)) return "not valid";
  const isRedundant = redundancy !== null && Math.fround(redundancy) >= Math.fround(thresholds.redundancy);
  return isRedundant ? "redundant" : "valid";
};
