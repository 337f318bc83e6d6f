"""The demo as a Gradio interface: paste a problem and its solution, and see every step judged in both modes."""

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import gradio as gr
from fastapi import FastAPI
from jinja2.ext import Extension
from markupsafe import Markup
from pydantic import Field

from stepsight.app.browse.trace_view import trace_html
from stepsight.app.score.entered import Entered, SolutionText, as_steps, steps_of
from stepsight.app.score.files import judgments_row
from stepsight.app.scoring.batcher import PendingScore, client_context
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import find_user_of, script_nonce, state_of
from stepsight.app.web.html import read_web, render
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core import notebook
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.placement import Placement
from stepsight.core.paths import asset
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from stepsight.core.validation import Model, validate
from stepsight.storage.database.store import Store
from stepsight.storage.people.blindness import check_texts
from stepsight.training.evaluate.strength import concluded_record, read_card, read_gallery

_LAYOUT = """
.step-scores { max-width: none; padding: 0; container-type: inline-size; color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
.step-scores *, .step-scores ::before { box-sizing: border-box; }
.dark & .step-scores { DARK }
& .step-scores.step-scores { --bg: var(--body-background-fill); --card: var(--block-background-fill); }
.step-scores .overview { display: none; }
.step-scores .side .head { position: static; }
.step-scores .strength { margin: 10px 0 0; }
.step-scores .triangle { margin: 14px 0 0; }
.step-scores .triangle .name { font-weight: 600; margin: 0; }
.step-scores .stepsight caption { white-space: normal; }
@media (max-width: 600px) {
  .step-scores .stepsight :is(td, th) { padding: 2px 4px; font-size: 13px; }
}
"""
# Formulas are rendered as MathML, which needs no fonts. KaTeX is loaded with the first formula.
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
    strengths = [(column.name, read_card(column.name)) for column in judged]
    steps = trace_html(trace, judged, "")
    return render("demo/step_scores.html", steps=steps, strengths=strengths, triangles=drawn)


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


Scoring = Callable[[Trace, gr.Request], AbstractContextManager[object]]
"""Surrounds the start of scoring a solution for the sender of a request, who is about to see the scores."""

# The first traces of the gallery are the most instructive ones.
_EXAMPLES = 4
# Seconds between checks of a judgment in progress.
_LOOKS = 0.2
_PROGRESS = gr.Progress()
LAUNCHED: dict[str, Any] = {
    # White letters on a button need a darker blue than the theme's own.
    "theme": gr.themes.Default(primary_hue="blue").set(
        button_primary_background_fill="*primary_600", button_primary_background_fill_hover="*primary_700"
    ),
    # As in style.css.
    "css": "@media (hover: none) and (pointer: coarse) { input, select, textarea { font-size: 16px !important; } }",
    "favicon_path": str(asset("web") / "icon.svg"),
    "footer_links": [],
    "run_history": False,
    "show_error": False,
    "enable_monitoring": False,
    "max_file_size": "1mb",
    "ssr_mode": False,
}
"""The arguments of `launch`, or of `mount_gradio_app`, with which the demo is served."""
LEAD = """# StepSight
Every step of a solution is judged twice: *online*, with the steps up to it in view, and *offline*, with the whole
solution in view. Paste a problem and its solution; steps may be numbered, headed, paragraphs or lines.
The evaluators that come with StepSight are demonstrations, which err often."""
"""The text above the form, as Markdown."""
# This leaves no file on the server.
_DOWNLOAD = """(text) => {
  if (!text) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = "stepsight.json";
  link.click();
  URL.revokeObjectURL(link.href);
}"""


class _DemoRequest(Model):
    """What somebody sends to have a solution scored. `solution` is a text, or a list of steps."""

    problem: str
    solution: str | list[str | list[str]]
    evaluators: list[str]
    validity: float = Field(ge=0, le=1)
    redundancy: float = Field(ge=0, le=1)


def demo(
    evaluators: str | Path | Sequence[str | Path] | Evaluators = "mini-bidir",
    *,
    thresholds: Thresholds | None = None,
    examples: Sequence[Trace] | None = None,
    device: str = "cpu",
    dtype: str | None = None,
    lead: str = LEAD,
    scoring: Scoring = lambda trace, request: nullcontext(),
) -> gr.Blocks:
    """Build a Gradio interface that scores solutions.

    `evaluators` are one or more arguments of `load_evaluator`, loaded at `device` with weights of the type `dtype`.
    The first one is preselected. `thresholds` are those that the sliders begin with, `examples` the solutions
    offered, by default some of the gallery, and `lead` is Markdown above the form. Scoring starts within the
    context that `scoring` returns. Raises `UserError` if an evaluator cannot be loaded.

    Launch it with `launch()`, in a notebook with `launch(inline=True)`. Its endpoint for `gradio_client` is
    `/score`.
    """
    if not isinstance(evaluators, Evaluators):
        named = [evaluators] if isinstance(evaluators, str | Path) else evaluators
        place = Placement(device) if dtype is None else Placement(device, dtype)
        evaluators = Evaluators(named, shipped=False, place=place)
    shown = read_gallery()[:_EXAMPLES] if examples is None else examples
    return _Demo(evaluators, thresholds or Thresholds(), scoring).blocks(lead, shown)


