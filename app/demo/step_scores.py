"""The Gradio component that shows judged steps: bars online beside offline, and the hindsight triangle."""

from collections.abc import Sequence
from functools import cache

import gradio as gr
from markupsafe import Markup

from stepsight.app.browse.trace_view import trace_html
from stepsight.app.web.bundles import read_web
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core import notebook

# Where the dark colours of style.css begin.
_DARK = ":root, .dark {"
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
const options = { output: "mathml", strict: "ignore", maxExpand: 500, maxSize: 20 };
const draw = async () => {
  if (!element.querySelector("span.math:not([data-done])")) return;
  const { render } = await katex();
  for (const span of element.querySelectorAll("span.math:not([data-done])")) {
    const displayMode = "display" in span.dataset;
    try {
      render(span.textContent, span, { ...options, displayMode });
    } catch {
      span.textContent = span.dataset.source;
    }
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
    if not judged:
        return Markup()
    trace = judged[0].judgments[0].trace
    columns = [one for one in judged if one.outputs.has_steps]
    drawn = [(one.name, notebook.draw_hindsight(one.hindsight)) for one in columns if one.hindsight is not None]
    return render(
        "demo/step_scores.html",
        steps=trace_html(trace, judged, ""),
        triangles=[(name, Markup(triangle)) for name, triangle in drawn],
    )


@cache
def style() -> str:
    """Return the component's style sheet: that of the pages, in the colours of Gradio's theme. It lays out by the
    component's own width."""
    text = read_web("style.css")
    dark = text.partition(_DARK)[2].partition("}")[0]
    assert dark, "the dark colours of style.css"
    text += read_web("browse.css") + notebook.style() + _LAYOUT.replace("DARK", dark)
    first, *others = text.split("/*")
    text = first + "".join(one.partition("*/")[2] for one in others)
    # Gradio evaluates it as a template.
    text = text.replace("\\", "\\\\")
    return text.replace("@media (max-width", "@container (max-width")


def katex(_: object = None) -> str:
    """Return the script that draws formulas, whatever the browser sends."""
    return read_web("katex", "katex.min.js")
