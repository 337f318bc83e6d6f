// Pages whose content follows from their address: links and forms change it, and the content is asked for anew.
//
// The content stands in an element with `data-part`. A link or form carries `data-go`, and what is not whole yet
// `data-again`, whose value says after how many seconds to ask again, if that is not soon.
import { AGAIN, AWAY, failure, say } from "./connection.js";
import { announce, template } from "./dom.js";

const part = () => document.querySelector("main [data-part]");

// What an element with `data-says` says of the content, else its heading.
const sentence = () => {
  const heading = part().querySelector("[data-says], h1");
  return heading?.dataset.says ?? heading?.textContent ?? "";
};

// What comes later into a room that was left for it, an element with `data-room` and an id, moves nothing: the room
// keeps its height, and where nothing else has changed it alone is replaced.
const rooms = (content) => [...content.querySelectorAll("[data-room]")];

const keepHeight = (room) => {
  const before = document.getElementById(room.id);
  if (before?.dataset.again) room.style.minHeight = `${before.offsetHeight}px`;
};

const withoutRooms = (text) => {
  const without = template(text);
  rooms(without.content).forEach((room) => room.remove());
  return without.innerHTML;
};

// As it was last sent, to tell whether it has changed: the page's scripts set formulas and draw in it.
let sent = part()?.innerHTML;

const put = (text) => {
  const next = template(text);
  if (next.innerHTML === sent) return;
  const isRoomAlone = withoutRooms(text) === withoutRooms(sent);
  sent = next.innerHTML;
  if (isRoomAlone) {
    rooms(next.content).forEach((room) => {
      keepHeight(room);
      document.getElementById(room.id).replaceWith(room);
    });
    return;
  }
  part().replaceChildren(next.content);
  announce(sentence());
};

const isPage = (response) => response.headers.get("content-type")?.startsWith("text/html");

// The request under way, when the last one ended, and when to ask again. The address that was asked for last is the
// one that counts.
let asked = null;
let ended = performance.now();
let retry = 0;

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
  if (again) retry = setTimeout(show, AGAIN);
};

/** Go to an address of this page without loading it again. */
export const go = (url) => {
  history.pushState(null, "", url);
  show();
  window.scrollTo({ top: 0 });
};

/** Whether a click is meant for this window. */
export const isPlain = (event) => !(event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-go]");
  if (!link || !isPlain(event)) return;
  event.preventDefault();
  go(link.href);
});

// What is empty or `any` is the default, and stays out of the address. Listeners to `query` may amend the rest.
const submit = (form) => {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value && value !== "any"));
  form.dispatchEvent(new CustomEvent("query", { bubbles: true, detail: query }));
  // A field may be called dataset, and would stand for the form's own.
  go(`${form.getAttribute("data-go")}?${query}`);
};

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-go]");
  if (!form) return;
  event.preventDefault();
  submit(form);
});

document.addEventListener("change", (event) => {
  const form = event.target.closest?.("form[data-go]");
  if (form && event.target.tagName === "SELECT") submit(form);
});

window.addEventListener("popstate", show);

const loaded = new URL(performance.getEntriesByType("navigation")[0]?.name ?? location.href);

/** Whether Back or Forward was pressed before this script was there to hear it. */
export const wasMoved = loaded.pathname + loaded.search !== location.pathname + location.search;
if (wasMoved) show();

// What is still being computed is asked for again.
const isDue = (element) => performance.now() - ended >= 1000 * Number(element.dataset.again);
const isAnyDue = () => [...document.querySelectorAll("main [data-again]")].some(isDue);
setInterval(() => !document.hidden && !asked && isAnyDue() && show(), AGAIN);
