// What every page has around its content: its title, the skip link, its person, and the interface that hosts it.
import { element, onChange } from "./dom.js";

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a.skip");
  if (!link) return;
  // As a change of the address it would be a step in the page's history.
  event.preventDefault();
  document.querySelector(link.getAttribute("href"))?.focus();
});

// A page among many of a browser is known by its heading.
const name = () => {
  const heading = document.querySelector("main h1") ?? document.querySelector("nav.top [aria-current]");
  const title = [heading?.textContent.trim().slice(0, 80), "StepSight"].filter(Boolean).join(" · ");
  if (document.title !== title) document.title = title;
};

onChange(name);

// Who is logged in, at the end of the line at the top, and only the pages that are theirs.
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

// The line at the top may come after the answer.
onChange(draw);

// A page that a browser kept whole may come back after its person has logged out.
window.addEventListener("pageshow", (event) => {
  if (event.persisted && who?.name) location.reload();
});

// A page that Gradio hosts: its script starts when the browser has nothing else to do, and what stands in the page
// moves into the interface as it is.
const start = ({ dataset: { script } }) => document.head.append(element("script", { type: "module", src: script }));

const whenIdle = window.requestIdleCallback ?? setTimeout;
const app = document.querySelector("gradio-app[data-script]");
if (app) addEventListener("load", () => whenIdle(() => start(app)));

// Nothing moves under a button, a key or a word that is half way through.
const held = new Set();
for (const [begin, end] of [["pointerdown", ["pointerup", "pointercancel"]], ["keydown", ["keyup"]], ["compositionstart", ["compositionend"]]]) {
  addEventListener(begin, () => held.add(begin), true);
  for (const name of end) addEventListener(name, () => setTimeout(() => held.delete(begin) && settle()), true);
}
addEventListener("blur", () => held.clear());

// Where a browser cannot move what has the focus, it is given back.
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
  // The interface has a main of its own.
  main.remove();
};
onChange(settle);
