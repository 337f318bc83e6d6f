// The Data page: sends, previews and adds files; fetches benchmarks; and follows running imports.
import { AGAIN, AWAY, failure, patiently, post } from "../shared/connection.js";
import { element, html, onArrival, showNotice } from "../shared/dom.js";
import { update } from "../live/in_place.js";
import { LivePart } from "../live/live_part.js";

// --- sending files ---

// `fetch` does not report how much it has sent. Throws a TypeError, like `fetch`, if the connection breaks.
const sendOnce = (file, show, signal) => new Promise((resolve, reject) => {
  const request = new XMLHttpRequest();
  request.open("POST", `/data/uploads?name=${encodeURIComponent(file.name)}`);
  request.setRequestHeader("content-type", "application/octet-stream");
  request.upload.onprogress = ({ loaded }) => show(loaded);
  request.onload = () => resolve(new Response(request.responseText, { status: request.status }));
  request.onerror = () => reject(new TypeError("The connection was lost."));
  request.onabort = () => reject(signal.reason);
  signal.onabort = () => request.abort();
  request.send(file);
});

// Send a file, from its beginning again after an outage; `show` is called with the number of bytes sent. Returns the
// number of its upload.
const sendFile = async (file, largest, { show, tell, signal }) => {
  if (file.size > largest) {
    const [size, most] = [file.size, largest].map((bytes) => Math.round(bytes / 1e6).toLocaleString("en"));
    throw new Error(`${file.name}: ${size} MB; this page takes files of up to ${most} MB.`);
  }
  for (;;) {
    await file.slice(0, 1).arrayBuffer().catch(() => {
      throw new Error(`${file.name} can no longer be read. Choose it again.`);
    });
    const response = await sendOnce(file, show, signal).catch((error) => {
      if (signal.aborted || !(error instanceof TypeError)) throw error;
      tell(AWAY);
    });
    if (response?.status === 401) location.reload();
    if (response?.ok) return (await response.json()).upload;
    if (response) throw new Error(await failure(response));
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
    signal.throwIfAborted();
  }
};

const room = () => document.querySelector("#data");
const list = () => room()?.querySelector("ol.files");
const sending = new Map();

const tell = (message) => {
  const slot = room()?.querySelector(".said");
  if (slot) showNotice(slot, message);
};

// Additions are reported where they were made, with a link to each dataset that now exists.
let adding = [];
const failures = ({ name }) =>
  [...room().querySelectorAll(".importing li.failed b")].filter((one) => one.textContent.startsWith(`${name} → `)).length;

const tellAdded = (message, datasets = []) => {
  const links = datasets.map((name) => element("a", { href: `/browse?dataset=${encodeURIComponent(name)}` }, `Browse ${name}`));
  room()?.querySelector(".added")?.replaceChildren(...(message ? [message] : []), ...links.flatMap((link) => [" ", link]));
};

const settled = () => {
  if (!adding.length || !room()) return;
  const added = adding.filter((file) => failures(file) <= file.failures);
  const many = adding.length === 1 ? "1 file" : `${adding.length} files`;
  const lead = added.length === adding.length ? `${many} added:` : `${added.length} of ${many} added; the rest is under “Not added”.`;
  tellAdded(lead, [...new Set(added.map(({ dataset }) => dataset))]);
  adding = [];
};

const live = new LivePart("#data", () => "/data/state", { onIdle: settled });

const ready = () => [...(list()?.querySelectorAll("li.ready") ?? [])];

const count = () => {
  const go = room()?.querySelector(".go");
  if (!go) return;
  const many = ready().length;
  go.hidden = many === 0;
  go.firstElementChild.textContent = many === 1 ? "Add 1 file" : `Add ${many} files`;
};

// --- files ---

const value = (row, name) => row.querySelector(`[name="${name}"]`)?.value ?? "";

const answers = (row) => {
  const given = new URLSearchParams();
  for (const field of row.querySelectorAll("[name]")) {
    if (field.type !== "checkbox") given.set(field.name, field.value);
    else if (field.checked) given.set(field.name, "1");
  }
  return given;
};

const listed = (row) => JSON.parse(row.dataset.ids || "[]");

