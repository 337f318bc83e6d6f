// The surroundings of every page's content: its title, the skip link, and the person.
import { onChange } from "./dom.js";

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

// A browser may restore a page from memory after its person has logged out.
window.addEventListener("pageshow", (event) => {
  if (event.persisted && document.querySelector("nav.top .account form")) location.reload();
});
