// The Score page: sends the input to the server, and puts the result into the page and its link into the address.
import { AGAIN, ask, latest } from "../shared/connection.js";
import { announce, html, replaceContent, setText } from "../shared/dom.js";
import { register } from "../shared/keys.js";
import { drawMaths } from "../shared/maths.js";
import { isPlain, wasMoved } from "../shared/navigation.js";
import { quietly } from "../shared/storage.js";
import { abandon, finish, isEditingRow, morph, onRowEdit, putAround } from "./rows.js";
import { adoptSolution, onSteps, putSolution, settleSolution, solutionState, solutionSteps, within } from "./solution.js";
import { endEdit } from "./steps.js";

// Without one, the server's own applies.
let thresholds = {};
// True if the result includes every prefix of a long solution, because the person asked for it.
let hasEvery = false;
// While a step of a result is edited, the comparison stays with the result before the edit.
let base = null;

const part = (id) => document.getElementById(id);
const result = () => document.querySelector("#result section.scored");
const problem = () => document.querySelector("#problem textarea");
const boxes = () => [...document.querySelectorAll("#evaluators input")];
const chosen = () => boxes().filter((box) => box.checked).map((box) => box.value);

const state = () => ({
  problem: within(problem().value),
  ...solutionState(),
  evaluators: chosen(),
  ...thresholds,
  before: base ?? result()?.dataset.token ?? "",
  earlier: result()?.dataset.before ?? "",
  token: result()?.dataset.token ?? "",
});

// A result belongs to what was entered then, which may have changed since. A text counts as the same before it is split, and
// steps before their text is written.
let scored = null;
const entered = () => ({
  problem: within(problem().value).trim(),
  solution: JSON.stringify(solutionState()),
  steps: JSON.stringify(solutionSteps()),
});
const isSameEntry = (one, other) =>
  one.problem === other.problem && (one.solution === other.solution || one.steps === other.steps);
const markStale = () => {
  const now = entered();
  part("result").toggleAttribute("data-stale", Boolean(result()) && !isSameEntry(now, scored));
  if (now.solution === scored.solution) scored.steps = now.steps;
};

// Milliseconds without a change after which the cost is requested, and characters below which it is always small.
const PAUSE = 300;
const SHORT = 500;

/** Show the cost of a long solution, once typing pauses. */
const tellCost = latest(async (signal, state) => {
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
  if (signal.aborted) return;
  const values = state();
  const isShort = JSON.stringify(values.steps ?? values.solution).length < SHORT;
  const answer = isShort ? { cost: "", long: false } : await ask("cost", values, signal);
  if (signal.aborted) return;
  part("cost").innerHTML = answer.cost;
  part("cost").hidden = !answer.long;
});

const tell = (text) => setText(part("scoring"), text);

// Of the result, only the sentence that heads it is read out.
const tellResult = () => {
  tell("");
  announce(document.querySelector("#result .conclusion")?.dataset.said ?? "");
};

// A busy button can be pressed again, and the last press counts.
const setBusy = (isBusy) => {
  setText(part("score"), isBusy ? "Scoring" : "Score");
  // Shown until the result has content, without moving what is below.
  if (isBusy) setText(part("scoring"), "\u00a0");
  part("score").setAttribute("aria-busy", String(isBusy));
  part("result").setAttribute("aria-busy", String(isBusy));
  part("cancel").hidden = !isBusy;
};

// The address of this result.
const address = (section) => {
  const { token, before } = section.dataset;
  return `/?${new URLSearchParams({ s: token, ...(before && { before }) })}`;
};

// True if *More* is open, which the next result keeps.
let isMoreOpen = false;
document.addEventListener("toggle", ({ target }) => { if (target.matches(".further")) isMoreOpen = target.open; }, true);

// Adopt the thresholds and the comparison of the result in the page, and put its link into the address.
const settleResult = (how) => {
  const section = result();
  if (!section) return;
  const { validity, redundancy } = section.dataset;
  thresholds = { validity: Number(validity), redundancy: Number(redundancy) };
  const further = section.querySelector(".further");
  if (further) further.open = isMoreOpen;
  if (section.dataset.token && address(section) !== location.pathname + location.search)
    history[how](null, "", address(section));
};

// The first paint covers what is visible at once; steps further down follow two frames later.
let painted = 0;
const showFirst = () => {
  part("result").classList.add("arriving");
  cancelAnimationFrame(painted);
  painted = requestAnimationFrame(() => {
    painted = requestAnimationFrame(() => setTimeout(() => part("result").classList.remove("arriving")));
  });
};

const replaceResult = (content) => {
  if (!part("result").contains(document.activeElement)) showFirst();
  replaceContent(part("result"), content);
};

const put = (text, how, from = entered()) => {
  const content = html(text);
  drawMaths(content);
  const next = content.querySelector("section.scored");
  // A refusal is shown at the button.
  part("refusal").replaceChildren(...(next ? [] : content.children));
  const isAround = next && isEditingRow() && putAround(result(), next);
  if (!isAround) {
    abandon();
    replaceResult(content);
  }
  settleResult(how);
  tellResult();
  scored = from;
  markStale();
  wait();
};

