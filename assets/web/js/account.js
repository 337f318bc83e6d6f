// Who is logged in, at the end of the line at the top, and only the pages that are theirs.
import { onChange } from "./changes.js";

let who = null;

const link = (href, text) => {
  const element = document.createElement("a");
  element.href = href;
  element.textContent = text;
  return element;
};

const logOut = () => {
  const form = document.createElement("form");
  form.method = "post";
  form.action = "/logout";
  const button = document.createElement("button");
  button.textContent = "Log out";
  form.append(button);
  return form;
};

const here = () => encodeURIComponent(location.pathname + location.search);

const draw = () => {
  const tools = document.querySelector("nav.top .tools");
  if (!who || !tools || tools.querySelector(".account")) return;
  const account = document.createElement("span");
  account.className = "account";
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
