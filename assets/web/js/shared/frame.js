// The surroundings of every page's content: its title, the skip link, and the person.
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
