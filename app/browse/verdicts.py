"""What an evaluator says of a whole solution, in words, and how that stands against the gold."""

import numpy as np
from numpy.typing import NDArray

from stepsight.app.browse.answers import Answer
from stepsight.app.web.judged import signed, solution_html, step_name
from stepsight.core.arrays import Floats32
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Trace


def answer_words(answer: Answer, trace: Trace) -> list[str]:
    """Pieces of HTML, one per thing that the evaluator says of the solution."""
    if answer.outputs == Outputs.SOLUTION:
        return [_number_words(answer.solution)]
    if answer.outputs == Outputs.VERDICT:
        return [_verdict_words(scores, answer.solution, trace) for scores in answer.modes.values()]
    words = [_mode_words(answer, mode, trace) for mode in answer.modes]
    return words if answer.change is None else [*words, _change_words(answer.change, trace)]


def first_wrong(answer: Answer, mode: Mode, trace: Trace) -> int | None:
    """The first step, 0-based, that it calls wrong in a mode that it has; None where it calls none so."""
    return first_below(answer.modes[mode], answer.thresholds.validity, trace, answer.silent[mode])


def first_below(
    scores: StepScores, threshold: float, trace: Trace, silent: NDArray[np.bool_] | None = None
) -> int | None:
    """The first step, 0-based, with a sub-step whose validity is below a threshold, but for those that are silent;
    None where there is none."""
    below = scores.validity < threshold
    wrong = np.flatnonzero(below if silent is None else below & ~silent)
    return int(trace.owners[wrong[0]]) if len(wrong) else None


def outcome_words(found: int | None, trace: Trace) -> str:
    """How the first step called wrong stands against the gold's first error, where the gold names one or says of
    every step that it is valid."""
    gold = trace.first_error
    if gold is None and not all(step.valid for step in trace.steps):
        return "" if found is None else f"first wrong step {found + 1}"
    if gold is None:
        return "as gold" if found is None else f"false alarm at step {found + 1}"
    if found is None:
        return f"misses the error of step {gold + 1}"
    return (
        f"finds the error of step {gold + 1}" if found == gold else f"blames step {found + 1}, gold step {gold + 1}"
    )


def _number_words(value: float | None) -> str:
    if value is None:
        return "says nothing of the solution"
    return f"one number for the solution: <strong>{value:.3g}</strong>"


def _verdict_words(scores: StepScores, value: float | None, trace: Trace) -> str:
    blamed = [np.unique(trace.owners[scores.probs[:, label] == 1]) + 1 for label in (Label.NEG, Label.NEU)]
    if len(blamed[0]):
        return f'<strong class="bad">wrong</strong> from step {blamed[0][0]}'
    if len(blamed[1]):
        return f"redundant: <strong>{_steps(blamed[1].tolist())}</strong>"
    if value is None:
        return "its verdict could not be read"
    return "finds no fault" if value else '<strong class="bad">finds fault</strong>, blames no step'


def _steps(numbers: list[int]) -> str:
    return f"{'step' if len(numbers) == 1 else 'steps'} {', '.join(map(str, numbers))}"


def _mode_words(answer: Answer, mode: Mode, trace: Trace) -> str:
    said = StepScores(answer.modes[mode].probs[~answer.silent[mode]])
    if not len(said):
        return f"{mode.value.capitalize()}: says nothing of the steps"
    outcome = outcome_words(first_wrong(answer, mode, trace), trace)
    verdict = solution_html(said, answer.thresholds, answer.outputs)
    return f"{mode.value.capitalize()}: {verdict}{outcome and f', {outcome}'}"


def _change_words(change: Floats32, trace: Trace) -> str:
    if not change.any():
        return "largest retroactive change: <strong>none</strong>"
    largest = int(abs(change).argmax())
    moved = f"step {step_name(trace, largest)}, {signed(float(change[largest]))}"
    return f"largest retroactive change: <strong>{moved}</strong>"
