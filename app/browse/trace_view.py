"""A trace, on the Browse page and in the demo: for every sub-step, the gold label and the evaluators' verdicts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from stepsight.app.browse.hits import marked_markdown
from stepsight.app.browse.verdicts import verdict_pieces
from stepsight.app.markup.text import MARKS
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import (
    IN_STRIP,
    TraceJudgments,
    column_names,
    conclusion_html,
    failing_steps,
    first_steps,
    gold_marks,
    judged_steps,
    later_html,
    legend_html,
    substeps_of,
)
from stepsight.core.equations.evaluator import are_checked, checks_of
from stepsight.core.judgment import Mode
from stepsight.core.label import LABEL_NAMES
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace

_NO_MARK = " "


@dataclass(frozen=True)
class LaterSteps:
    """The URLs from which the page of a long trace requests the steps that come into view (`more`) and the marks of
    all steps (`marks`), and the URL of the page with all steps (`all`). If `whole` is True, this page is that
    page."""

    more: str
    marks: str
    all: str
    whole: bool = False


def trace_html(
    trace: Trace,
    answers: Sequence[TraceJudgments],
    wanted: str,
    people: Sequence[str | None] = (),
    disputes: Callable[[range], Sequence[Markup]] | None = None,
    later: LaterSteps | None = None,
) -> Markup:
    """Render a trace: the problem, each evaluator's verdicts on the solution, and the steps with their sub-steps.

    Hits of the search text `wanted` are marked. `people` holds the label that people agreed on for each step, and
    `disputes` returns the links below the gold labels of some steps. Of a long trace, only the first steps are
    rendered if `later` says where the others are.
    """
    columns = _columns(answers)
    count = len(trace.steps)
    steps = first_steps(count, whole=later is None or later.whole)
    rest = range(steps.stop, count)
    # To check the equations of a long trace takes longer than to show its beginning.
    is_checked = not rest or are_checked(trace)
    equations = failing_steps(trace) if is_checked else None
    marks = _strip_marks(trace, columns, equations=equations != []) if rest else []
    # Only the first column with scores explains the modes.
    explained = next((one for one in columns if one.outputs in (Outputs.THREE_WAY, Outputs.VALIDITY)), None)
    return render(
        "browse/trace.html",
        answers=answers,
        lanes=column_names(columns),
        failing=equations is None or equations,
        conclusion=conclusion_html(trace, answers) if is_checked else None,
        legend=legend_html(columns),
        pieces=lambda answer: verdict_pieces(answer, trace, hints=answer is explained),
        problem=marked_markdown(trace.problem, wanted),
        marked=lambda text: marked_markdown(text, wanted),
        later=later_html(rest, marks) if rest else "",
        more=later.more if later else "",
        marks_of=later.marks if later and not is_checked else "",
        whole_url=later.all if later else "",
        **_steps(trace, columns, wanted, people, disputes, steps),
    )


def steps_html(
    trace: Trace,
    answers: Sequence[TraceJudgments],
    wanted: str,
    people: Sequence[str | None],
    disputes: Callable[[range], Sequence[Markup]],
    steps: range,
) -> Markup:
    """Render some of a trace's steps as list items, as `trace_html` does."""
    values = _steps(trace, _columns(answers), wanted, people, disputes, steps)
    return render("browse/steps.html", **values)


def marks_json(trace: Trace, answers: Sequence[TraceJudgments]) -> dict[str, Any]:
    """Return the sentence on the trace, and the marks of each step in the strip (see `_strip_marks`) with a lane of
    equations, which are checked now."""
    checks_of(trace)
    marks = _strip_marks(trace, _columns(answers), equations=True)
    return {"conclusion": conclusion_html(trace, answers), "marks": marks}


def _columns(answers: Sequence[TraceJudgments]) -> list[TraceJudgments]:
    return [answer for answer in answers if answer.judgments and answer.outputs.has_steps]


def _steps(
    trace: Trace,
    columns: Sequence[TraceJudgments],
    wanted: str,
    people: Sequence[str | None],
    disputes: Callable[[range], Sequence[Markup]] | None,
    steps: range,
) -> dict[str, Any]:
    links = disputes(steps) if disputes else ()
    return {
        "trace": trace,
        "columns": columns,
        "rows": judged_steps(trace, lambda text: marked_markdown(text, wanted), substeps_of(trace, steps)),
        "people": people or [None] * len(trace.steps),
        "disputes": dict(zip(steps, links, strict=True)) if links else dict.fromkeys(steps, ""),
    }


def _strip_marks(trace: Trace, columns: Sequence[TraceJudgments], *, equations: bool) -> list[str]:
    """Return the marks of each step in the strip of a long solution: a sign for each lane, or a blank. The lanes
    are the bars of a step, then whether its `equations` fail, and its gold if the trace has any. Equations that are
    not checked yet have no mark."""
    owners = trace.owners.tolist()
    lanes = [
        _worst(owners, len(trace.steps), [_strip_mark(one, mode, i) for i in range(len(owners))])
        for one in columns
        for mode in one.modes
    ]
    if equations:
        failing = {owners[i] for i in failing_steps(trace)} if are_checked(trace) else set()
        lanes.append([MARKS["not valid"] if step in failing else _NO_MARK for step in range(len(trace.steps))])
    if trace.has_gold:
        lanes.append(gold_marks(trace))
    return ["".join(marks) for marks in zip(*lanes, strict=True)] or [""] * len(trace.steps)


def _strip_mark(one: TraceJudgments, mode: Mode, i: int) -> str:
    if one.silent[mode][i]:
        return _NO_MARK
    if one.shape == "marks":
        return IN_STRIP.get(LABEL_NAMES[int(one.modes[mode].probs[i].argmax())], _NO_MARK)
    return IN_STRIP.get(one.verdict(mode, i), _NO_MARK)


def _worst(owners: Sequence[int], count: int, marks: Sequence[str]) -> list[str]:
    """Return the worst of the marks of each step's sub-steps."""
    worst = [_NO_MARK] * count
    for owner, mark in zip(owners, marks, strict=True):
        if worst[owner] != MARKS["not valid"] and mark != _NO_MARK:
            worst[owner] = mark
    return worst
