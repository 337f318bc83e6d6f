// How long a person is at something: while the page is in view, and no longer than a while after the last movement.

const IDLE = 60_000;
const SIGNS = ["keydown", "pointerdown", "pointermove", "wheel", "scroll", "touchmove"];

let spent = 0;
let since = performance.now();
let running = !document.hidden;

const count = () => {
  const now = performance.now();
  if (running) spent += Math.min(now - since, IDLE);
  since = now;
};

for (const sign of SIGNS) document.addEventListener(sign, count, { passive: true, capture: true });
document.addEventListener("visibilitychange", () => {
  count();
  running = !document.hidden;
});

/** The seconds since this was asked last. */
export const lap = () => {
  count();
  const seconds = Math.round(spent) / 1000;
  spent = 0;
  return seconds;
};
