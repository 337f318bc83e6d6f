// The Score page: what is entered goes to the server with every event, and a result into the address.
import { onChange } from "./changes.js";
import { wasMoved } from "./navigation.js";
import { markScored, state } from "./steps.js";
import { inAddress, settle, thresholdsOf } from "./thresholds.js";

let shown = "";
let kept = "";
let thresholds = {};
let dataset;
// Whether the next result is one that a person asked for, and not one that the address brought.
let asked = false;

const result = () => document.querySelector("#result section.scored");
const inView = () => result()?.dataset.state ?? "";
// The result that was in view when the address changed: should it be noticed only now, it is not that address's.
let left = wasMoved ? inView() : "";

/** What the server is told beside the fields of the form; with `whole`, an edit of a step is ended first. */
window.stepsightScore = (whole = true) => {
  const token = result()?.dataset.token ?? "";
  return JSON.stringify({ ...state(whole), ...thresholds, before: kept || token, kept: Boolean(kept), token, dataset });
};

// The address that brings this result back.
const address = (section) => {
  const { token, before, kept: compared } = section.dataset;
  const query = new URLSearchParams({ s: token });
  if (before) query.set("before", before);
  if (compared) query.set("kept", compared);
  inAddress(section, query);
  return `/?${query}`;
};

const put = (section, how) => {
  if (section.dataset.token && address(section) !== location.pathname + location.search)
    history[how](null, "", address(section));
};

const fill = (section) => {
  thresholds = thresholdsOf(section);
  settle(section);
  kept = section.dataset.kept ?? kept;
  for (const place of section.querySelectorAll("[data-origin]")) place.textContent = location.origin;
  markScored();
  put(section, asked ? "pushState" : "replaceState");
  asked = false;
};

onChange(() => {
  const section = result();
  const now = section?.dataset.state ?? "";
  if (now === shown) return;
  shown = now;
  if (section && now !== left) fill(section);
  if (now !== left) left = "";
});

document.addEventListener("thresholds", ({ target: section }) => {
  thresholds = thresholdsOf(section);
  put(section, "replaceState");
});

const keep = (section) => {
  kept = section.dataset.token;
  section.querySelector(".kept").hidden = false;
};

const forget = (section) => {
  kept = "";
  delete section.dataset.before;
  delete section.dataset.kept;
  section.querySelector(".kept").hidden = true;
  for (const part of section.querySelectorAll("[data-compared]")) part.remove();
  put(section, "replaceState");
  section.querySelector("[data-keep]")?.focus();
};

// Where a page may not reach the clipboard (plain HTTP from elsewhere), by way of a selection.
const copied = async (text) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
};

const copy = async (button) => {
  await copied(button.closest(".snippet").querySelector("code").textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
};

window.addEventListener("popstate", () => {
  asked = false;
  left = inView();
});

document.addEventListener("click", ({ target }) => {
  if (target.closest?.("#score, #examples button, #examples .gallery-item")) asked = true;
  const button = target.closest?.("#result [data-keep], #result [data-forget], #result [data-copy]");
  if (!button) return;
  if ("copy" in button.dataset) copy(button);
  else ("keep" in button.dataset ? keep : forget)(result());
});

document.addEventListener("submit", (event) => {
  if (!event.target.matches("#result form[data-save]")) return;
  event.preventDefault();
  dataset = event.target.elements.dataset.value;
  document.getElementById("save").click();
});
