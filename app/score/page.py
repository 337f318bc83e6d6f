"""The Score page: paste a problem and its solution, correct its steps, see every step judged in both modes.

What is entered lives in the browser; a result follows from its address (`s`, a permalink; `before` or `kept`, the
permalink of the result that it is compared with; `valid` and `redundant`, thresholds).
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr
from markupsafe import Markup

from stepsight.app.score.files import read_query
from stepsight.app.score.form import PageState, ScoreForm, steps_of, steps_text
from stepsight.app.score.result import result_html
from stepsight.app.score.steps import EMPTY, corrected_html, split_html, steps_html
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.gallery_seed import DATASET
from stepsight.app.web.gradio_page import DIRECT, QUERY, block, header
from stepsight.app.web.html import render
from stepsight.app.web.judged import notice_html
from stepsight.app.web.rights import Right, has_right, require
from stepsight.core.errors import UserError
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.writer import save_trace
from stepsight.training.evaluate.gallery import read_gallery

# Of the gallery, whose first traces show most; the others are a link away.
_EXAMPLES = 12
# In the browser: what the page's script holds, as the last input of an event; while steps are drawn, an edit of
# one goes on.
_STATE = "(...values) => [...values.slice(0, -1), window.stepsightScore?.() ?? '']"
_DRAWN = "() => [window.stepsightScore?.(false) ?? '']"


def check_address(query: Mapping[str, str]) -> None:
    """Raises `UserError` where the address holds a permalink that cannot be opened."""
    if query.get("s"):
        read_query(query)


def build(store: Store, evaluators: Evaluators, *, read_only: bool = False) -> None:
    """Lay the page out within an open `gr.Blocks`."""
    header("Score")
    with gr.Column(elem_classes="page"):
        block(render("score/lead.html"))
        with gr.Row(elem_classes="entry"):
            with gr.Column(scale=3):
                # Of a fixed height: what stands below must not move while somebody aims at it.
                problem = gr.Textbox(label="Problem", lines=3, max_lines=3, elem_id="problem")
                solution = gr.Textbox(label="Solution", lines=14, max_lines=14, elem_id="solution")
            with gr.Column(scale=2, elem_id="split"):
                preview = block(EMPTY, elem_id="preview")
                block(render("score/tools.html"), elem_id="split-tools")
        with gr.Row(elem_classes="controls"):
            names = gr.CheckboxGroup(
                evaluators.names, value=evaluators.names[:1], label="Evaluators", elem_id="evaluators", scale=4
            )
            button = gr.Button("Score", variant="primary", elem_id="score", scale=1)
        result = block(elem_id="result")
        saved = block(elem_id="saved", elem_classes="live")
        chosen = _examples()
        state = gr.Textbox(visible=False)
        show_steps, write_steps, save, open_link = (
            gr.Button(elem_id=name, visible="hidden") for name in ("steps-show", "steps-write", "save", "score-go")
        )

    quiet: dict[str, Any] = {**DIRECT, "show_progress": "hidden"}
    # A click that comes while the last answer is computed or drawn counts: the last one is done next.
    busy: dict[str, Any] = {**DIRECT, "show_progress": "minimal", "trigger_mode": "always_last"}

    def looks_only(request: gr.Request) -> bool:
        return read_only or not has_right(request, Right.WRITE)

    def score(problem: str, solution: str, names: list[str], state: str, request: gr.Request) -> tuple[str, str]:
        return scored(evaluators, problem, solution, names, state, read_only=looks_only(request)), ""

    def open_example(example: int, names: list[str], state: str, request: gr.Request) -> list[str]:
        trace = read_gallery()[example]
        steps = steps_of(trace)
        solution = steps_text(steps)
        result = score(trace.problem, solution, names, state, request)
        return [trace.problem, solution, steps_html(steps, solution), *result]

    def save_result(problem: str, solution: str, names: list[str], state: str, request: gr.Request) -> str:
        try:
            require(request, Right.WRITE)
        except ForbiddenError as error:
            return notice_html(str(error))
        return saved_html(store, evaluators, problem, solution, names, state)

    def open_address(query: str, request: gr.Request) -> list[object]:
        return opened(evaluators, dict(parse_qsl(query.removeprefix("?"))), read_only=looks_only(request))

    form = [problem, solution, names, state]
    solution.change(split_html, solution, preview, trigger_mode="always_last", **quiet)
    show_steps.click(corrected, state, preview, js=_DRAWN, trigger_mode="always_last", **quiet)
    write_steps.click(written, state, [solution, preview], js=_STATE, trigger_mode="always_last", **quiet)
    for event in (button.click, problem.submit, solution.submit):
        event(score, form, [result, saved], js=_STATE, **busy)
    chosen.click(
        open_example, [chosen, names, state], [problem, solution, preview, result, saved], js=_STATE, **busy
    )
    if not read_only:
        save.click(save_result, form, saved, js=_STATE, trigger_mode="always_last", **quiet)
    everything = [problem, solution, names, preview, result, saved]
    gr.on(None, open_address, state, everything, js=QUERY, **quiet)
    open_link.click(open_address, state, everything, js=QUERY, trigger_mode="always_last", **quiet)


def _examples() -> gr.Dataset:
    gallery = read_gallery()
    block(Markup("<h2>Try one of these</h2>"))
    chosen = gr.Dataset(
        components=[gr.Textbox(visible=False)],
        samples=[[trace.problem] for trace in gallery[:_EXAMPLES]],
        sample_labels=[str(trace.meta.get("title", trace.id)) for trace in gallery[:_EXAMPLES]],
        type="index",
        show_label=False,
        samples_per_page=_EXAMPLES,
        elem_id="examples",
    )
    block(render("score/examples.html", dataset=DATASET, traces=len(gallery)))
    return chosen


def scored(
    evaluators: Evaluators,
    problem: str,
    solution: str,
    names: Sequence[str],
    state: str,
    *,
    read_only: bool = False,
) -> Markup:
    """The result of what a person entered, against the one in view before it where this is an edit of that."""
    try:
        page = PageState.read(state)
    except UserError as error:
        return notice_html(str(error))
    form = page.form(problem, solution, names)
    return result_html(evaluators, form, page.before, kept=page.kept, read_only=read_only)


def opened(evaluators: Evaluators, query: Mapping[str, str], *, read_only: bool = False) -> list[object]:
    """Problem, solution, evaluators, split, result and what was saved, as an address asks for them.

    Without a permalink, or with one that is none, what is typed stays.
    """
    unchanged = [gr.skip()] * 4
    if not query.get("s"):
        return [*unchanged, "", ""]
    try:
        form = read_query(query)
    except UserError as error:
        return [*unchanged, notice_html(str(error)), ""]
    names = [name for name in form.evaluators if name in evaluators.names]
    before = query.get("kept") or query.get("before", "")
    result = result_html(evaluators, form, before, kept="kept" in query, read_only=read_only)
    text = form.text
    preview = split_html(text) if form.solution is text else steps_html(form.steps(), text)
    return [form.problem, text, names or gr.skip(), preview, result, ""]


def corrected(state: str) -> Markup:
    """The steps as a person corrected them."""
    try:
        page = PageState.read(state)
    except UserError as error:
        return notice_html(str(error))
    return corrected_html(page.steps, page.key)


def written(state: str) -> list[object]:
    """The corrected steps as text for the box, and how that is split: into the same steps."""
    try:
        page = PageState.read(state)
    except UserError as error:
        return [gr.skip(), notice_html(str(error))]
    text = steps_text(page.steps)
    return [text, steps_html(page.steps, text)]


def saved_html(
    store: Store, evaluators: Evaluators, problem: str, solution: str, names: Sequence[str], state: str
) -> Markup:
    """Save the result in view, with its judgments, and say where it is; where it has no permalink, what is
    entered."""
    try:
        page = PageState.read(state)
        form = ScoreForm.from_token(page.token) if page.token else page.form(problem, solution, names)
        saved = save_trace(store, form.trace(), page.dataset)
        for name in (name for name in form.evaluators if name in evaluators.names):
            judgment = evaluators.judge(name, saved.trace)
            save_judgments(store, evaluators.register(store, name).id, [judgment])
    except UserError as error:
        return notice_html(str(error))
    return render("score/saved.html", saved=saved)
