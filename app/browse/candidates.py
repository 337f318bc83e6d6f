"""The candidate solutions of one problem side by side, with the rules that choose each of them."""

from collections.abc import Iterator

from markupsafe import Markup

from stepsight.app.agents.context_html import before_html, calls_html, said_texts
from stepsight.app.browse.evaluator_choice import default_choice, step_scorers, stored_column
from stepsight.app.browse.selection import Selection
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import TraceJudgments, judged_steps, legend_html
from stepsight.storage.traces.queries import StoredTrace
from stepsight.training.experiments.reranking.problem import problem_candidates

MOST_CANDIDATES = 64
"""The candidates that a page shows, besides those that a rule chooses."""


def candidates_html(selection: Selection, trace: StoredTrace) -> tuple[Markup, list[int]]:
    """Render the candidates of a trace's problem, and return the HTML and the database ids of the candidates shown.

    The scores come from the address's first evaluator if it scores steps, and otherwise from the default one among
    the evaluators that do. Candidates that a rule chooses come first. Raises `UserError` if two candidates
    contradict each other in their metadata.
    """
    store, address = selection.store, selection.address
    able = step_scorers(selection.choices)
    wanted = [one for one in able if one.key == address.shown[0]]
    about = wanted[0] if wanted else (default_choice(able) if able else None)
    evaluator_id = None if about is None else about.id
    problem = problem_candidates(store, trace, evaluator_id, "" if about is None else about.key)
    shown = [one for one in problem.candidates if one.rules]
    shown += [one for one in problem.candidates if not one.rules][:MOST_CANDIDATES]
    columns = [
        None if about is None or one.judgment is None else stored_column(store, about, one.judgment, problem.mode)
        for one in shown
    ]
    html = render(
        "browse/candidates.html",
        address=address,
        trace=trace,
        problem=problem,
        about=about,
        evaluators=able,
        cards=[(one, list(_steps(one.trace, column))) for one, column in zip(shown, columns, strict=True)],
        query={name: value for name, value in address.query().items() if name != "beside"},
        legend=legend_html([column for column in columns if column is not None][:1]),
    )
    return html, [one.trace.trace_id for one in shown]


def _steps(trace: StoredTrace, column: TraceJudgments | None) -> Iterator[tuple[str, Markup, Markup]]:
    modes = {} if column is None else column.silent
    rows = judged_steps(trace, said=said_texts(trace))
    for i, row in enumerate(rows):
        is_last = i + 1 == len(rows) or rows[i + 1].starts
        before = before_html(trace, row.number) if row.starts else Markup()
        calls = calls_html(trace, row.number) if is_last else Markup()
        bars = [column.bar(mode, i) for mode, silent in modes.items() if column is not None and not silent[i]]
        yield row.name, before + row.html + calls, Markup().join(bars)
