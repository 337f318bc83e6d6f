"""The Score page: paste a problem and its solution, see every step judged in both modes."""

import base64
import json
from html import escape
from urllib.parse import parse_qsl

import gradio as gr

from app.evaluators import Evaluators
from app.pages import DIRECT, QUERY, block, header
from app.permalink import ScoreForm
from app.seed import DATASET
from app.text import text_html
from app.view import judged_html, notice_html
from core.errors import UserError
from core.record import judgment_record
from core.scores import Thresholds
from core.split import split_steps
from core.trace import Trace
from training.gallery import read_gallery

_LONGEST = 100_000
_MOST_STEPS = 200
# Of the gallery, whose first traces show most; the others are a link away.
_EXAMPLES = 12
_EMPTY_PREVIEW = '<p class="hint">Steps appear here as you type: numbered, headed, by paragraph or by line.</p>'
_EMPTY_RESULT = ""


def build(evaluators: Evaluators) -> None:
    """Lay the page out within an open `gr.Blocks`."""
    header("Score")
    with gr.Column(elem_classes="page"):
        block(
            '<h1>Judge a solution, step by step</h1><p class="lead">Online, a step is judged by what comes before '
            "it; offline, with the whole solution in view. The difference is what later steps reveal.</p>"
        )
        with gr.Row(elem_classes="entry"):
            with gr.Column(scale=3):
                problem = gr.Textbox(label="Problem", lines=2, max_lines=8, elem_id="problem")
                solution = gr.Textbox(label="Solution", lines=8, max_lines=24, elem_id="solution")
            preview = block(_EMPTY_PREVIEW, elem_id="preview")
        with gr.Row(elem_classes="controls"):
            evaluator = gr.Dropdown(
                evaluators.names, value=evaluators.names[0], label="Evaluator", elem_id="evaluator", scale=2
            )
            validity = _threshold(0.5, "Valid from", "validity")
            redundancy = _threshold(0.15, "Redundant from", "redundancy")
            button = gr.Button("Score", variant="primary", elem_id="score", scale=1)
        result = block(_EMPTY_RESULT, elem_id="result")
        form = [problem, solution, evaluator, validity, redundancy]
        gallery = read_gallery()
        examples = gallery[:_EXAMPLES]
        block("<h2>Try one of these</h2>")
        chosen = gr.Dataset(
            components=[gr.Textbox(visible=False), gr.Textbox(visible=False)],
            samples=[[trace.problem, solution_text(trace)] for trace in examples],
            sample_labels=[str(trace.meta.get("title", trace.id)) for trace in examples],
            show_label=False,
            samples_per_page=_EXAMPLES,
            elem_id="examples",
        )
        block(
            f'<p class="hint"><a href="/browse?dataset={DATASET}">All {len(gallery)} traces of the gallery</a>, '
            "each with its gold labels and a sentence on what later steps reveal.</p>"
        )

    def score(*values: object) -> str:
        return result_html(evaluators, ScoreForm(*values))  # type: ignore[arg-type]

    def judge_anew(*values: object) -> object:
        # A threshold moved before anything is entered is no mistake.
        return score(*values) if any(values[:2]) else gr.skip()

    def open_link(query: str) -> list[object]:
        token = dict(parse_qsl(query.removeprefix("?"))).get("s")
        if not token:
            return [gr.skip()] * 7
        try:
            opened = ScoreForm.from_token(token)
        except UserError as error:
            return [*[gr.skip()] * 6, notice_html(str(error))]
        return [
            opened.problem,
            opened.solution,
            opened.evaluator if opened.evaluator in evaluators.names else gr.skip(),
            opened.validity,
            opened.redundancy,
            preview_html(opened.solution),
            result_html(evaluators, opened),
        ]

    def open_example(sample: list[str], name: str, valid: float, redundant: float) -> list[str]:
        opened = ScoreForm(sample[0], sample[1], name, valid, redundant)
        return [*sample, preview_html(sample[1]), result_html(evaluators, opened)]

    solution.change(preview_html, solution, preview, trigger_mode="always_last", **DIRECT, show_progress="hidden")
    button.click(score, form, result, **DIRECT, show_progress="minimal")
    problem.submit(score, form, result, **DIRECT, show_progress="minimal")
    for slider in (validity, redundancy):
        slider.release(judge_anew, form, result, **DIRECT, show_progress="minimal")
    inputs = [chosen, evaluator, validity, redundancy]
    outputs = [problem, solution, preview, result]
    chosen.click(open_example, inputs, outputs, **DIRECT, show_progress="minimal")
    query = gr.Textbox(visible=False)
    gr.on(None, open_link, query, [*form, preview, result], js=QUERY, **DIRECT, show_progress="hidden")


def _threshold(value: float, label: str, elem_id: str) -> gr.Slider:
    return gr.Slider(0, 1, value, step=0.01, label=label, elem_id=elem_id, scale=2)


def result_html(evaluators: Evaluators, form: ScoreForm) -> str:
    """The judged solution, with a link to the page and a download; or a notice that says what is wrong."""
    try:
        trace = read_form(form)
        judgment = evaluators.judge(form.evaluator, trace)
    except UserError as error:
        return notice_html(str(error))
    thresholds = Thresholds(form.validity, form.redundancy)
    record = judgment_record(judgment, form.evaluator, thresholds)
    record |= {"problem": trace.problem, "texts": list(trace.substeps)}
    data = base64.b64encode(json.dumps(record, ensure_ascii=False).encode()).decode()
    token = form.token()
    link = f'<a class="link" href="/?s={escape(token)}">Link to this result</a>' if token else ""
    href = f"data:application/json;base64,{data}"
    return f"""{judged_html(judgment, form.evaluator, thresholds)}
<p class="out">{link}<a download="stepsight.json" href="{href}">Download JSON</a></p>"""


def read_form(form: ScoreForm) -> Trace:
    """The trace that a person entered. Raises `UserError` where a part is missing or too long."""
    if not (form.problem or "").strip():
        raise UserError("The problem is empty.", "Enter the problem, then score again.")
    if not (form.solution or "").strip():
        raise UserError("There are no steps.", "Paste a solution, then score again.")
    if len(form.problem) + len(form.solution) > _LONGEST:
        raise UserError(f"The text is longer than {_LONGEST:,} characters.", "Score a shorter solution.")
    trace = Trace.of(form.problem.strip(), split_steps(form.solution))
    if len(trace.substeps) > _MOST_STEPS:
        raise UserError(
            f"The solution has {len(trace.substeps):,} steps; this page scores at most {_MOST_STEPS}.",
            "Score a longer one with stepsight score.",
        )
    return trace


def preview_html(solution: str | None) -> str:
    """How the solution is split into steps."""
    try:
        steps = split_steps((solution or "")[:_LONGEST])
    except UserError as error:
        return notice_html(str(error))
    if not steps:
        return _EMPTY_PREVIEW
    items = "".join(
        f"<li>{text_html(step) if isinstance(step, str) else '<br>'.join(map(text_html, step))}</li>"
        for step in steps
    )
    count = "1 step" if len(steps) == 1 else f"{len(steps)} steps"
    return f'<p class="hint">{count}</p><ol class="preview">{items}</ol>'


def solution_text(trace: Trace) -> str:
    """The steps of a trace as text that `split_steps` reads back."""
    texts = [step.text for step in trace.steps]
    numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1))
    if len(trace.substeps) == len(texts) and split_steps(numbered) == texts:
        return numbered
    return json.dumps([list(step.substeps) for step in trace.steps], ensure_ascii=False, indent=1)
