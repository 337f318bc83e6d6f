"""A trace, on the Browse page and in the demo: for every sub-step, the gold label and the evaluators' verdicts."""

from collections.abc import Sequence

from markupsafe import Markup

from stepsight.app.agents.context_html import before_html, calls_html, said_texts
from stepsight.app.browse.hits import marked_markdown
from stepsight.app.browse.verdicts import verdict_pieces
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import (
    TraceJudgments,
    column_names,
    failing_steps,
    judged_steps,
    legend_html,
    section_starts,
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
    The messages before a step of an agent, and the calls in it, are folded.

    Hits of the search text `wanted` are marked. `people` holds the label that people agreed on for each step, and
    `disputes` the links below each step's gold label.
    """
    columns = [answer for answer in answers if answer.judgments and answer.outputs.has_steps]
    # Only the first column with scores explains the modes.
    explained = next((one for one in columns if one.outputs in (Outputs.THREE_WAY, Outputs.VALIDITY)), None)
    # Without the lines of an agent's calls, which stand below the text as code.
    said = said_texts(trace)
    return render(
        "browse/trace.html",
        trace=trace,
        answers=answers,
        columns=columns,
        rows=judged_steps(trace, lambda text: marked_markdown(said.get(text, text), wanted)),
        before=lambda step: before_html(trace, step),
        calls=lambda step: calls_html(trace, step),
        people=people or [None] * len(trace.steps),
        disputes=disputes or [Markup()] * len(trace.steps),
        lanes=column_names(columns),
        failing=failing_steps(trace),
        sections=section_starts(trace),
        legend=legend_html(columns),
        pieces=lambda answer: verdict_pieces(answer, trace, hints=answer is explained),
        problem=marked_markdown(trace.problem, wanted),
        marked=lambda text: marked_markdown(text, wanted),
    )
