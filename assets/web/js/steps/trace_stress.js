// The stress test of one trace: its variants are made and judged when somebody presses the button, on Browse and Evidence.
import { failure, latest, patiently } from "../shared/connection.js";
import { html, onChange, setText, showNotice } from "../shared/dom.js";

// The form whose answer is awaited.
let waiting = null;

const test = latest(async (signal, form) => {
  const response = await patiently(`${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`, { signal });
  if (response.status === 401) location.reload();
  return response.ok ? { body: await response.text() } : { problem: await failure(response) };
});

const show = (room, { problem = "", body = "" }) => {
  const place = room.querySelector(".stressed");
  if (problem) showNotice(place, problem);
  else place.replaceChildren(html(body));
  setText(room.querySelector(".state"), [...place.querySelectorAll("h3")].map((head) => head.textContent).join(". "));
};

const isInView = (node) => {
  const { top, bottom } = node.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
};

document.addEventListener("submit", async (event) => {
  const form = event.target.closest(".stressing form");
  if (!form) return;
  event.preventDefault();
  waiting = form;
  show(form.parentElement, {});
  setText(form.parentElement.querySelector(".state"), "Making and judging the variants …");
  const answer = await test(form);
  if (!answer || !form.isConnected) return;
  waiting = null;
  show(form.parentElement, answer);
  // The answer is long, and comes below a button that may be at the end of the page.
  if (answer.body && isInView(form)) form.parentElement.scrollIntoView();
});

// Work for a page that was left ends.
onChange(() => {
  if (!waiting || waiting.isConnected) return;
  waiting = null;
  test.end();
});
