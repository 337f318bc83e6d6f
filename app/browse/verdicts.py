"""An evaluator's verdicts on a whole solution in words, compared with the gold labels."""

import numpy as np
from markupsafe import Markup

from stepsight.app.web.html import macro
from stepsight.app.web.step_bars import ONLY_VALIDITY, TraceJudgments, solution_html
from stepsight.core.arrays import Bools
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Trace


def verdict_pieces(answer: TraceJudgments, trace: Trace, *, hints: bool = False) -> list[Markup]:
    """Return the evaluator's verdicts on the whole solution as pieces of HTML. With `hints`, the modes are
    explained."""
    if answer.outputs == Outputs.SOLUTION:
        return [_number_piece(answer.solution)]
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
    not tell whether there is an error, only the step called wrong is mentioned."""
    gold = trace.first_error
    if gold is None and not all(step.valid for step in trace.steps):
        return "" if wrong is None else f"first wrong step {wrong + 1}"
    if gold is None:
        return "agrees with gold" if wrong is None else f"false alarm at step {wrong + 1}"
    if wrong is None:
        return f"misses the error in step {gold + 1}"
    return (
        f"finds the error in step {gold + 1}"
        if wrong == gold
        else f"first error at step {wrong + 1}, gold at step {gold + 1}"
    )


def _number_piece(value: float | None) -> Markup:
    if value is None:
        return Markup("no verdict on the solution")
    return Markup("score of the solution: <strong>{}</strong>").format(f"{value:.3g}")


def _verdict_piece(scores: StepScores, value: float | None, trace: Trace) -> Markup:
    wrong, redundant = (np.unique(trace.owners[scores.probs[:, label] == 1]) for label in (Label.NEG, Label.NEU))
    if len(redundant):
        steps = f"{'step' if len(redundant) == 1 else 'steps'} {', '.join(map(str, redundant + 1))}"
        return Markup("redundant: <strong>{}</strong>").format(steps)
    if len(wrong):
        blamed = int(wrong[0])
        verdict = Markup('<strong class="bad">wrong</strong> from step {}{}')
        return verdict.format(blamed + 1, _beside_gold(blamed, trace))
    if value is None:
        return Markup("its verdict could not be read")
    if not value:
        return Markup('<strong class="bad">finds an error</strong>, names no step')
    # Gold with redundant steps does not tell about errors.
    redundancy = any(step.label == Label.NEU for step in trace.steps)
    return Markup("finds no error{}").format("" if redundancy else _beside_gold(None, trace))


def _checks_piece(answer: TraceJudgments, trace: Trace) -> Markup:
    """Render the verdict of an evaluator that checks equations. The verdict is the same in every mode, because
    later steps do not change it."""
    mode = next(iter(answer.modes))
    wrong = first_wrong(answer, mode, trace)
    if wrong is not None:
        verdict = Markup('<strong class="bad">wrong</strong> in step {}{}')
        return verdict.format(wrong + 1, _beside_gold(wrong, trace))
    steps = len(set(trace.owners[~answer.silent[mode]].tolist()))
    if not steps:
        return Markup("nothing to check")
    return Markup("every equation that it can check holds, in {} of {} steps").format(steps, len(trace.steps))


def _beside_gold(blamed: int | None, trace: Trace) -> str:
    gold = trace.first_error
    if gold is None and not all(step.valid for step in trace.steps):
        return ""
    if blamed == gold:
        return ", agrees with gold"
    if blamed is None:
        return f", misses the error in step {(gold or 0) + 1}"
    return ", a false alarm" if gold is None else f", gold at step {gold + 1}"


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
