// Judges a result anew at other thresholds, from the numbers on the page.
import { isRedundant, isValid, MARKS, verdictOf } from "../shared/verdicts.js";

const DEFAULTS = { validity: 0.5, redundancy: 0.15 };
const ORDER = ["validity", "redundancy"];

const verdict = ([validity, redundancy], at) => verdictOf(validity, redundancy, at);

const mark = (cell, word) => {
  const [sign, bar] = [cell.querySelector(".mark"), cell.querySelector(".bar")];
  if (sign.title === word) return;
  sign.title = word;
  sign.textContent = MARKS[word];
  const label = `${bar.title.slice(0, bar.title.lastIndexOf(";"))}; ${word}`;
  bar.title = label;
  bar.setAttribute("aria-label", label);
};

// As `app.score.result` counts them.
const counts = (words) => {
  if (words.length === 1) return "";
  const [wrong, redundant] = ["not valid", "redundant"].map((wanted) => words.filter((word) => word === wanted).length);
  const valid = wrong ? `${wrong} of ${words.length} steps not valid` : `all ${words.length} steps valid`;
  return redundant ? `${valid}, ${redundant} redundant` : valid;
};

const conclude = (said, scores, at) => {
  const valid = scores.every(([validity]) => isValid(validity, at));
  const redundant = scores.some(([, redundancy]) => isRedundant(redundancy, at));
  const word = said.querySelector("strong");
  word.textContent = valid ? "valid" : "not valid";
  word.className = valid ? "good" : "bad";
  const told = said.querySelector(".also");
  if (told) told.hidden = !redundant;
  const words = scores.map((score) => verdict(score, at));
  said.querySelector(".counts").textContent = counts(words);
};

/** The current thresholds of a result. */
export const thresholdsOf = (section) =>
  Object.fromEntries(ORDER.map((name) => [name, Number(section.dataset[name])]));

/** Put the thresholds into an address's query if they differ from those of the permalink. */
export const inAddress = (section, query) => {
  const at = thresholdsOf(section);
  for (const [name, param] of [["validity", "valid"], ["redundancy", "redundant"]]) {
    section.dataset[`${name}First`] ??= section.dataset[name];
    if (at[name] === Number(section.dataset[`${name}First`])) query.delete(param);
    else query.set(param, at[name]);
  }
};

/** Set the sliders to the thresholds of the result, which outlive a previous result. */
export const settle = (section) => {
  for (const [name, value] of Object.entries(thresholdsOf(section))) {
    const slider = section.querySelector(`.thresholds [name=${name}]`);
    if (!slider) continue;
    slider.value = value;
    slider.nextElementSibling.textContent = value.toFixed(2);
  }
  const reset = section.querySelector("[data-defaults]");
  if (reset) reset.disabled = ORDER.every((name) => Number(section.dataset[name]) === DEFAULTS[name]);
};

const rejudge = (section, at) => {
  const rows = [...section.querySelectorAll("ol.steps > li")];
  const scores = rows.map((row) => JSON.parse(row.dataset.scores));
  rows.forEach((row, i) => row.querySelectorAll(".c").forEach((cell, j) => mark(cell, verdict(scores[i][j], at))));
  section.querySelectorAll(".said").forEach((said, j) => conclude(said, scores.map((row) => row[j]), at));
  for (const name of ORDER) {
    for (const place of section.querySelectorAll(`[data-threshold=${name}]`)) place.textContent = at[name];
  }
  settle(section);
};

const set = (section, at) => {
  for (const link of [...section.querySelectorAll("a[data-at]")]) link.dataset.href ??= link.getAttribute("href");
  inAddress(section, new URLSearchParams());
  for (const name of ORDER) section.dataset[name] = at[name];
  rejudge(section, at);
  for (const link of section.querySelectorAll("a[data-at]")) {
    const url = new URL(link.dataset.href, location.href);
    inAddress(section, url.searchParams);
    link.setAttribute("href", url.pathname + url.search);
  }
  section.dispatchEvent(new CustomEvent("thresholds", { bubbles: true }));
};

document.addEventListener("input", ({ target }) => {
  const section = target.closest?.(".thresholds")?.closest("section");
  if (section) set(section, { ...thresholdsOf(section), [target.name]: Number(target.value) });
});

document.addEventListener("click", ({ target }) => {
  const section = target.closest?.("[data-defaults]")?.closest("section");
  if (section) set(section, DEFAULTS);
});

document.addEventListener("submit", (event) => event.target.matches(".thresholds") && event.preventDefault());
