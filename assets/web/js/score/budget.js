// How much of a long solution is read in hindsight, and what that takes, which is told before anything is scored.
import { ask, latest } from "../shared/connection.js";

const place = () => document.querySelector("#budget");
const control = (name) => place().querySelector(`[name=${name}]`);

/** The budget for a request: the number of tokens as typed, or `auto`. */
export const budget = () => (control("reads").value === "some" ? control("tokens").value : control("reads").value);

/** Choose a budget in the page. */
export const setBudget = (value) => {
  const isNumber = !["auto", "1"].includes(value);
  control("reads").value = isNumber ? "some" : value;
  if (isNumber) control("tokens").value = value;
  control("tokens").parentElement.hidden = !isNumber;
  if (value !== "auto") place().hidden = false;
};

// Milliseconds without a change after which the cost is asked for, and characters below which it is always small.
const PAUSE = 300;
const SHORT = 500;

/** Tell what the solution takes, once it rests. It is shown if it is much, or if something was chosen. */
export const tellCost = latest(async (signal, state) => {
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
  if (signal.aborted) return;
  const values = state();
  const isShort = JSON.stringify(values.steps ?? values.solution).length < SHORT && values.budget === "auto";
  const answer = isShort ? { cost: "", long: false } : await ask("cost", [values], signal);
  if (signal.aborted) return;
  place().querySelector("#cost").innerHTML = answer.cost;
  place().hidden = !answer.long && values.budget === "auto" && !place().contains(document.activeElement);
});

/** Call `changed` when another budget is chosen. */
export const onBudget = (changed) => {
  place().addEventListener("input", () => {
    control("tokens").parentElement.hidden = control("reads").value !== "some";
    changed();
  });
};
