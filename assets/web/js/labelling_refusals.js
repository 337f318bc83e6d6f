// What the labelling page does where the server refuses an event: it says why, takes the mark back, and keeps what was
// typed.
import { element, showNotice } from "./dom.js";

const AGAIN = 2000;
// The event may be fine, but the slot, the guideline or the campaign has changed since the page was loaded.
const HAS_CHANGED = [403, 404, 409];

const here = () => location.pathname + location.search;
const link = (label, href) => element("a", { class: "button", href }, label);

const show = (page, message, ...controls) => showNotice(page.section.querySelector(".told"), message, ...controls);

const passOver = (page, message) => {
  show(page, message);
  page.outbox.drop();
};

/** Nothing more can be stored here; what was not stays in view. */
const end = (page, message) => {
  page.lost = [...page.outbox.events];
  page.over = true;
  page.outbox.clear();
  const kept = page.lost.length ? " What is marked as not stored has been lost." : "";
  show(page, message + kept, link("Next trace", page.next));
};

const goOn = (page, version) => {
  const button = element("button", { type: "button", class: "button primary" }, `Go on under version ${version}`);
  button.addEventListener("click", () => {
    page.guideline = version;
    show(page, "");
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
  const message = "The guideline has changed: the new one is shown above. Your labels since then are stored when you go on.";
  show(page, message, goOn(page, version));
  details.scrollIntoView({ block: "start" });
};

const later = (page) => void setTimeout(() => page.outbox.resume(), AGAIN);

/** What to do about the first event of the outbox of `page`, refused with a status and a message. */
export const handleRefusal = async (page, event, status, message) => {
  if (status === 401) return show(page, message, link("Log in", `/login?next=${encodeURIComponent(here())}`));
  if (!HAS_CHANGED.includes(status)) return passOver(page, message);
  const response = await fetch(`/relabel/slots/${page.slot}`).catch(() => null);
  if (!response || response.status >= 500) return later(page);
  if (!response.ok) return end(page, message);
  const assignment = await response.json();
  // The event may come from a page that was closed before the guideline changed.
  if (event.guideline && event.guideline !== assignment.guideline) return showGuideline(page, assignment.guideline);
  if (assignment.state.submitted) return page.submitted();
  page.server = assignment.state;
  return passOver(page, message);
};
