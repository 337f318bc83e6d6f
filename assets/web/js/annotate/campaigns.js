// The pages around labelling: campaigns, disputes and their forms, a submitted trace, and the heatmap of agreement; and
// the events that an earlier page could not send.
import { failure } from "../shared/connection.js";
import { element, showNotice } from "../shared/dom.js";
import { register } from "../shared/keys.js";
import { isPlain } from "../shared/navigation.js";
import { turnTo } from "./next_trace.js";
import { AWAY, freshKey, keptSlots, Outbox, post } from "./outbox.js";

const PAGES = "#annotate, #review, #labelling";
const page = () => document.querySelector(PAGES);

const show = (message, ...controls) => showNotice(page().querySelector(".told"), message, ...controls);

// The answer to a request; null, with a message in `told`, if there is none.
const request = async (url, values, told = page().querySelector(".told")) => {
  const response = await post(url, values);
  if (response?.ok) return response.json();
  showNotice(told, response ? await failure(response) : AWAY);
  return null;
};

const busy = new Set();

const send = async (url, values, button, told) => {
  if (busy.has(url)) return;
  busy.add(url);
  button.disabled = true;
  const answer = await request(url, values, told);
  if (!answer) {
    busy.delete(url);
    button.disabled = false;
  } else if (answer.go === location.pathname) location.reload();
  else location.assign(answer.go);
};

// Checkboxes of one name give the list of those that are ticked. A new dispute names a step of a trace, and sends no
// choice as null.
const read = (form, button) => {
  const data = new FormData(form, button);
  const values = Object.fromEntries(data);
  for (const { name } of form.querySelectorAll("input[type=checkbox]")) values[name] = data.getAll(name);
  // Not `form.dataset`, since a field may have that name.
  const [trace, step, digest] = ["trace", "step", "digest"].map((name) => form.getAttribute(`data-${name}`));
  if (trace === null) return values;
  return { ...values, proposed: values.proposed || null, trace: Number(trace), step: Number(step), digest };
};

const reopen = async (button) => {
  const event = { kind: "reopen", key: freshKey(), guideline: Number(button.dataset.guideline) };
  if (await request(button.dataset.reopen, event)) turnTo(location.href);
};

// Send the events of a page that was closed before they were stored.
const sendRest = (person, slot) => {
  const rest = new Outbox(person, slot, {
    answered: () => {},
    refused: async (event, status, message) => {
      const open = element("a", { href: `/annotate/label?slot=${slot}` }, "Open it");
      const assignment = await fetch(`/annotate/slots/${slot}`).catch(() => null);
      if (assignment?.ok) return show(`Your labels of another trace are not stored yet: ${message}`, open);
      if (!assignment || assignment.status >= 500 || assignment.status === 401) return;
      rest.clear();
      show(`Your last labels of another trace could not be stored: ${message}`);
    },
  });
  rest.send();
};

document.addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  const url = form.closest(`:is(${PAGES}, #disputes)`) && form.getAttribute("data-post");
  if (!url) return;
  event.preventDefault();
  send(url, read(form, submitter), submitter, form.querySelector(".told") ?? undefined);
});

document.addEventListener("changed", () => document.querySelector("#annotate") && location.reload());

// A browser cannot show its message at a field that is folded away.
document.addEventListener("invalid", ({ target }) => target.closest("details.more")?.setAttribute("open", ""), true);

document.addEventListener("click", (event) => {
  if (!page()?.contains(event.target)) return;
  const button = event.target.closest("button");
  if (button?.dataset.post) send(button.dataset.post, {}, button);
  if (button?.dataset.reopen) reopen(button);
  const link = event.target.closest("a[data-turn]");
  if (!link || !isPlain(event)) return;
  event.preventDefault();
  turnTo(link.href);
});

// The labelling page sends its own events.
const sendOthers = () => {
  const { person, slot } = page().dataset;
  for (const other of keptSlots(person)) if (page().id !== "labelling" || other !== slot) sendRest(person, other);
};

const next = () => document.querySelector("#review a.next");
register({ key: ["n", "Enter"], label: "next trace", when: () => next() !== null, run: () => next().click() });
if (page()) sendOthers();
// A page restored from the browser's memory is out of date.
window.addEventListener("pageshow", (event) => event.persisted && page() && location.reload());

// Arrow keys move between the cells of a heatmap; only the cell last visited is in the tab order.
const GRID = "table[data-moves]";
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

const linkAt = (grid, row, column) => grid.tBodies[0].rows[row]?.cells[column]?.querySelector("a");

const move = (link, [down, right]) => {
  const cell = link.closest("th, td");
  const grid = link.closest(GRID);
  const row = cell.parentElement.sectionRowIndex + down;
  // Traces differ in length; the move from a long one ends at the last step of a short one.
  const last = (grid.tBodies[0].rows[row]?.cells.length ?? 1) - 1;
  const next = linkAt(grid, row, down ? Math.min(cell.cellIndex, last) : cell.cellIndex + right);
  if (!next) return;
  if (cell.tagName === "TD") link.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
};

register({
  key: Object.keys(MOVES),
  label: "go to another cell of the heatmap",
  when: () => Boolean(document.querySelector(GRID)),
  within: `${GRID} tbody a`,
  repeats: true,
  run: (key, link) => move(link, MOVES[key]),
});
