// The Evaluators page: starts, cancels and resumes fetches, and follows running ones.
import { failure, patiently } from "../shared/connection.js";
import { onChange } from "../shared/dom.js";
import { LivePart } from "../live/live_part.js";
import { arrange } from "./public_table.js";

const room = () => document.querySelector("#shelf");
const live = new LivePart(room, "/evaluators/state");

// The server asks the hub meanwhile, which may take some seconds; the button keeps its focus.
const send = async (button, address, values) => {
  if (button.getAttribute("aria-disabled") === "true") return false;
  button.setAttribute("aria-disabled", "true");
  try {
    const headers = { "content-type": "application/json" };
    const tell = (message) => live.tell(button, message);
    const response = await patiently(address, { method: "POST", headers, body: JSON.stringify(values) }, tell);
    tell(response.ok ? "" : await failure(response));
    await live.ask();
    live.follow();
    return response.ok;
  } finally {
    button.removeAttribute("aria-disabled");
  }
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

let met = null;
const start = () => {
  if (room() && met !== room()) {
    met = room();
    live.start();
  }
  arrange();
};

start();
onChange(start);