@dataclass(frozen=True)
class _Demo:
    """The interface's events. It scores with `evaluators`, and begins with the `thresholds`.

    The values of an event are the problem, the solution, the evaluators, and the two thresholds.
    """

    evaluators: Evaluators
    thresholds: Thresholds
    scoring: Scoring

    def blocks(self, lead: str, examples: Sequence[Trace]) -> gr.Blocks:
        """Lay the interface out."""
        names, thresholds = self.evaluators.all_names, self.thresholds
        layout: gr.Blocks
        with gr.Blocks(title="StepSight", analytics_enabled=False) as layout:
            gr.Markdown(lead)
            with gr.Row():
                with gr.Column(scale=3):
                    problem = gr.Textbox(label="Problem", lines=2, max_lines=12)
                    solution = gr.Textbox(label="Solution", lines=7, max_lines=24)
                with gr.Column(scale=2):
                    chosen = gr.CheckboxGroup(names, value=names[:1], label="Evaluators")
                    validity = gr.Slider(0, 1, thresholds.validity, step=0.01, label="Valid from")
                    redundancy = gr.Slider(0, 1, thresholds.redundancy, step=0.01, label="Redundant from")
                    with gr.Row():
                        score = gr.Button("Score", variant="primary")
                        stop = gr.Button("Cancel")
            values = [problem, solution, chosen, validity, redundancy]
            if examples:
                offered = gr.Examples(
                    [[trace.problem, SolutionText.written(steps_of(trace)).text] for trace in examples],
                    [problem, solution],
                    label="Examples",
                    example_labels=[str(trace.meta.get("title", trace.id)) for trace in examples],
                    api_visibility="private",
                )
            scores = step_scores()
            download, record = gr.Button("Download the record", visible=False), gr.Textbox(visible=False)
            shown = [scores, download]
            ours: dict[str, Any] = {"api_visibility": "private", "concurrency_limit": None}
            scored = gr.on(
                [score.click, problem.submit], self.judged, values, shown, **ours, trigger_mode="multiple"
            )
            # New thresholds apply at once to what has already been scored.
            moved = gr.on([validity.release, redundancy.release], self.judged_again, values, shown, **ours)
            # A verdict is about the text that was scored. The browser clears it, before the next text is scored.
            gr.on([problem.change, solution.change], None, None, scores, js="() => ''", api_visibility="private")
            if examples:
                # An error shown by the component disappears only with a response from the server.
                offered.load_input_event.then(lambda: "", None, scores, queue=False, api_visibility="private")
            stop.click(None, cancels=[scored, moved], queue=False, api_visibility="private")
            fetched = download.click(self.record, values, record, **ours)
            fetched.success(None, record, js=_DOWNLOAD, api_visibility="private")
            gr.api(self.score, api_name="score", concurrency_limit=None)  # type: ignore[attr-defined]
        layout.queue(max_size=64)
        return layout

    def judged(
        self, request: gr.Request, progress: gr.Progress = _PROGRESS, *values: Any
    ) -> Iterator[tuple[Any, Any]]:
        """Score the solution, and yield the value of the component once it is judged, with the button for its
        record. Until then, nothing changes."""
        with _as_gradio_errors():
            entered, pending = self._begin(request, values)
            try:
                while wait(pending.values(), timeout=_LOOKS).not_done:
                    done = min(len(score.steps) for score in pending.values())
                    progress((done, len(entered.trace.substeps)), desc="Judging", unit="steps")
                    yield gr.skip(), gr.skip()
            finally:
                # Somebody else may be waiting for these scores; if nobody is, scoring ends.
                for score in pending.values():
                    score.cancel()
            columns = []
            for name, score in pending.items():
                outputs, judgments = self.evaluators.about(name).outputs, dict.fromkeys(Mode, score.result())
                columns.append(TraceJudgments(name, outputs, entered.thresholds, judgments, stored=True))
            yield str(step_scores_html(columns)), gr.update(visible=True)

    def judged_again(
        self, request: gr.Request, progress: gr.Progress = _PROGRESS, *values: Any
    ) -> Iterator[tuple[Any, Any]]:
        """Like `judged`, but do nothing until a problem and a solution are entered."""
        problem, solution, *_ = values
        if problem.strip() and solution.strip():
            yield from self.judged(request, progress, *values)
        else:
            yield gr.skip(), gr.skip()

    def record(self, request: gr.Request, *values: Any) -> str:
        """Return the record of a solution that has been scored, as the text of a JSON file."""
        return json.dumps(self.score(request, *values), ensure_ascii=False)

    def score(
        self,
        request: gr.Request,
        problem: str,
        solution: str | list[Any],
        evaluators: list[str] | None = None,
        validity: float | None = None,
        redundancy: float | None = None,
    ) -> dict[str, Any]:
        """Judge every step of a solution.

        `solution` is a text, or a list of its steps. `evaluators` are names, by default the first one. The answer
        has the steps, and under `judgments` the record of each evaluator's judgment.
        """
        names = self.evaluators.all_names[:1] if evaluators is None else evaluators
        valid = self.thresholds.validity if validity is None else validity
        redundant = self.thresholds.redundancy if redundancy is None else redundancy
        with _as_gradio_errors():
            entered, pending = self._begin(request, (problem, solution, names, valid, redundant))
            records = [
                concluded_record(score.result(), self.evaluators.about(name), entered.thresholds, name=name)
                for name, score in pending.items()
            ]
        return judgments_row(entered.trace, [dict.fromkeys(Mode, record) for record in records])

    def _begin(
        self, request: gr.Request, values: Sequence[Any]
    ) -> tuple[Entered, dict[str, PendingScore[Judgment]]]:
        """Begin to score what somebody entered. Raises `UserError` if it cannot be scored."""
        entry = validate(_DemoRequest, dict(zip(_DemoRequest.model_fields, values, strict=True)), "the request")
        steps = (
            as_steps(entry.solution)
            if isinstance(entry.solution, list)
            else SolutionText.typed(entry.solution).steps
        )
        thresholds = Thresholds(entry.validity, entry.redundancy)
        entered = Entered(entry.problem, steps, None, tuple(entry.evaluators), thresholds)
        with self.scoring(entered.trace, request):
            return entered, {name: self.evaluators.submit_loaded(name, entered.trace) for name in entered.chosen}


