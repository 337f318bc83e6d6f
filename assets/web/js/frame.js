// What every page has around its content: its title and the skip link.
import { onChange } from "./changes.js";

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
