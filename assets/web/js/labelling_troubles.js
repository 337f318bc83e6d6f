// What the labelling page does where the server refuses an act: it says why, takes the mark back, and keeps what was
// typed.
import { made } from "./made.js";

const AGAIN = 2000;
// The act may be well, but the slot, the guideline or the campaign is not as the page knows it.
const STANDS_ELSEWHERE = [403, 404, 409];

const here = () => location.pathname + location.search;
const link = (label, href) => made("a", { class: "button", href }, label);

/** Show a message above the buttons, with something to press; nothing where it is empty. */
export const trouble = (page, message, ...controls) => {
  const notice = made("div", { class: "notice", role: "alert" }, message, ...controls.flatMap((control) => [" ", control]));
  page.section.querySelector(".told").replaceChildren(...(message ? [notice] : []));
};

const passOver = (page, message) => {
  trouble(page, message);
  page.outbox.drop();
};

/** Nothing more can be stored here; what was not stays in view. */
const end = (page, message) => {
  page.lost = [...page.outbox.acts];
  page.over = true;
  page.outbox.clear();
  const kept = page.lost.length ? " What is marked as not stored was not kept." : "";
  trouble(page, message + kept, link("Next trace", `/relabel/label?campaign=${page.campaign}`));
};

const goOn = (page, version) => {
  const button = made("button", { type: "button", class: "button primary" }, `Go on under version ${version}`);
  button.addEventListener("click", () => {
    page.guideline = version;
    trouble(page, "");
    page.outbox.resume({ guideline: version });
    page.moveTo(page.here);
  });
  return button;
};

const showGuideline = async (page, version) => {
  const response = await fetch(`/relabel/label/guideline?campaign=${page.campaign}`).catch(() => null);
  if (!response?.ok) return later(page);
  const details = page.section.querySelector("details.guideline");
  details.innerHTML = await response.text();
  details.open = true;
  const message = "The guideline has changed: the new one is shown above. What you said since is stored when you go on.";
  trouble(page, message, goOn(page, version));
  details.scrollIntoView({ block: "start" });
};

const later = (page) => void setTimeout(() => page.outbox.resume(), AGAIN);

/** What to do about an act, which the outbox of `page` holds in front, that was refused with a status and a message. */
export const handleRefusal = async (page, act, status, message) => {
  if (status === 401) return trouble(page, message, link("Log in", `/login?next=${encodeURIComponent(here())}`));
  if (!STANDS_ELSEWHERE.includes(status)) return passOver(page, message);
  const response = await fetch(`/relabel/slots/${page.slot}`).catch(() => null);
  if (!response || response.status >= 500) return later(page);
  if (!response.ok) return end(page, message);
  const task = await response.json();
  // It may have been said on a page that was closed before the guideline changed.
  if (act.guideline && act.guideline !== task.guideline) return showGuideline(page, task.guideline);
  if (task.state.submitted) return page.leave(`/relabel/label?slot=${page.slot}`);
  page.server = task.state;
  return passOver(page, message);
};
