"""A trace, on the Browse page and in the demo: the gold label and the evaluators' verdicts on every sub-step, their
verdicts on the solution in words, and people's labels, for users who may see them."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from stepsight.app.markup.marking import marked_markdown
from stepsight.app.web.access import Right, may
from stepsight.app.web.html import macro, render
from stepsight.app.web.step_bars import (
    ONLY_VALIDITY,
    TraceJudgments,
    column_names,
    conclusion_html,
    failing_steps,
    judged_steps,
    legend_html,
    solution_html,
)
from stepsight.core.arrays import Bools
from stepsight.core.errors import counted
from stepsight.core.judgment import Mode
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Label, Trace
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.consensus import find_consensus, read_trace_labels
from stepsight.storage.labelling.disputes import DisputeFilter, DisputeState, list_disputes
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import StoredTrace


def verdict_pieces(answer: TraceJudgments, trace: Trace, *, hints: bool = False) -> list[Markup]:
    """Return the evaluator's verdicts on the whole solution as pieces of HTML. With `hints`, the modes are
    explained."""
    if answer.outputs == Outputs.SOLUTION:
        if answer.solution is None:
            return [Markup("no verdict on the solution")]
        return [Markup("score of the solution: <strong>{}</strong>").format(f"{answer.solution:.3g}")]
    if answer.outputs == Outputs.CHECKS:
        return [_checks_piece(answer, trace)]
    if answer.outputs == Outputs.VERDICT:
        return [_verdict_piece(scores, answer.solution, trace) for scores in answer.modes.values()]
    pieces = [_mode_piece(answer, mode, trace, hints=hints) for mode in answer.modes]
    if answer.change is not None:
        pieces.append(macro("terms.html", "moved", answer.largest_change(trace), hints))
    return pieces if answer.outputs != Outputs.VALIDITY else [*pieces, Markup(ONLY_VALIDITY)]


def first_wrong(answer: TraceJudgments, mode: Mode, trace: Trace) -> int | None:
    """Return the index of the first step that an evaluator calls wrong in one mode, or None if there is no such
    step."""
    return first_below(answer.modes[mode], answer.thresholds.validity, trace, answer.silent[mode])


def first_below(scores: StepScores, threshold: float, trace: Trace, silent: Bools | None = None) -> int | None:
    """Return the index of the first step with a sub-step whose validity is below the threshold, or None if there is
    none. Sub-steps marked in `silent` are skipped, because the evaluator says nothing about them."""
    below = scores.validity < threshold
    wrong = np.flatnonzero(below if silent is None else below & ~silent)
    return int(trace.owners[wrong[0]]) if len(wrong) else None


def outcome_words(wrong: int | None, trace: Trace) -> str:
    """Compare in words the first step called wrong with the first error in the gold labels. If the gold labels do
    not say whether there is an error, only the step called wrong is mentioned."""
    gold = trace.first_error
    if gold is None and not all(step.valid for step in trace.steps):
        return "" if wrong is None else f"blames step {wrong + 1}"
    if gold is None:
        return "agrees with gold" if wrong is None else f"false alarm at step {wrong + 1}"
    if wrong is None:
        return f"misses the error in step {gold + 1}"
    return (
        f"finds the error in step {gold + 1}" if wrong == gold else f"blames step {wrong + 1}, gold step {gold + 1}"
    )


def _verdict_piece(scores: StepScores, value: float | None, trace: Trace) -> Markup:
    wrong, redundant = (np.unique(trace.owners[scores.probs[:, label] == 1]) for label in (Label.NEG, Label.NEU))
    if len(redundant):
        steps = f"{'step' if len(redundant) == 1 else 'steps'} {', '.join(map(str, redundant + 1))}"
        return Markup("redundant: <strong>{}</strong>").format(steps)
    if len(wrong):
        blamed = int(wrong[0])
        verdict = Markup('<strong class="bad">wrong</strong> from step {}{}')
        return verdict.format(blamed + 1, _compare_with_gold(blamed, trace))
    if value is None:
        return Markup("its verdict could not be read")
    if not value:
        return Markup('<strong class="bad">finds an error</strong>, names no step')
    # Gold labels that mark redundant steps say nothing about errors.
    redundancy = any(step.label == Label.NEU for step in trace.steps)
    return Markup("finds no error{}").format("" if redundancy else _compare_with_gold(None, trace))


def _checks_piece(answer: TraceJudgments, trace: Trace) -> Markup:
    """Render the verdict of an evaluator that checks equations. The verdict is the same in every mode, because
    later steps do not change it."""
    mode = next(iter(answer.modes))
    wrong = first_wrong(answer, mode, trace)
    if wrong is not None:
        verdict = Markup('<strong class="bad">wrong</strong> in step {}{}')
        return verdict.format(wrong + 1, _compare_with_gold(wrong, trace))
    steps = len(set(trace.owners[~answer.silent[mode]].tolist()))
    if not steps:
        return Markup("nothing to check")
    return Markup("every equation that it can check holds, in {} of {} steps").format(steps, len(trace.steps))


def _compare_with_gold(blamed: int | None, trace: Trace) -> str:
    gold = trace.first_error
    if gold is None and not all(step.valid for step in trace.steps):
        return ""
    if blamed == gold:
        return ", agrees with gold"
    if blamed is None:
        return f", misses the error in step {(gold or 0) + 1}"
    return ", a false alarm" if gold is None else f", gold step {gold + 1}"


def _mode_piece(answer: TraceJudgments, mode: Mode, trace: Trace, *, hints: bool) -> Markup:
    title: str | Markup = mode.value.capitalize()
    if hints:
        title = macro("terms.html", "term", mode.value, title)
    scores = StepScores(answer.modes[mode].probs[~answer.silent[mode]])
    if not len(scores):
        return Markup("{}: no scores for the steps").format(title)
    outcome = outcome_words(first_wrong(answer, mode, trace), trace)
    verdict = solution_html(scores, answer.thresholds, answer.outputs)
    return Markup("{}: {}{}").format(title, verdict, outcome and f", {outcome}")


def trace_html(
    trace: Trace,
    answers: Sequence[TraceJudgments],
    search: str,
    people: Sequence[str | None] = (),
    disputes: Sequence[Markup] = (),
) -> Markup:
    """Render a trace: the problem, each evaluator's verdicts on the solution, and the steps with their sub-steps.

    Hits of the search text `search` are marked. For each step, `people` holds the label that people agreed on, and
    `disputes` the links below its gold label.
    """
    columns = [answer for answer in answers if answer.judgments and answer.outputs.has_steps]
    # Only the first column with scores explains the modes.
    explained = next(
        (column for column in columns if column.outputs in (Outputs.THREE_WAY, Outputs.VALIDITY)), None
    )
    return render(
        "browse/trace.html",
        answers=answers,
        lanes=column_names(columns),
        failing=failing_steps(trace),
        conclusion=conclusion_html(trace, answers),
        legend=legend_html(columns),
        pieces=lambda answer: verdict_pieces(answer, trace, hints=answer is explained),
        problem=marked_markdown(trace.problem, search),
        marked=lambda text: marked_markdown(text, search),
        trace=trace,
        columns=columns,
        rows=judged_steps(trace, lambda text: marked_markdown(text, search)),
        people=people or [None] * len(trace.steps),
        disputes=disputes or [""] * len(trace.steps),
    )


_TEMPLATE = "browse/people.html"
_REASONS = {
    "adjudicated": "decided",
    "majority": "majority",
    "tie": "a tie",
    "unsure": "unsure",
    "none": "nobody",
}
_ALIVE = (DisputeState.OPEN, DisputeState.ACCEPTED)


class PeopleLabels:
    """The labels that people gave to a trace, as far as `user` may see them.

    `user` is None for a visitor who is not logged in. Everybody who sees the trace may see the consensus, except
    visitors while a campaign is open. Individual labels are visible once their campaign is closed. Its manager can
    see them earlier.
    """

    def __init__(self, store: Store, trace_id: int, user: User | None) -> None:
        self._shown = [
            (campaign, item, find_consensus(item, campaign.after_error))
            for campaign, item in read_trace_labels(store, trace_id)
            if user is not None or campaign.closed is not None
        ]
        self._manages = user is not None and may(user, Right.MANAGE, store)
        self._logged_in = user is not None

    @property
    def labels(self) -> tuple[str | None, ...]:
        """The consensus labels of the newest campaign, one per step, or an empty tuple if there are no labels to
        show."""
        return self._shown[0][2][0] if self._shown else ()

    @property
    def words(self) -> str:
        """A short summary of the labels, shown below the trace."""
        if not self._shown:
            return "none yet"
        return ", ".join(
            f"{counted(len(item.annotations), 'annotator')} in {campaign.name}" for campaign, item, _ in self._shown
        )

    def html(self) -> Markup:
        """A table for each campaign, with the consensus and every annotator's label for each step."""
        if not self._shown:
            return Markup()
        tables = []
        for campaign, item, consensus in self._shown:
            shows_each = self._logged_in and (self._manages or campaign.closed is not None)
            tables.append((campaign, item, consensus, item.annotations if shows_each else ()))
        return macro(_TEMPLATE, "tables", tables, _REASONS)


def dispute_links(store: Store, trace: StoredTrace, user: User | None) -> tuple[Markup, ...]:
    """Return, for each step, the links below its gold label: to its disputes and, if it has one and `user`
    may label, to a form to file one. Returns an empty tuple if the trace has no gold labels."""
    if not trace.has_gold:
        return ()
    listed = list_disputes(store, DisputeFilter(trace_id=trace.trace_id))
    disputes = [dispute for dispute in listed if dispute.state in _ALIVE]
    labels = user is not None and may(user, Right.LABEL, store)
    return tuple(
        macro(_TEMPLATE, "disputes", disputes, trace.trace_id, number, labels and step.valid is not None)
        for number, step in enumerate(trace.steps, 1)
    )