@contextmanager
def _as_gradio_errors() -> Iterator[None]:
    """Turn a user's mistake in the block into the error that Gradio shows, without a traceback in its log."""
    try:
        yield
    except UserError as error:
        raise gr.Error(str(error.without_options()), print_exception=False, title="Not scored") from None


_LOG = logging.getLogger("stepsight")


def mounted_demo(store: Store, evaluators: Evaluators, path: str) -> tuple[FastAPI, gr.Blocks]:
    """Build the demo of a server, below `path`. A text that is hidden from whoever has it scored is refused,
    and the computation is attributed to them."""

    @contextmanager
    def scoring(trace: Trace, request: gr.Request) -> Iterator[None]:
        assert request.request is not None, "an event that came without a request"
        check_texts(store, find_user_of(request.request), trace)
        with client_context(state_of(request.request)["client"]):
            yield

    prepare_gradio()
    application = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    blocks = demo(evaluators, lead=f"{LEAD}\n\n[Back to StepSight](/)", scoring=scoring)
    # It has the same icon as the pages.
    gr.mount_gradio_app(application, blocks, path=path, **{**LAUNCHED, "favicon_path": None})
    return application, blocks


class _ScriptNonces(Extension):
    """Jinja extension that has a template write the request's nonce into its scripts."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return source.replace("<script", '<script nonce="{{ nonce() }}"')


@cache
def prepare_gradio() -> TemporaryDirectory[str]:
    """Make Gradio's templates write nonces and keep values out of its log. Returns its folder for files, which only
    this process may read, and which is deleted when the process ends. By default, all users of the machine share a
    folder."""
    folder = TemporaryDirectory(prefix="stepsight-gradio-")
    os.environ["GRADIO_TEMP_DIR"] = gr.routes.DEFAULT_TEMP_DIR = folder.name  # type: ignore[attr-defined]
    templates = gr.routes.templates.env
    templates.globals["nonce"] = script_nonce
    templates.add_extension(_ScriptNonces)
    # Templates that were loaded before the extension was added have no nonces.
    templates.cache = {}
    # Gradio prints errors together with what the user sent.
    gr.queueing.traceback = SimpleNamespace(print_exc=lambda: _LOG.exception("the demo failed"))  # type: ignore[attr-defined, assignment]
    return folder
