// Clicks on the labelling page, and keys within its fields.
import { stepOf } from "./labelling_steps.js";

const click = (page, { target }) => {
  const button = target.closest("button");
  const row = target.closest("[data-step]");
  if (!button) {
    if (row && !target.closest("textarea, label")) page.moveTo(stepOf(row));
    return;
  }
  const { label, error, open, act } = button.dataset;
  if (label) page.label(label, stepOf(row));
  if (error) page.chooseError(error, stepOf(row));
  if (open) page.openText(open, stepOf(row));
  if (act === "submit") page.submit();
  if (act === "flag" || act === "skip") page.openPanel(act);
  if (act === "undo" || act === "redo") page.undoOrRedo(act);
  if (act === "close") page.closePanels();
  if (act === "unflag") page.sendPanel(button.form, null);
};

const leaveText = (page, event) => {
  const leaves = event.key === "Escape" || (event.key === "Enter" && !event.shiftKey);
  if (event.isComposing || !leaves) return;
  if (event.target.matches("[data-field] textarea")) {
    event.preventDefault();
    page.moveTo(stepOf(event.target));
  } else if (event.key === "Escape" && event.target.closest("form[data-panel]")) page.closePanels();
};

/** Have a Labelling react to its person. */
export const listen = (page) => {
  const { section } = page;
  const isText = (target) => target.matches("[data-field] textarea");
  section.addEventListener("click", (event) => click(page, event));
  section.addEventListener("keydown", (event) => leaveText(page, event));
  section.addEventListener("input", ({ target }) => {
    if (isText(target)) page.texts.type(target);
    page.paint();
  });
  section.addEventListener("focusout", ({ target }) => {
    if (isText(target)) page.texts.save(target);
    page.paint();
  });
  section.addEventListener("submit", (event) => {
    event.preventDefault();
    page.sendPanel(event.target, event.target.querySelector("input").value.trim() || null);
  });
  const leaving = (event) => {
    if (page.outbox.events.length || page.texts.typed.size) event.preventDefault();
  };
  window.addEventListener("beforeunload", leaving, { signal: page.life.signal });
  // The problem stays in view above the steps: they are scrolled to below it.
  const problem = section.querySelector(".problem");
  const measure = new ResizeObserver(() => section.style.setProperty("--problem", `${problem.offsetHeight}px`));
  measure.observe(problem);
  page.life.signal.addEventListener("abort", () => measure.disconnect());
};
