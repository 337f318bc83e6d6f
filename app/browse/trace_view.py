"""A trace on the page of Browse: gold, and each evaluator's verdict on every sub-step, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from stepsight.app.browse.hits import marked_html, marked_markdown
from stepsight.app.browse.trace_judgments import TraceJudgments
from stepsight.app.browse.verdicts import verdict_pieces
from stepsight.app.markup.text import text_html
from stepsight.app.web.html import render
from stepsight.app.web.judged import bar_html, change_html, checked_html, gold_html, legend_html, step_name
from stepsight.core.scores import Outputs
from stepsight.core.trace import Step
from stepsight.storage.traces.queries import StoredTrace


@dataclass(frozen=True)
class _StepRow:
    """A step with the numbers of its sub-steps in the trace, what people agree on, and links to disputes."""

    gold: Step
    substeps: range
    is_first_error: bool
    agreed: str | None
    disputes: Markup


def trace_html(
    trace: StoredTrace,
    answers: Sequence[TraceJudgments],
    wanted: str = "",
    people: Sequence[str | None] = (),
    disputes: Sequence[Markup] = (),
) -> Markup:
    """Problem, the verdicts of each evaluator on the solution, and every step with its sub-steps; what a search
    looks for is marked. `people` is what they agree on, and `disputes` links for below the gold, both by step."""
    columns = [answer for answer in answers if answer.judgments and answer.outputs.has_steps]
    # The first one that has scores in a mode.
    explained = next((one for one in columns if one.outputs in (Outputs.THREE_WAY, Outputs.VALIDITY)), None)
    return render(
        "browse/trace.html",
        trace=trace,
        answers=answers,
        columns=columns,
        steps=_rows(trace, people, disputes),
        legend=legend_html(
            [answer.outputs for answer in columns],
            spread=any(scores.spread is not None for answer in columns for scores in answer.modes.values()),
        ),
        pieces=lambda answer: verdict_pieces(answer, trace, hints=answer is explained),
        problem=marked_html(text_html(trace.problem), wanted),
        marked=lambda text: marked_markdown(text, wanted),
        substep=lambda i: checked_html(trace, i, marked_markdown(trace.substeps[i], wanted)),
        name=lambda i: step_name(trace, i),
        bar=bar_html,
        change=change_html,
        gold=gold_html,
    )


def _rows(trace: StoredTrace, people: Sequence[str | None], disputes: Sequence[Markup]) -> list[_StepRow]:
    rows, start = [], 0
    for number, step in enumerate(trace.steps):
        end = start + len(step.substeps)
        rows.append(
            _StepRow(
                step,
                range(start, end),
                number == trace.first_error,
                people[number] if number < len(people) else None,
                disputes[number] if disputes else Markup(),
            )
        )
        start = end
    return rows
