"""The Gradio component that shows judged steps: bars online beside offline, and the hindsight triangle."""

from abc import ABCMeta
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import gradio as gr
from gradio.component_meta import ComponentMeta, updateable
from markupsafe import Markup

from stepsight.app.browse.trace_view import trace_html
from stepsight.app.web.bundles import read_web
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core import notebook
from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import parse_trace
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.judgment_record import JudgmentRecord
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.validation import validate

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


class _WithoutStubs(ComponentMeta):
    """Gradio's metaclass of components, without the stub file that it would write beside the module."""

    def __new__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> Any:
        attributes["__init__"] = updateable(attributes["__init__"])  # type: ignore[no-untyped-call]
        return ABCMeta.__new__(cls, name, bases, attributes)


class StepScoresView(gr.HTML, metaclass=_WithoutStubs):
    """A Gradio component that shows judged steps, with a bar for each step online and offline, and the hindsight
    triangle.

    Its value is a `Judgment`, several of them by evaluator, or the JSON object of a solution with its `judgments`,
    as the demo and the Score page download it. As an input of an event, it gives the HTML that it shows.
    """

    def __init__(
        self,
        value: Any = None,
        *,
        thresholds: Thresholds | None = None,
        outputs: Outputs | str = Outputs.THREE_WAY,
        label: str | None = "Step scores",
        show_label: bool = False,
        container: bool = False,
        scale: int | None = None,
        min_width: int | None = None,
        visible: bool = True,
        elem_id: str | None = None,
        elem_classes: list[str] | str | None = None,
        render: bool = True,
        key: int | str | None = None,
    ) -> None:
        """Build the component, within the layout of a `gr.Blocks`.

        `thresholds` are those of the verdicts on a `Judgment`, and `outputs` its evaluator's (`Evaluator.outputs`);
        a JSON object has its own. The other arguments are those of `gr.HTML`.
        """
        self._thresholds = thresholds or Thresholds()
        self._outputs = Outputs(outputs)
        super().__init__(
            value,
            label=label,
            show_label=show_label,
            css_template=style(),
            js_on_load=_DRAW_FORMULAS,
            apply_default_css=False,
            server_functions=[katex],
            container=container,
            scale=scale,
            min_width=min_width,
            visible=visible,
            elem_id=elem_id,
            elem_classes=elem_classes,
            render=render,
            key=key,
        )

    def postprocess(self, value: Any) -> str | None:
        """Render a value as HTML in which all text is escaped. Raises `UserError` if it has any other type."""
        if value is None or value == "":
            return None
        return str(step_scores_html(self._judgments(value)))

    def _judgments(self, value: Any) -> Sequence[TraceJudgments]:
        if isinstance(value, Judgment):
            value = {"": value}
        if isinstance(value, Mapping) and "judgments" in value:
            return recorded(dict(value))
        if isinstance(value, Mapping) and all(isinstance(one, Judgment) for one in value.values()):
            return [self._of(name, judgment) for name, judgment in value.items()]
        if isinstance(value, Sequence) and all(isinstance(one, TraceJudgments) for one in value):
            return value
        raise UserError(
            f"StepScores got a {type(value).__name__}, expected a Judgment, or several by evaluator.",
            "Return what Scorer.score_one returns.",
        )

    def _of(self, name: str, judgment: Judgment) -> TraceJudgments:
        return TraceJudgments(name, self._outputs, self._thresholds, by_mode(judgment), stored=True)


StepScores = StepScoresView
"""The component's name for other people's apps; in the code of StepSight, `StepScores` are the numbers."""


def by_mode(judgment: Judgment) -> dict[Mode, Judgment]:
    """Map each mode that a judgment includes to the judgment."""
    return dict.fromkeys(Mode if judgment.mode == Mode.HINDSIGHT else [judgment.mode], judgment)


def recorded(row: dict[str, Any]) -> list[TraceJudgments]:
    """Read a solution with its records, the inverse of `app.score.files.judgments_row`. Raises `UserError` if a
    field is missing or invalid, or if a judgment belongs to other steps."""
    where = "StepScores"
    trace = parse_trace({"id": "", **row} | ({} if row.get("id") else {"id": "solution"}), where)
    if not isinstance(row["judgments"], list):
        raise UserError(f"{where}: judgments is {row['judgments']!r:.40}, expected a list of records.")
    judged = []
    try:
        for one in row["judgments"]:
            record = validate(JudgmentRecord, one, "a judgment")
            at = record.thresholds
            thresholds = Thresholds(at.validity, Thresholds.redundancy if at.redundancy is None else at.redundancy)
            modes = by_mode(record.judgment(trace))
            judged.append(TraceJudgments(record.evaluator, record.outputs, thresholds, modes, stored=True))
    except UserError as error:
        raise error.at(where) from None
    return judged


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
