// The solution of the Score page: the text in its box, and the steps that it is split into. After an edit of steps the
// text is written again, so that both always agree.
import { ask, latest } from "../shared/connection.js";

const box = () => document.querySelector("#solution textarea");
const place = () => document.querySelector("#preview");
const copy = (steps) => structuredClone(steps);

/** True if two lists of steps are the same. */
export const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// Each step is a list of texts: one, or its sub-steps.
let steps = [];
// The text of these steps; null until it is written.
let text = null;
// True if thinking before the solution is judged too.
let judgesThinking = false;
// True if the last change was in the text, not in the steps.
let isTyped = true;
const past = [];
const future = [];
const listeners = [];

/** The steps of the solution. */
export const solutionSteps = () => steps;

/** Call `listener` whenever the steps change, with true once their list is drawn. Before that, a listener that has the
 * steps scored returns true, since their text then comes with the result. */
export const onSteps = (listener) => listeners.push(listener);

const tell = (isDrawn) => listeners.map((listener) => listener(isDrawn)).includes(true);

const now = () => ({ steps: copy(steps), text });

const draw = (html) => {
  place().innerHTML = html;
  readSteps();
  tell(true);
};

const readSteps = () => {
  const data = place().querySelector("ol.preview")?.dataset;
  steps = JSON.parse(data?.steps ?? "[]");
  judgesThinking = data?.judgesThinking !== undefined;
};

const longest = () => Number(box().dataset.longest);

/** As much of a text as the server needs to reject it as too long. */
export const within = (typed) => typed.slice(0, longest() + 1);

// Milliseconds to wait for more of the text.
const PAUSE = 40;

const split = latest(async (signal, typed, thinking = judgesThinking) => {
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
  if (signal.aborted) return;
  const answer = await ask("split", { text: within(typed), thinking }, signal);
  if (typed === box().value) draw(answer.steps);
});

/** Put a text, and its split if known, into the page. */
export const putSolution = (written, html) => {
  write.end();
  text = box().value = written;
  if (html === undefined) split(written);
  else {
    split.end();
    draw(html);
  }
};

const write = latest(async (signal) => {
  const answer = await ask("write", { steps }, signal);
  if (!signal.aborted) putSolution(answer.text, answer.steps);
});

/** Have the server write the text of edited steps, unless that is done. */
export const settleSolution = () => text === null && write();

/** The solution for a request: its text, or its steps if the text is not written yet. */
export const solutionState = () => (text === null && steps.length ? { steps } : { solution: within(box().value), thinking: judgesThinking });

const set = (changed) => {
  split.end();
  [steps, text, isTyped] = [changed, null, false];
  return tell(false);
};

/** Change the steps, with undo; with `isWritten`, the caller takes care of their text. */
export const changeSteps = (changed, isWritten = false) => {
  past.push(now());
  future.length = 0;
  if (!set(copy(changed)) && !isWritten) write();
};

/** Change the steps further as part of the last change; the caller takes care of their text. */
export const amendSteps = (changed) => void set(copy(changed));

const travel = (from, to) => {
  const found = from.pop();
  if (!found) return false;
  to.push(now());
  set(found.steps);
  if (found.text === null) write();
  else putSolution(found.text);
  return true;
};

export const undo = () => travel(past, future);
export const redo = () => travel(future, past);
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;

/** Replace the solution, without undo. */
export const adoptSolution = (written, html) => {
  past.length = future.length = 0;
  isTyped = true;
  putSolution(written, html);
};

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("#preview button[data-thinking]");
  if (button) split(box().value, Boolean(button.dataset.thinking));
});

// Chromium takes seconds to find the direction of a long text (minutes for 2 MB), and blocks the page during that time.
const LONG = 20000;
const FROM_RIGHT = /^\P{L}*[\p{Script=Arabic}\p{Script=Hebrew}]/u;

const refuse = latest(async (signal, pasted) => {
  split.end();
  const answer = await ask("split", { text: within(pasted) }, signal);
  draw(answer.steps);
});

document.addEventListener("beforeinput", (event) => {
  const { target, data } = event;
  if (target !== box() || !(data?.length > LONG)) return;
  target.dir = FROM_RIGHT.test(data) ? "rtl" : "ltr";
  if (data.length <= longest()) return;
  event.preventDefault();
  refuse(data);
});

document.addEventListener("input", ({ target }) => {
  if (target !== box()) return;
  // Undo brings back the edited steps.
  if (!isTyped && steps.length) {
    past.push(now());
    future.length = 0;
  }
  isTyped = true;
  write.end();
  text = target.value;
  split(text);
});

// The first response contains both, and a browser may have restored typed text after a reload.
if (box()) {
  text = box().defaultValue;
  readSteps();
  if (box().value !== text) putSolution(box().value);
}
