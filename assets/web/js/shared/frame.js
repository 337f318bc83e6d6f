// The surroundings of every page's content: its title, the skip link, the person, and Gradio's interface.
import { element, onChange } from "./dom.js";

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a.skip");
  if (!link) return;
  // A change of the address would be a step in the page's history.
  event.preventDefault();
  document.querySelector(link.getAttribute("href"))?.focus();
});

// The heading distinguishes the page among a browser's tabs.
const name = () => {
  const heading = document.querySelector("main h1") ?? document.querySelector("nav.top [aria-current]");
  const title = [heading?.textContent.trim().slice(0, 80), "StepSight"].filter(Boolean).join(" · ");
  if (document.title !== title) document.title = title;
};

onChange(name);

// The navigation bar ends with the person who is logged in, and has only the pages open to them.
let who = null;

const link = (href, text) => element("a", { href }, text);
const logOut = () => element("form", { method: "post", action: "/logout" }, element("button", {}, "Log out"));

const here = () => encodeURIComponent(location.pathname + location.search);

const draw = () => {
  const tools = document.querySelector("nav.top .tools");
  if (!who || !tools || tools.querySelector(".account")) return;
  const account = element("span", { class: "account" });
  if (who.name) account.append(link("/login/password", who.name), logOut());
  else if (who.login && location.pathname !== "/login") account.append(link(`/login?next=${here()}`, "Log in"));
  if (account.childElementCount) tools.append(account);
  for (const place of document.querySelectorAll("nav.top .places a")) {
    place.hidden = !who.pages.includes(place.getAttribute("href"));
  }
};

fetch("/login/who")
  .then((response) => (response.ok ? response.json() : null))
  .catch(() => null)
  .then((told) => {
    who = told;
    draw();
  });

// The navigation bar may be drawn after the response.
onChange(draw);

// A browser may restore a page from memory after its person has logged out.
window.addEventListener("pageshow", (event) => {
  if (event.persisted && who?.name) location.reload();
});

// On a page that Gradio hosts, its script starts when the browser is idle, and the content moves unchanged into the
// interface.
const start = ({ dataset: { script } }) => document.head.append(element("script", { type: "module", src: script }));

const whenIdle = window.requestIdleCallback ?? setTimeout;
const app = document.querySelector("gradio-app[data-script]");
if (app) addEventListener("load", () => whenIdle(() => start(app)));

// Nothing moves while a pointer or key is down, or a word is being composed.
const held = new Set();
for (const [begin, end] of [["pointerdown", ["pointerup", "pointercancel"]], ["keydown", ["keyup"]], ["compositionstart", ["compositionend"]]]) {
  addEventListener(begin, () => held.add(begin), true);
  for (const name of end) addEventListener(name, () => setTimeout(() => held.delete(begin) && settle()), true);
}
addEventListener("blur", () => held.clear());

// If the browser cannot move a focused element, its focus is restored.
const move = (page, host) => {
  if (host.moveBefore) return host.moveBefore(page, null);
  const { activeElement: held } = document;
  const selected = [held?.selectionStart, held?.selectionEnd];
  host.append(page);
  held?.focus({ preventScroll: true });
  if (selected[0] != null) held.setSelectionRange(...selected);
};

const settle = () => {
  const host = app?.querySelector("#host");
  const page = document.querySelector(".plain > main > .page");
  if (!host || !page || held.size) return;
  const main = page.parentElement;
  app.classList.add("host");
  move(page, host);
  // The interface has its own main element.
  main.remove();
};
onChange(settle);
