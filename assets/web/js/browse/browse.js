// The Browse page: keys for moving through the list and from trace to trace, and conditions in a sheet on a phone.
import { onChange } from "../shared/dom.js";
import { register } from "../shared/keys.js";

const inPage = (selector) => document.querySelector(`#browse ${selector}`);
const press = (selector) => inPage(selector)?.click();
const pager = () => inPage(".pager");
const isTrace = () => Boolean(pager()?.dataset.trace);
const isList = () => pager()?.dataset.trace === "";

// True if the content for the address has arrived.
const isShown = () => {
  const query = new URLSearchParams(location.search);
  if (!pager() || pager().dataset.trace !== (query.get("trace") ?? "")) return false;
  return isTrace() || pager().dataset.page === (query.get("page") ?? "1");
};

// Keys pressed before the current content has arrived wait for it.
const waiting = [];

// The row to begin with on a page that was reached by key from the page before or after it.
let entered = null;

const stepRow = (by) => {
  const rows = [...document.querySelectorAll("#browse a.open")];
  const at = rows.indexOf(document.activeElement);
  const next = at < 0 && by < 0 ? rows.length - 1 : at + by;
  if (rows[next]) {
    rows[next].focus();
  } else if (rows.length && inPage(by > 0 ? "a.next" : "a.prev")) {
    press(by > 0 ? "a.next" : "a.prev");
    entered = by;
  }
};

const step = (by) => {
  if (!isShown()) waiting.push(by);
  else if (isTrace()) press(by > 0 ? "a.next" : "a.prev");
  else stepRow(by);
};

register({ key: "j", label: "next trace", when: pager, repeats: true, run: () => step(1) });
register({ key: "k", label: "previous trace", when: pager, repeats: true, run: () => step(-1) });
register({ key: "Enter", label: "open the trace", when: isList });
register({ key: "u", label: "back to the list", when: isTrace, run: () => press("a.up") });
register({ key: "e", label: "evidence", when: () => inPage("a.evidence"), run: () => press("a.evidence") });
register({ key: "/", label: "search", when: isList, run: () => inPage("input[name=q]")?.select() });

// The row of the trace last seen.
let seen = null;

const keyed = (key) => inPage(`[data-key="${CSS.escape(key)}"]`);

const rowToEnter = () => {
  const rows = document.querySelectorAll("#browse a.open");
  if (entered) return rows[entered > 0 ? 0 : rows.length - 1];
  return isList() && seen ? keyed(seen) : null;
};

// A response that arrives after its address was left does not count.
const remember = () => {
  if (isTrace() && isShown()) seen = `trace ${pager().dataset.trace}`;
};

const focusAgain = () => {
  remember();
  if (!isShown()) return;
  if (document.activeElement === document.body) rowToEnter()?.focus();
  entered = null;
  if (isList()) seen = null;
};

// True if the sheet of conditions is open, on a phone.
let open = false;

const fold = () => {
  inPage(".facets")?.classList.toggle("open", open);
  inPage("button.sheet")?.setAttribute("aria-expanded", open);
};

// A text that is wider than its box scrolls within it, also by keys. Measuring one that is out of sight would lay it out.
const isLaidOut = (text) => text.checkVisibility?.({ contentVisibilityAuto: true }) ?? true;
const reach = (room) => {
  for (const text of room.querySelectorAll(":is(.t, .q):not([tabindex])")) {
    if (isLaidOut(text) && text.scrollWidth > text.clientWidth) text.tabIndex = 0;
  }
};
document.addEventListener("contentvisibilityautostatechange", ({ target, skipped }) => {
  if (!skipped && target.closest("#browse")) requestAnimationFrame(() => reach(target));
});

onChange(() => {
  if (!pager()) return;
  fold();
  focusAgain();
  reach(document.querySelector("#browse"));
  if (waiting.length && isShown()) step(waiting.shift());
});

const forget = () => (waiting.length = 0);
window.addEventListener("popstate", forget);

document.addEventListener("click", (event) => {
  if (event.target.closest?.("#browse button.sheet")) {
    open = !open;
    fold();
  }
  const link = event.target.closest?.("#browse a[data-go]");
  if (!link) return;
  if (event.isTrusted) forget();
  // A trace may be left before the change of address was noticed.
  remember();
});

document.addEventListener("change", (event) => {
  const field = event.target;
  if (field.matches?.("#browse form.beside input")) field.form.requestSubmit();
});

// A condition on metadata is a single part of the address: the field, an operator and the value.
const SIGNS = { part: "~", least: ">=", most: "<=" };

document.addEventListener("query", ({ target: form, detail: query }) => {
  const field = form.getAttribute("data-meta");
  if (field === null) return;
  for (const [name, sign] of Object.entries(SIGNS)) {
    const value = query.get(name)?.trim();
    query.delete(name);
    if (value) query.append("meta", field + sign + value);
  }
});

// Another dataset has other evaluators, classes and metadata. Conditions on verdicts are dropped with their evaluator.
document.addEventListener("query", ({ target: form, detail: query }) => {
  const before = form.getAttribute("data-dataset");
  if (before === null || before === query.get("dataset")) return;
  for (const name of form.getAttribute("data-of-dataset").split(" ")) query.delete(name);
});
