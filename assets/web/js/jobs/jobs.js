// The Jobs page: follows the list of jobs; starts, cancels and resumes them.
import { post, say } from "../shared/connection.js";
import { LivePart } from "../live/live_part.js";

// Jobs may be started elsewhere.
const live = new LivePart("#jobs", () => `/jobs/list${location.search}`, { pace: 2000, isEndless: true });

// A number left empty is left out.
const valuesOf = (form) => {
  const data = new FormData(form);
  const values = {};
  for (const name of data.keys()) {
    if (form.elements[name].type !== "number") values[name] = data.get(name);
    else if (data.get(name)) values[name] = Number(data.get(name));
  }
  return values;
};

document.addEventListener("submit", (event) => {
  const form = event.target.closest("#jobs form[data-post], form[data-leads]");
  if (!form) return;
  event.preventDefault();
  // Not `form.dataset`, which is the field of that name.
  const address = form.getAttribute("data-post");
  if (!form.hasAttribute("data-leads")) return void live.post(form, address, valuesOf(form));
  // The form is on a page that then shows the job's progress.
  post(address, valuesOf(form)).then(() => location.reload(), (error) => say(error.message));
});

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("#jobs button[data-post]");
  if (button) live.post(button, button.dataset.post, {});
});
