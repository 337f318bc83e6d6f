// Pages whose content follows from their address: links and forms change it, and the page is asked for anew.
//
// A page takes part with a hidden button whose id ends in `-go`; a link or form of it carries `data-go`, and what is
// not whole yet `data-again`.

const AGAIN = 800;
const show = () => document.querySelector("button[id$='-go']")?.click();

/** Go to an address of this page without loading it again. */
export const go = (url) => {
  history.pushState(null, "", url);
  show();
  window.scrollTo({ top: 0 });
};

const isPlain = (event) => !(event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

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
setInterval(() => !document.hidden && document.querySelector("main [data-again]") && show(), AGAIN);