// Scores belong to the only file of traces in the list that has all of their ids.
const fillDatasets = () => {
  const traces = ready().filter(({ dataset: { holds } }) => holds === "traces");
  for (const row of ready()) {
    const ids = listed(row);
    if (row.dataset.holds !== "scores" || !ids.length || value(row, "dataset").trim()) continue;
    const fitting = traces.filter((one) => ids.every((id) => new Set(listed(one)).has(id)));
    if (fitting.length === 1) row.querySelector('[name="dataset"]').value = value(fitting[0], "dataset");
  }
};

// Text typed in the meantime stays; choices are those with which the server has read the file.
const put = (row, part) => {
  row.querySelector("[data-refusal]")?.remove();
  update(row, part);
  row.className = part.className;
  for (const option of row.querySelectorAll("option[selected]")) option.selected = true;
  fillDatasets();
  count();
};

// Read a file in the chosen way, one of those that it allows.
const choose = async (row, reading) => {
  const given = answers(row);
  for (const [name, chosen] of new URLSearchParams(reading)) given.set(name, chosen);
  await look(row, given);
  row.querySelector("[data-reading], select")?.focus({ preventScroll: true });
};

// Of several requests about a file, only the last one counts.
const asked = new Map();

const look = async ({ dataset: { upload } }, given = "") => {
  const mine = (asked.get(upload) ?? 0) + 1;
  asked.set(upload, mine);
  const response = await patiently(`/data/uploads/${upload}?${given}`, {}, tell);
  tell("");
  const answer = await (response.ok ? response.text() : failure(response));
  const row = list()?.querySelector(`[data-upload="${upload}"]`);
  if (!row || asked.get(upload) !== mine) return;
  if (response.ok) put(row, html(answer).querySelector("li"));
  else refuse(row, answer);
};

const refuse = (row, message) => {
  row.classList.remove("ready", "reading");
  row.querySelector(".notice")?.remove();
  row.querySelector(".meter")?.remove();
  row.append(element("div", { class: "notice", role: "alert", "data-refusal": "" }, message));
  count();
};

const removing = (name) =>
  element("span", { class: "end" }, element("button", { type: "button", class: "button", "data-remove": "", "aria-label": `Remove ${name}` }, "Remove"));

const begun = ({ name, size }) => {
  const bar = element("i", { style: "width:0%" });
  const meter = element("div", { class: "meter", role: "progressbar", "aria-label": `Sending ${name}`, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 0 }, bar);
  const row = element("li", { class: "card file", "data-name": name, "data-size": size }, element("div", { class: "what" }, element("b", {}, name), removing(name)), meter);
  list().append(row);
  return row;
};

const send = async (file) => {
  const isAgain = ({ dataset: { name, size } }) => name === file.name && Number(size) === file.size;
  [...list().children].find((row) => isAgain(row) && !sending.has(row))?.remove();
  const row = begun(file);
  const stop = new AbortController();
  sending.set(row, stop);
  try {
    const show = (sent) => {
      const percent = Math.floor((100 * sent) / file.size);
      const meter = row.querySelector(".meter");
      meter?.setAttribute("aria-valuenow", percent);
      meter?.firstElementChild.setAttribute("style", `width:${percent}%`);
    };
    const largest = Number(room().querySelector(".add").dataset.largest);
    row.dataset.upload = await sendFile(file, largest, { show, tell, signal: stop.signal });
    sending.delete(row);
    await look(row);
  } catch (error) {
    if (!stop.signal.aborted) refuse(row, error.message);
  } finally {
    sending.delete(row);
  }
};

const take = async (files) => {
  for (const file of files) await send(file);
};

// Open the preview of a file that could not be added, with the settings with which that was tried.
const mend = async ({ dataset: { mend: upload, given } }) => {
  const find = () => list().querySelector(`[data-upload="${upload}"]`);
  if (!find()) {
    list().append(element("li", { class: "card file", "data-upload": upload }));
    await look(find(), given);
  }
  find()?.scrollIntoView({ block: "nearest" });
  find()?.querySelector("input, select, button")?.focus({ preventScroll: true });
};

const remove = async (row) => {
  sending.get(row)?.abort();
  const { upload } = row.dataset;
  try {
    if (upload) await post(`/data/uploads/${upload}/remove`, {}, tell);
  } catch (error) {
    refuse(row, error.message);
    return;
  }
  (row.nextElementSibling ?? row.previousElementSibling)?.querySelector("[data-remove]")?.focus();
  row.remove();
  count();
};