// While an evaluator is being loaded, the result is requested again unless the input changes.
let again = 0;
const wait = () => {
  clearTimeout(again);
  if (!document.querySelector("#result [data-again], #refusal [data-again]")) return;
  const now = () => JSON.stringify([problem().value, solutionState(), chosen()]);
  const entered = now();
  const isSame = () => entered === now();
  again = setTimeout(() => isSame() && !score.isBusy() && scoreNow("replaceState"), AGAIN);
};

// If scoring takes longer, a change of a step does not start it.
const QUICK = 2000;
let took = 0;
const isQuick = () => took < QUICK;

// Partial results are shown while the request for a slow result is running.
const SOON = 500;
const follow = async (run, request, isPressed) => {
  const ended = new AbortController();
  request.finally(() => ended.abort()).catch(() => {});
  for (let wait = SOON; !ended.signal.aborted; wait = AGAIN) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const answer = ended.signal.aborted ? null : await ask("running", { run }, ended.signal).catch(() => null);
    if (!answer?.result || ended.signal.aborted || isEditingRow()) continue;
    const isFirst = !part("result").querySelector("section.running");
    const content = html(answer.result);
    drawMaths(content);
    part("refusal").replaceChildren();
    replaceResult(content);
    if (isFirst && isPressed) reveal();
  }
};

/** The answer to a request that the server knows by a key, under which its progress is followed. */
const followed = (name, values, signal, run, how) => {
  const request = ask(name, values, signal);
  follow(run, request, how === "pushState");
  return request;
};

// A page over plain HTTP from another machine has no `randomUUID`.
const newRun = () => [...crypto.getRandomValues(new Uint32Array(4))].map((number) => number.toString(36)).join("-");

const score = latest(async (signal, how, every) => {
  setBusy(true);
  const start = performance.now();
  const sent = solutionState();
  const from = entered();
  const run = newRun();
  const answer = await followed("score", { ...state(), run, every }, signal, run, how);
  if (signal.aborted) return;
  took = performance.now() - start;
  // Unless the steps have changed in the meantime.
  const isSame = isSameEntry(entered(), from);
  if (sent.steps && sent.steps === solutionState().steps) putSolution(answer.text, answer.steps);
  hasEvery = Boolean(every);
  put(answer.result, how, isSame ? entered() : from);
  part("saved").replaceChildren();
  return true;
});

const scoreNow = async (how, every = false) => {
  const isScored = await score(how, every);
  if (score.isBusy()) return false;
  setBusy(false);
  settleSolution();
  return isScored;
};

// What was requested is scrolled into view: a result from its beginning, an error with the button. Listeners that also change
// the page do so before, in the same frame, so that it is laid out once.
const reveal = () => requestAnimationFrame(bringIntoSight);

const bringIntoSight = () => {
  const section = document.querySelector("#result section");
  const room = section ?? part("refusal");
  const { top, bottom } = room.getBoundingClientRect();
  const isSeen = section ? top >= 0 && top < innerHeight / 3 : top >= 0 && bottom <= innerHeight;
  if (room.textContent && !isSeen) room.scrollIntoView({ block: section ? "start" : "nearest", behavior: "instant" });
};

/** Score the input, including unfinished edits; with `every`, every prefix of a long solution too. */
const press = async (every = false) => {
  endEdit();
  finish();
  base = null;
  open.end();
  if (await scoreNow("pushState", every)) reveal();
};

const open = latest(async (signal, query, evaluators, how) => {
  const run = newRun();
  const answer = await followed("open", { query, evaluators, run }, signal, run, how);
  if (signal.aborted) return;
  if (answer.problem !== undefined) {
    problem().value = answer.problem;
    adoptSolution(answer.text, answer.steps);
    if (!evaluators && answer.evaluators.length) for (const box of boxes()) box.checked = answer.evaluators.includes(box.value);
  }
  base = null;
  hasEvery = false;
  put(answer.result ?? "", how);
  part("saved").replaceChildren();
  return true;
});

const openNow = async (query, evaluators, how) => {
  score.end();
  setBusy(true);
  const isOpened = await open(query, evaluators, how);
  if (!open.isBusy() && !score.isBusy()) setBusy(false);
  return isOpened;
};

const openAddress = () => openNow(location.search, null, "replaceState");

onRowEdit((isFirst) => {
  if (isFirst) base = result()?.dataset.token ?? "";
  scoreNow(isFirst ? "pushState" : "replaceState");
}, isQuick);

// Edits in the list of steps are scored too, once there is a result.
onSteps((isDrawn) => {
  if (isDrawn) markStale();
  if (isDrawn || !result() || isEditingRow() || !isQuick()) return false;
  base = null;
  scoreNow("pushState");
  return true;
});

