"""A trace, on the Browse page and in the demo: for every sub-step, the gold label and the evaluators' verdicts."""

from collections.abc import Sequence

from markupsafe import Markup

from stepsight.app.browse.hits import marked_markdown
from stepsight.app.browse.verdicts import verdict_pieces
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import (
    TraceJudgments,
    column_names,
    conclusion_html,
    failing_steps,
    judged_steps,
    legend_html,
)
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace


def trace_html(
    trace: Trace,
    answers: Sequence[TraceJudgments],
    wanted: str,
    people: Sequence[str | None] = (),
    disputes: Sequence[Markup] = (),
) -> Markup:
    """Render a trace: the problem, each evaluator's verdicts on the solution, and the steps with their sub-steps.

    Hits of the search text `wanted` are marked. For each step, `people` holds the label that people agreed on, and
    `disputes` the links below its gold label.
    """
    columns = [answer for answer in answers if answer.judgments and answer.outputs.has_steps]
    # Only the first column with scores explains the modes.
    explained = next((one for one in columns if one.outputs in (Outputs.THREE_WAY, Outputs.VALIDITY)), None)
    return render(
        "browse/trace.html",
        answers=answers,
        lanes=column_names(columns),
        failing=failing_steps(trace),
        conclusion=conclusion_html(trace, answers),
        legend=legend_html(columns),
        pieces=lambda answer: verdict_pieces(answer, trace, hints=answer is explained),
        problem=marked_markdown(trace.problem, wanted),
        marked=lambda text: marked_markdown(text, wanted),
        trace=trace,
        columns=columns,
        rows=judged_steps(trace, lambda text: marked_markdown(text, wanted)),
        people=people or [None] * len(trace.steps),
        disputes=disputes or [""] * len(trace.steps),
    )
