// The reveal curve as SVG: a score of a step as later steps are revealed.
import { drawn } from "../shared/dom.js";
import { NOTABLE } from "./reveal.js";

const WIDTH = 470;
const HEIGHT = 214;
const LEFT = 34;
const RIGHT = 20;
const TOP = 24;
const BOTTOM = 28;
// The most points that are all numbered, the number above which points are small, and the most names below the axis.
const MOST_NUMBERS = 8;
const MANY = 16;
const MOST_NAMES = 10;
// The number of points above which dots would cover the line. Then only points with a number have a dot, and diamonds are shown
// only where the missing step makes a notable difference.
const CROWDED = 100;
// The distance between places that leaves room for `after 3`.
const WIDE = 72;
// The width of a number.
const NUMBER = 32;

// The distance between a threshold and an end of the axis that leaves room to name both.
const APART = 0.12;

// The positions of the values at `count` places.
const layout = (count) => ({
  x: (place) => (count === 1 ? (LEFT + WIDTH - RIGHT) / 2 : LEFT + (place * (WIDTH - LEFT - RIGHT)) / (count - 1)),
  y: (value) => TOP + (1 - value) * (HEIGHT - TOP - BOTTOM),
});

// The place of the largest change; 0 if there is none.
const largestJump = (values) => {
  let found = 0;
  let most = 0;
  values.slice(1).forEach((value, place) => {
    const size = Math.abs(value - values[place]);
    if (size > most) [most, found] = [size, place + 1];
  });
  return found;
};

const frame = ({ y }, threshold) => {
  const isFree = (value) => Math.abs(value - threshold) >= APART;
  const parts = [0, 1].flatMap((value) => [
    drawn("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    ...(isFree(value) ? [drawn("text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, String(value))] : []),
  ]);
  const line = { class: "threshold", x1: LEFT, x2: WIDTH - RIGHT, y1: y(threshold), y2: y(threshold) };
  return [...parts, drawn("line", line), drawn("text", { class: "tick", x: LEFT - 5, y: y(threshold) + 4, "text-anchor": "end" }, threshold.toFixed(2))];
};

const names = ({ x }, revealed) => {
  const every = Math.ceil(revealed.length / MOST_NAMES);
  const long = revealed.length <= 5 && (revealed.length === 1 || x(1) - x(0) >= WIDE);
  return revealed
    .map((name, place) => [name, place])
    .filter(([, place]) => place % every === 0)
    .map(([name, place]) =>
      drawn("text", { class: "tick", x: x(place), y: HEIGHT - 8, "text-anchor": "middle" }, long ? `after ${name}` : name),
    );
};

// The points with a number: all if they are few, otherwise the jump and the ends, if there is room.
const numbered = (count, jump, x) => {
  if (count <= MOST_NUMBERS) return new Set(Array(count).keys());
  const chosen = [];
  for (const place of [jump, jump - 1, 0, count - 1]) {
    if (place >= 0 && chosen.every((other) => Math.abs(x(other) - x(place)) >= NUMBER)) chosen.push(place);
  }
  return new Set(chosen);
};

// The number of a point on the axis begins at the point, since the axis has its own numbers to the left.
const point = (x, y, value, { label, kind, number, below, size }) => {
  const dot = drawn("circle", { class: kind, cx: x, cy: y, r: size });
  dot.append(drawn("title", {}, label));
  if (!number) return [dot];
  const [at, anchor] = x === LEFT ? [x - size, "start"] : [x, "middle"];
  return [dot, drawn("text", { class: "number", x: at, y: below ? y + 18 : y - 9, "text-anchor": anchor }, value.toFixed(2))];
};

const diamond = (x, top, label, size) => {
  const points = `${x},${top - size} ${x + size},${top} ${x},${top + size} ${x - size},${top}`;
  const shape = drawn("polygon", { class: "without", points });
  shape.append(drawn("title", {}, label));
  return shape;
};

/**
 * Draw the curve of `values`, one for each of the first names in `revealed`. `without` has the value with that step left
 * out, for each step but the first, null where it is not known; or is null itself. `now` is the place of the last step
 * revealed.
 */
export const drawCurve = (holder, { values, revealed, threshold, without, now, title }) => {
  const plot = layout(revealed.length);
  const { x, y } = plot;
  const jump = largestJump(values);
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title });
  svg.append(...frame(plot, threshold), ...names(plot, revealed));
  if (now >= 0) svg.append(drawn("line", { class: "now", x1: x(now), x2: x(now), y1: TOP - 8, y2: HEIGHT - BOTTOM }));
  svg.append(drawn("polyline", { class: "line", points: values.map((value, i) => `${x(i)},${y(value)}`).join(" ") }));
  if (jump) {
    const ends = { x1: x(jump - 1), y1: y(values[jump - 1]), x2: x(jump), y2: y(values[jump]) };
    svg.append(drawn("line", { class: values[jump] < values[jump - 1] ? "jump fell" : "jump rose", ...ends }));
  }
  const size = values.length < MANY ? 4 : 2.2;
  without?.forEach((value, i) => {
    const isShown = value !== null && (values.length < CROWDED || Math.abs(value - values.at(-1)) >= NOTABLE);
    if (isShown) svg.append(diamond(x(i + 1), y(value), `without step ${revealed[i + 1]}: ${value.toFixed(2)}`, size + 1.2));
  });
  const withNumber = numbered(values.length, jump, x);
  values.forEach((value, i) => {
    const number = withNumber.has(i);
    if (!number && values.length >= CROWDED) return;
    const kind = value >= threshold ? "yes" : "no";
    // Where the curve turns down, there is room below its line.
    const below = y(value) < TOP + 8 || (i > 0 && values[i - 1] > value + 0.15 && value > 0.15);
    const label = `after step ${revealed[i]}: ${value.toFixed(2)}`;
    svg.append(...point(x(i), y(value), value, { label, kind, number, below, size }));
  });
  holder.replaceChildren(svg);
};
