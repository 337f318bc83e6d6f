"""The Gradio component that shows judged steps: bars online beside offline, and the hindsight triangle."""

from collections.abc import Sequence

import gradio as gr
from markupsafe import Markup

from stepsight.app.browse.trace_view import trace_html
from stepsight.app.web.bundles import read_web
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core import notebook

_LAYOUT = """
.step-scores { max-width: none; padding: 0; container-type: inline-size; color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
.step-scores *, .step-scores ::before { box-sizing: border-box; }
.dark & .step-scores { DARK }
& .step-scores.step-scores { --bg: var(--body-background-fill); --card: var(--block-background-fill); }
.step-scores .overview { display: none; }
.step-scores .side .head { position: static; }
.step-scores .triangle { margin: 14px 0 0; }
.step-scores .triangle .name { font-weight: 600; margin: 0; }
.step-scores .stepsight caption { white-space: normal; }
@media (max-width: 600px) {
  .step-scores .three { display: none; }
  .step-scores .stepsight :is(td, th) { padding: 2px 4px; font-size: 13px; }
}
"""
# Formulas are drawn as MathML, which needs no fonts. KaTeX comes with the first of them.
_DRAW_FORMULAS = """
const katex = () => (window.stepsightKatex ??= server.katex().then((text) => {
  const module = { exports: {} };
  Function("module", "exports", text)(module, module.exports);
  return module.exports;
}));
const options = { output: "mathml", strict: "ignore", maxExpand: 500, maxSize: 20, throwOnError: false };
const draw = async () => {
  const spans = [...element.querySelectorAll("span.math:not([data-done])")];
  const { render } = spans.length ? await katex() : {};
  for (const span of spans) {
    render(span.textContent, span, { ...options, displayMode: "display" in span.dataset });
    span.dataset.done = "1";
  }
};
watch("value", draw);
draw();
"""


def step_scores() -> gr.HTML:
    """Build the component, within the layout of a `gr.Blocks`. Its value is the HTML of `step_scores_html`."""
    return gr.HTML(
        label="Step scores",
        show_label=False,
        css_template=style(),
        js_on_load=_DRAW_FORMULAS,
        apply_default_css=False,
        server_functions=[katex],
    )


def step_scores_html(judged: Sequence[TraceJudgments]) -> Markup:
    """Render evaluators' judgments of one trace: their verdicts, the bars of each step, and the triangles."""
    trace = judged[0].judgments[0].trace
    hindsight = [(column.name, column.hindsight) for column in judged if column.outputs.has_steps]
    drawn = [(name, Markup(notebook.draw_hindsight(values))) for name, values in hindsight if values is not None]
    return render("demo/step_scores.html", steps=trace_html(trace, judged, ""), triangles=drawn)


def style() -> str:
    """Return the component's style sheet: that of the pages, in the colours of Gradio's theme. It lays out by the
    component's own width."""
    pages = read_web("style.css")
    dark = pages.partition(":root, .dark {")[2].partition("}")[0]
    assert dark, "the dark colours of style.css"
    text = pages + read_web("browse.css") + notebook.style() + _LAYOUT.replace("DARK", dark)
    first, *others = text.split("/*")
    text = first + "".join(part.partition("*/")[2] for part in others)
    # Gradio evaluates it as a template.
    return text.replace("\\", "\\\\").replace("@media (max-width", "@container (max-width")


def katex(_: object = None) -> str:
    """Return the script that draws formulas, whatever the browser sends."""
    return read_web("katex", "katex.min.js")
