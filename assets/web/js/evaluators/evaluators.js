// The Evaluators page: starts, cancels and resumes fetches, and follows running ones.
import { LivePart } from "../live/live_part.js";

const live = new LivePart("#shelf", () => "/evaluators/state");

// The server is querying the hub, which may take some seconds; the button keeps its focus.
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
  const { repo } = form.elements;
  if (await send(form.querySelector("button"), "/evaluators/fetch", { repo: repo.value.trim() })) repo.value = "";
});
