// A triangle of probabilities as the server packs it, and what can be read from one of its entries.

const LABELS = ["neg", "neu", "pos"];

/**
 * Read base64 of little-endian float32, rows of neg, neu, pos. Gives a function of row and column; row `j` has the
 * columns 0 to `j`.
 */
export const readTriangle = (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const numbers = new Float32Array(bytes.buffer);
  return (row, column) => {
    const start = 3 * ((row * (row + 1)) / 2 + column);
    return numbers.subarray(start, start + 3);
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
