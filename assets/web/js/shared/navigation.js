// Pages whose content follows from their address: links and forms change it, and the content is requested again.
//
// The content is in an element with `data-part`. Links and forms that change it have `data-go`; with `data-stay` the page
// does not scroll to its beginning. An element that is not complete yet has `data-again`, whose value is the number of
// seconds until the next request.
import { AGAIN, AWAY, failure, say } from "./connection.js";
import { announce, replaceContent, template } from "./dom.js";

const part = () => document.querySelector("main [data-part]");

// The sentence of an element with `data-says`, else the heading.
const sentence = () => {
  const heading = part().querySelector("[data-says], h1");
  return heading?.dataset.says ?? heading?.textContent ?? "";
};

// The content as last received, to detect changes: the page's scripts modify the one in the document.
let sent = part()?.innerHTML;

const put = (text) => {
  const next = template(text);
  if (next.innerHTML === sent) return;
  sent = next.innerHTML;
  replaceContent(part(), next.content);
  announce(sentence());
};

const isPage = (response) => response.headers.get("content-type")?.startsWith("text/html");

// The request in progress, the end of the last one, and the timer of the next. Only the last address requested counts.
let asked = null;
let ended = performance.now();
let retry = 0;
// True if the content is to be read from its beginning once it has arrived; until then, what was pressed stays in view.
let isNew = false;

const ask = async ({ signal }) => {
  const response = await fetch(location.href, { headers: { "stepsight-part": "1" }, signal });
  if (response.status === 401) location.reload();
  else if (isPage(response)) put(await response.text());
  if (isPage(response)) return { problem: "", again: false };
  return { problem: await failure(response), again: response.status >= 500 };
};

const show = async () => {
  if (!part()) return;
  asked?.abort();
  clearTimeout(retry);
  const asking = (asked = new AbortController());
  part().setAttribute("aria-busy", "true");
  const { problem, again } = await ask(asking).catch(() => ({ problem: AWAY, again: true }));
  if (asking !== asked) return;
  asked = null;
  ended = performance.now();
  part().removeAttribute("aria-busy");
  say(problem);
  if (isNew && !problem) {
    window.scrollTo({ top: 0 });
    isNew = false;
  }
  if (again) retry = setTimeout(show, AGAIN);
};

/** Go to an address of this page without loading it again; with `stays` without scrolling either. */
export const go = (url, stays = false) => {
  history.pushState(null, "", url);
  isNew = !stays;
  show();
};

/** True if a click is meant for this window. */
export const isPlain = (event) => !(event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-go]");
  if (!link || !isPlain(event)) return;
  event.preventDefault();
  go(link.href, "stay" in link.dataset);
});

// Empty values and `any` are the default, which the address omits. Listeners to `query` may amend the others.
const submit = (form) => {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value && value !== "any"));
  form.dispatchEvent(new CustomEvent("query", { bubbles: true, detail: query }));
  // Not `form.dataset`, since a field may have that name.
  go(`${form.getAttribute("data-go")}?${query}`);
};

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-go]");
  if (!form) return;
  event.preventDefault();
  submit(form);
});

document.addEventListener("change", (event) => {
  // A select may be outside the form to which it belongs.
  const { form, tagName } = event.target;
  if (tagName === "SELECT" && form?.matches("[data-go]")) submit(form);
});

window.addEventListener("popstate", () => {
  isNew = false;
  show();
});

const loaded = new URL(performance.getEntriesByType("navigation")[0]?.name ?? location.href);

/** True if Back or Forward was pressed before this script was loaded. */
export const wasMoved = loaded.pathname + loaded.search !== location.pathname + location.search;
if (wasMoved) show();

// Content that is still being computed is requested again.
const isDue = (element) => performance.now() - ended >= 1000 * Number(element.dataset.again);
const isAnyDue = () => [...document.querySelectorAll("main [data-again]")].some(isDue);
setInterval(() => !document.hidden && !asked && isAnyDue() && show(), AGAIN);