// Judge the result again at other thresholds. It changes around the sliders, one of which may be held.
const rejudge = latest(async (signal) => {
  await new Promise((resolve) => setTimeout(resolve, 100));
  if (signal.aborted) return;
  const answer = await ask("rejudge", { ...state(), every: hasEvery }, signal);
  if (signal.aborted) return;
  const content = html(answer.result);
  drawMaths(content);
  const next = content.querySelector("section.scored");
  if (!next || !result()) return;
  const [defaults, itsDefaults] = [result(), next].map((section) => section.querySelector("[data-defaults]"));
  defaults.disabled = itsDefaults.disabled;
  morph(result(), next, defaults.form, itsDefaults.form);
  settleResult("replaceState");
  tellResult();
});

const moveSlider = (slider, value) => {
  slider.value = value;
  slider.nextElementSibling.textContent = Number(value).toFixed(2);
  thresholds[slider.name] = Number(value);
  rejudge();
};

document.addEventListener("input", ({ target }) => target.closest?.(".thresholds") && moveSlider(target, target.value));

// A page over plain HTTP from another machine has no clipboard, and a browser may deny it: the text is copied from a
// selection.
const copied = async (text) => {
  const isCopied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  if (isCopied) return;
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
};

const copy = async (control, text) => {
  const { textContent } = control;
  await copied(text);
  control.textContent = "Copied";
  setTimeout(() => (control.textContent = textContent), 1500);
};

const cancel = () => {
  clearTimeout(again);
  score.end();
  open.end();
  setBusy(false);
  settleSolution();
  tell("Cancelled.");
  part("score").focus();
};

document.addEventListener("click", (event) => {
  const example = event.target.closest?.("#examples a");
  if (example && isPlain(event)) {
    event.preventDefault();
    finish();
    return void openNow(new URL(example.href).search, chosen(), "pushState").then((isOpened) => isOpened && reveal());
  }
  // The link leads to the current page; Back would then lead to the page without the result.
  const link = event.target.closest?.("#result a.link");
  if (link && isPlain(event)) {
    event.preventDefault();
    return void copy(link, link.href);
  }
  const button = event.target.closest?.("#score, #cancel, #result :is([data-defaults], [data-copy], [data-every])");
  if (!button) return;
  if (button.id === "score" || "every" in button.dataset) press("every" in button.dataset);
  else if (button.id === "cancel") cancel();
  else if ("copy" in button.dataset) copy(button, button.closest(".snippet").querySelector("code").textContent);
  else for (const slider of button.form.querySelectorAll("input")) moveSlider(slider, slider.dataset.default);
});

const IN_TEXT = "#problem textarea, #solution textarea, #preview textarea, #result ol.steps textarea";

document.addEventListener("submit", async (event) => {
  if (!event.target.matches("#result form")) return;
  event.preventDefault();
  if (!event.target.matches(".save")) return;
  const dataset = event.target.elements.dataset.value;
  const answer = await save({ ...state(), dataset });
  if (!answer) return;
  part("saved").innerHTML = answer.saved;
  part("saved").scrollIntoView({ block: "nearest" });
});

const save = latest((signal, values) => ask("save", values, signal));

register({ key: ["Ctrl+Enter", "Shift+Enter"], label: "score (in a text box)", when: () => part("score"), within: IN_TEXT, run: () => press() });

// Text that is typed but not scored survives a reload and a visit to another page, and so does a result too long for a link.
const TYPED = "stepsight.typed";
const here = () => location.pathname + location.search;
const boxesOf = () => [problem(), document.querySelector("#solution textarea")];

const remember = () => {
  const unlinked = result() && !result().dataset.token ? chosen() : null;
  const values = [here(), ...boxesOf().map((box) => box.value), unlinked];
  quietly(() => sessionStorage.setItem(TYPED, JSON.stringify(values)));
};

const restore = () => {
  const [at, ...typed] = JSON.parse(quietly(() => sessionStorage.getItem(TYPED)) ?? "[]");
  const isBack = ["reload", "back_forward"].includes(performance.getEntriesByType("navigation")[0]?.type);
  if (at !== here() || !isBack) return;
  const [question, solution] = boxesOf();
  question.value = typed[0];
  if (solution.value !== typed[1]) adoptSolution(typed[1]);
  if (!typed[2]) return;
  for (const box of boxes()) box.checked = typed[2].includes(box.value);
  scoreNow("replaceState");
};

if (part("score")) {
  scored = entered();
  problem().addEventListener("input", markStale);
  const tell = () => tellCost(state);
  onSteps((isDrawn) => isDrawn !== false && void tell());
  document.querySelector("#evaluators").addEventListener("change", tell);
  tell();
  restore();
  window.addEventListener("pagehide", remember);
  window.addEventListener("popstate", openAddress);
  const isLate = wasMoved || "late" in part("result").dataset;
  const opened = isLate ? openAddress() : Promise.resolve(settleResult("replaceState"));
  // A permalink is opened to see its result. A reload keeps its scroll position, and so does a page scrolled since.
  const isFollowed = performance.getEntriesByType("navigation")[0]?.type === "navigate";
  if (isFollowed && new URLSearchParams(location.search).has("s")) opened.then(() => scrollY || reveal());
}
