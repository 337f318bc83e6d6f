// The Results page: draws figures, and follows clicks on their cells.
import { onChange } from "../shared/dom.js";
import { drawWhenNear } from "./figures.js";

const page = () => document.querySelector("#results");

// Plotly takes megabytes that no other page needs.
let plotly = null;
const load = (source) =>
  (plotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = source;
    script.addEventListener("load", resolve);
    script.addEventListener("error", reject);
    document.head.append(script);
  }).catch(() => {
    // It may be ready at the next change.
    plotly = null;
  }));

const draw = async () => {
  const source = page()?.querySelector("[data-plotly]")?.dataset.plotly;
  if (!source || !page().querySelector(".plot:not([data-drawn])")) return;
  await load(source);
  if (plotly && page()) drawWhenNear(page(), { displayModeBar: false });
};

document.addEventListener("figure-cell", ({ target, detail }) => {
  const traces = target.closest("[data-cells]")?.dataset.cells;
  if (traces) location.assign(`${traces}&cell=${detail.y}-${detail.x}`);
});

// Another dataset has other groups, kinds of error, evaluators and disputes.
document.addEventListener("query", ({ target: form, detail: query }) => {
  if (!form.matches("form.choices")) return;
  if (query.get("dataset") === new URLSearchParams(location.search).get("dataset")) return;
  for (const name of ["group", "errors", "evaluator", "gold"]) query.delete(name);
});

// The form is replaced by each response; the focus stays on the same control.
let focused = null;
document.addEventListener("change", ({ target }) => {
  if (target.closest?.("form.choices")) focused = target.name;
});

onChange(() => {
  if (!page()) return;
  draw();
  const place = focused && page().querySelector(`form.choices [name="${focused}"]`);
  if (place && document.activeElement === document.body) place.focus();
  if (place) focused = null;
});
