// The Evaluators page: starts, cancels and resumes fetches, and follows running ones; searches and filters the rows of its
// tables, and sorts those of public evaluators.
import { onChange, setText } from "../shared/dom.js";
import { LivePart } from "../live/live_part.js";

const room = () => document.querySelector("#shelf");
const live = new LivePart("#shelf", () => "/evaluators/state");

// The server asks the hub meanwhile, which may take some seconds; the button keeps its focus.
const send = async (button, address, values) => {
  if (button.getAttribute("aria-disabled") === "true") return false;
  button.setAttribute("aria-disabled", "true");
  const isAccepted = await live.post(button, address, values);
  button.removeAttribute("aria-disabled");
  return isAccepted;
};

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("#shelf button");
  if (button?.matches("[data-fetch]")) send(button, "/evaluators/fetch", { repo: button.dataset.fetch });
  else if (button?.matches("[data-post]")) send(button, button.dataset.post, {});
});

document.addEventListener("submit", async (event) => {
  const form = event.target.closest?.("#shelf form.other");
  if (!form) return;
  event.preventDefault();
  const { repo, revision } = form.elements;
  const values = { repo: repo.value.trim(), revision: revision.value.trim() || "main" };
  if (await send(form.querySelector("button"), "/evaluators/fetch", values)) repo.value = "";
});

const rowsOf = (table) => [...(table?.tBodies[0]?.rows ?? [])];
const publicTable = () => room()?.querySelector("table.public");

// The column that was chosen, and 1 for ascending or -1; without one the rows have the server's order.
const order = { by: "", way: 1 };
// What is better first.
const DESCENDING = ["f1"];

const compare = (one, other) => {
  const [left, right] = [one.dataset.value, other.dataset.value];
  // What is unknown comes last in both directions.
  if (!left || !right) return Boolean(right) - Boolean(left);
  return order.way * (Number(left) - Number(right) || left.localeCompare(right));
};

const sort = () => {
  const heads = [...(publicTable()?.querySelectorAll("thead th") ?? [])];
  const column = heads.findIndex((head) => head.querySelector("button")?.dataset.by === order.by);
  if (column < 0) return;
  heads.forEach((head, index) => {
    if (index === column) head.setAttribute("aria-sort", order.way > 0 ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  });
  const rows = rowsOf(publicTable());
  const sorted = rows.toSorted((one, other) => compare(one.cells[column], other.cells[column]));
  if (sorted.some((row, index) => row !== rows[index])) publicTable().tBodies[0].append(...sorted);
};

const filter = () => {
  const form = room()?.querySelector("form.find");
  if (!form) return;
  const words = form.elements.q.value.toLowerCase().split(/\s+/);
  const show = form.elements.show.value;
  const tables = [room().querySelector("table.here"), publicTable()].filter(Boolean);
  for (const table of tables) {
    for (const row of rowsOf(table)) {
      const text = `${row.dataset.repo ?? ""} ${row.textContent}`.toLowerCase();
      const fits = !show || !row.dataset.repo || row.hasAttribute(`data-${show}`);
      row.hidden = !(fits && words.every((word) => text.includes(word)));
    }
    table.closest("section").hidden = rowsOf(table).every((row) => row.hidden);
  }
  const all = tables.flatMap(rowsOf);
  const shown = all.filter((row) => !row.hidden).length;
  // What was found stands where the reader looks.
  room().classList.toggle("searching", shown < all.length);
  setText(form.querySelector("[role=status]"), shown === all.length ? "" : `${shown} of ${all.length} evaluators`);
};

// Apply the search, the filter and the order to what the server sent.
const arrange = () => {
  sort();
  filter();
};

document.addEventListener("input", (event) => event.target.closest?.("#shelf form.find") && filter());
document.addEventListener("submit", (event) => event.target.matches?.("#shelf form.find") && event.preventDefault());

document.addEventListener("click", (event) => {
  const by = event.target.closest?.("#shelf [data-by]")?.dataset.by;
  if (!by) return;
  order.way = order.by === by ? -order.way : DESCENDING.includes(by) ? -1 : 1;
  order.by = by;
  sort();
});

arrange();
onChange(arrange);
