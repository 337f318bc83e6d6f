// Renders formulas as they appear, and follows links and keys on the Browse page without reloading it.
(() => {
  "use strict";

  const renderMaths = () => {
    if (!window.katex) return;
    for (const span of document.querySelectorAll("span.math:not([data-done])")) {
      span.dataset.done = "1";
      try {
        window.katex.render(span.textContent, span, {
          displayMode: "display" in span.dataset,
          throwOnError: true,
          trust: false,
          strict: "ignore",
          maxExpand: 500,
          maxSize: 20,
        });
      } catch {
        span.classList.add("source");
        span.textContent = span.dataset.source;
      }
    }
  };

  let waiting = false;
  new MutationObserver(() => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      renderMaths();
      // What changes after an event is read out.
      for (const part of document.querySelectorAll("#result, #browse")) part.setAttribute("aria-live", "polite");
      if (keys.length && isShown()) move(keys.shift());
    });
  }).observe(document.documentElement, { childList: true, subtree: true });

  const show = () => document.querySelector("#browse-go")?.click();

  // Keys pressed before the trace they lead away from is there wait for it.
  const keys = [];

  const go = (url) => {
    history.pushState(null, "", url);
    show();
    window.scrollTo({ top: 0 });
  };

  const move = (kind) => document.querySelector(`#browse a.${kind}`)?.click();

  // Whether what the address asks for has arrived.
  const isShown = () => {
    const pager = document.querySelector("#browse .pager");
    const query = new URLSearchParams(location.search);
    if (!pager || pager.dataset.trace !== (query.get("trace") ?? "")) return false;
    return pager.dataset.trace !== "" || pager.dataset.page === (query.get("page") ?? "1");
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-go]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (event.isTrusted) keys.length = 0;
    go(link.href);
  });

  const submit = (form) => {
    const query = new URLSearchParams();
    for (const [key, value] of new FormData(form)) {
      if (value && !(key === "gold" && value === "any")) query.set(key, value);
    }
    // An open trace stays open when only the evaluator changes.
    const before = new URLSearchParams(location.search);
    const same = ["gold", "q", "dataset"].every((key) => form.dataset[key] === (form.elements[key]?.value ?? ""));
    if (before.get("trace") && same) query.set("trace", before.get("trace"));
    go(`${form.dataset.go}?${query}`);
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

  window.addEventListener("popstate", () => {
    keys.length = 0;
    show();
  });

  // A threshold that is being typed anew is empty for a moment, which a slider cannot be.
  const isEmptied = (field) => field.matches?.(".controls input[type=number]") && field.value === "";
  document.addEventListener("input", (event) => isEmptied(event.target) && event.stopImmediatePropagation(), true);
  document.addEventListener(
    "blur",
    (event) => {
      if (!isEmptied(event.target)) return;
      event.target.value = event.target.closest(".block").querySelector("input[type=range]").value;
    },
    true,
  );

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const kind = { j: "next", k: "prev" }[event.key];
    if (!kind || !document.querySelector("#browse .pager")) return;
    event.preventDefault();
    if (isShown()) move(kind);
    else keys.push(kind);
  });
})();