const wanted = (row) => {
  const { upload, holds, mapped } = row.dataset;
  const file = { upload: Number(upload), holds, dataset: value(row, "dataset").trim() };
  if (holds === "scores") return { ...file, evaluator: value(row, "evaluator").trim(), mode: value(row, "mode") };
  if (holds === "labels") return { ...file, campaign: value(row, "campaign").trim(), annotator: value(row, "annotator").trim() };
  const columns = { problem: "", steps: "" };
  for (const name of ["problem", "steps", "labels", "labels_as", "id", "thoughts"]) if (value(row, name)) columns[name] = value(row, name);
  const leaves = Boolean(row.querySelector('[name="leave_out"]')?.checked);
  return { ...file, kind: value(row, "kind"), leave_out: leaves, ...(mapped ? { columns } : {}) };
};

const NAMED = ["dataset", "evaluator", "campaign"];
const unnamed = (row) => [...row.querySelectorAll("input")].find((field) => NAMED.includes(field.name) && !field.value.trim());

// A file without a name stays where it is, with the empty field marked, and the others are added.
const askName = (row, field) => {
  row.querySelector("[data-refusal]")?.remove();
  field.setAttribute("aria-invalid", "true");
  const message = `${row.dataset.name} is not added: the name of the ${field.name} is empty. Enter a name.`;
  row.append(element("div", { class: "notice", role: "alert", "data-refusal": "" }, message));
};

const add = async (button) => {
  const empty = ready().filter(unnamed);
  for (const row of empty) askName(row, unnamed(row));
  const rows = ready().filter((row) => !empty.includes(row));
  if (rows.length) await addRows(button, rows);
  if (empty.length) unnamed(empty[0])?.focus();
};

const addRows = async (button, rows) => {
  const files = rows.map((row) => ({ name: row.dataset.name, dataset: value(row, "dataset").trim() }));
  const place = room().querySelector(".added");
  button.disabled = true;
  try {
    await post("/data/imports", { files: rows.map(wanted) }, tell);
    tell("");
    adding = files.map((file) => ({ ...file, failures: failures(file) }));
    for (const row of rows) row.remove();
    count();
    tellAdded(files.length === 1 ? "1 file is being added." : `${files.length} files are being added.`);
    live.follow();
  } catch (error) {
    showNotice(place, error.message);
  } finally {
    place.scrollIntoView({ block: "nearest" });
    button.disabled = false;
  }
};

const fetchBenchmark = async (button) => {
  button.disabled = true;
  button.disabled = await live.post(button, "/data/fetch", { benchmark: button.dataset.fetch });
};

document.addEventListener("change", (event) => {
  const row = event.target.closest?.("#data li.file");
  if (event.target.matches?.("#data input[type=file]")) {
    const files = [...event.target.files];
    event.target.value = "";
    take(files);
  } else if (row && event.target.matches("[data-reread]")) {
    const given = answers(row);
    // What a different column holds is inferred from its values.
    if (event.target.name === "labels") given.delete("labels_as");
    look(row, given);
  }
});

document.addEventListener("input", ({ target }) => {
  if (!target.matches?.("#data [aria-invalid]")) return;
  target.removeAttribute("aria-invalid");
  target.closest("li").querySelector("[data-refusal]")?.remove();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("#data button");
  if (!button) return;
  if (button.matches("[data-remove]")) remove(button.closest("li"));
  else if (button.matches("[data-reading]")) choose(button.closest("li"), button.dataset.reading);
  else if (button.matches("[data-add]")) add(button);
  else if (button.matches("[data-fetch]")) fetchBenchmark(button);
  else if (button.matches("[data-mend]")) mend(button);
});

const isFiles = (event) => room()?.querySelector(".add") && [...(event.dataTransfer?.types ?? [])].includes("Files");

document.addEventListener("dragover", (event) => {
  if (!isFiles(event)) return;
  event.preventDefault();
  room().querySelector(".drop").classList.add("over");
});

document.addEventListener("dragleave", (event) => {
  if (isFiles(event) && !event.relatedTarget) room().querySelector(".drop").classList.remove("over");
});

document.addEventListener("drop", (event) => {
  if (!isFiles(event)) return;
  event.preventDefault();
  room().querySelector(".drop").classList.remove("over");
  take([...event.dataTransfer.files]);
});

// Files sent before this page was opened are previewed.
onArrival("#data ol.files", (files) => files.querySelectorAll("[data-upload]:not(.ready)").forEach((row) => look(row)));
