"""Calibrating thresholds on a validation dataset, since thresholds must not be chosen on test data (paper, App. C).

One threshold is tried between every two adjacent scores, since all thresholds between two scores give the same
verdicts. The figures of all thresholds are computed together.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import Floats64
from stepsight.core.errors import UserError, located
from stepsight.core.judgment import Mode
from stepsight.core.metrics.figures import Subject
from stepsight.core.metrics.reasoneval import Errors, Level
from stepsight.core.metrics.table import Items
from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import Gold, read_gold, read_table
from stepsight.storage.judgments.evaluators import (
    Calibration,
    StoredEvaluator,
    Threshold,
    find_calibration,
    save_calibration,
)
from stepsight.storage.traces.queries import Dataset

OF_ERRORS = {Errors.INVALID: Threshold.VALIDITY, Errors.REDUNDANT: Threshold.REDUNDANCY}
"""The threshold for each kind of error."""

_DIGITS = range(2, 10)


class Goal(StrEnum):
    """The criterion by which a threshold is chosen.

    `macro-f1` maximises the mean of two F1 scores: that of steps with the error and that of steps without. `recall`
    maximises precision among the thresholds that find at least a given fraction of the errors.
    """

    MACRO_F1 = "macro-f1"
    RECALL = "recall"


@dataclass(frozen=True)
class ThresholdChoice:
    """A threshold, with its figures on the steps used to choose it. The figures are macro-F1, and the precision and
    recall of errors, as fractions. Precision is NaN if no error is found at this threshold."""

    value: float
    macro_f1: float
    precision: float
    recall: float


@dataclass(frozen=True)
class Calibrated:
    """The result of calibrating one threshold of an evaluator on a dataset.

    `before` is the previous value of the threshold. `steps` is the number of steps that were counted, and `errors`
    is the number of these that have the error.
    """

    evaluator: str
    dataset: str
    mode: Mode
    threshold: Threshold
    before: float
    choice: ThresholdChoice
    errors: int
    steps: int
    calibration: Calibration


def calibrate(
    store: Store,
    dataset: Dataset,
    evaluator: StoredEvaluator,
    mode: Mode = Mode.OFFLINE,
    errors: Errors = Errors.INVALID,
    goal: Goal = Goal.MACRO_F1,
    recall: float = 0.9,
) -> Calibrated:
    """Choose an evaluator's threshold for one kind of error from its stored judgments of a dataset, and store the
    threshold.

    `recall` is the fraction of errors to find, and only applies to the goal `recall`. Raises `UserError` if the
    evaluator, the gold labels or the scores leave no choice.
    """
    _check_outputs(evaluator, errors)
    gold = read_gold(store, dataset)
    _check_ending(gold, evaluator, mode)
    table = read_table(store, gold, evaluator.id, mode)
    where = f"{evaluator.name} on {dataset.name}, {mode}"
    if not len(table):
        raise UserError(f"{where}: there are no judgments.", "Score the dataset first: stepsight score.")
    items = Subject(table, evaluator.outputs, Thresholds()).items(errors, Level.STEP)
    with located(f"{where}, {errors} errors"):
        choice = choose(items, errors, goal, recall)
    in_force = find_calibration(store, evaluator.id)
    chosen, wrong = OF_ERRORS[errors], int((~items.gold).sum())
    info: dict[str, Any] = {
        "mode": mode.value,
        "errors": errors.value,
        "goal": goal.value,
        "n_steps": len(items),
        "n_errors": wrong,
    }
    info |= {"wanted_recall": recall} if goal == Goal.RECALL else {}
    reached = {name: None if np.isnan(value) else value for name, value in vars(choice).items() if name != "value"}
    calibration = save_calibration(store, evaluator.id, dataset, chosen, choice.value, info | reached)
    before = getattr(in_force.thresholds if in_force else evaluator.thresholds, chosen.value)
    return Calibrated(evaluator.name, dataset.name, mode, chosen, before, choice, wrong, len(items), calibration)


def _check_outputs(evaluator: StoredEvaluator, errors: Errors) -> None:
    if evaluator.outputs not in (Outputs.THREE_WAY, Outputs.VALIDITY):
        outputs = {
            Outputs.SOLUTION: "one number per solution",
            Outputs.VERDICT: "verdicts in words",
            Outputs.CHECKS: "what it has checked",
        }
        raise UserError(f"{evaluator.name} gives {outputs[evaluator.outputs]}, so it has no threshold.")
    if errors == Errors.REDUNDANT and evaluator.outputs != Outputs.THREE_WAY:
        raise UserError(
            f"{evaluator.name} judges only validity, so it has no redundancy threshold.", "Use --errors invalid."
        )


def _check_ending(gold: Gold, evaluator: StoredEvaluator, mode: Mode) -> None:
    if mode == Mode.OFFLINE and evaluator.sees_later_steps and gold.ends_at_first_error():
        raise UserError(
            f"the traces of {gold.dataset.name} stop at their first error, so the missing ending gives"
            " the error away offline: a threshold chosen there does not hold for whole solutions.",
            "Use --mode online, or another dataset.",
        )


def choose(items: Items, errors: Errors, goal: Goal = Goal.MACRO_F1, recall: float = 0.9) -> ThresholdChoice:
    """Return the threshold that best meets the goal.

    Among equally good thresholds, the one nearest to the default is chosen, with only as many digits as are needed
    to separate it from its neighbours. Raises `UserError` if there are no steps, if the gold labels have only one
    class, if a step has no score, or if no threshold reaches `recall`.
    """
    unread = int(np.isnan(items.scores).sum())
    if unread:
        raise UserError(f"{unread:,} of {len(items):,} steps have no score.", "Score the whole dataset.")
    if items.problem:
        raise UserError(f"{items.problem}.", "Use a dataset with and without such errors.")
    scores = items.scores if errors == Errors.INVALID else -items.scores
    tried = _Tried.of(scores, ~items.gold, errors)
    default = vars(Thresholds())[OF_ERRORS[errors].value]
    best = tried.best(goal, recall, default)
    return ThresholdChoice(
        _shortest(tried.above[best], tried.up_to[best], default),
        float(tried.macro_f1[best]),
        float(tried.precision[best]),
        float(tried.recall[best]),
    )


@dataclass(frozen=True, eq=False)
class _Tried:
    """All thresholds worth trying, with their figures, in arrays of shape (m,). Threshold i may be any number
    greater than `above[i]` and at most `up_to[i]`."""

    above: Floats64
    up_to: Floats64
    macro_f1: Floats64
    precision: Floats64
    recall: Floats64

    @classmethod
    def of(cls, scores: Floats64, wrong: NDArray[np.bool_], errors: Errors) -> "_Tried":
        """Compute the figures of all thresholds from 0 to 1.

        A step counts as invalid if its score lies below the threshold, and as redundant if it reaches the
        threshold.
        """
        order = np.argsort(scores, kind="stable")
        values, counts = np.unique(scores[order], return_counts=True)
        ends = np.cumsum(counts)
        below = np.append(0, ends)
        wrong_below = np.append(0, np.cumsum(wrong[order])[ends - 1])
        total, total_wrong = below[-1], wrong_below[-1]
        called = below if errors == Errors.INVALID else total - below
        hits = wrong_below if errors == Errors.INVALID else total_wrong - wrong_below
        right = total - called - (total_wrong - hits)
        with np.errstate(invalid="ignore"):
            precision = hits / called
        f1_wrong = 2 * hits / (called + total_wrong)
        f1_right = 2 * right / (total - called + total - total_wrong)
        above, up_to = np.append(-np.inf, values), np.append(values, np.inf)
        inside = (above < 1) & (up_to >= 0)
        columns = (above, up_to, (f1_wrong + f1_right) / 2, precision, hits / total_wrong)
        return cls(*(column[inside] for column in columns))

    def best(self, goal: Goal, recall: float, default: float) -> int:
        """Return the index of the best threshold. Raises `UserError` if no threshold reaches `recall`."""
        distance = np.maximum(self.above - default, 0) + np.maximum(default - self.up_to, 0)
        if goal == Goal.MACRO_F1:
            return int(np.lexsort((distance, -self.macro_f1))[0])
        enough = self.recall >= recall
        if not enough.any():
            raise UserError(
                f"no threshold reaches recall {recall:.3g}; the highest is {self.recall.max():.3g}.",
                "Lower --recall.",
            )
        worth = np.where(enough, self.precision, -1.0)
        return int(np.lexsort((distance, -self.recall, -worth))[0])


def _shortest(above: float, up_to: float, default: float) -> float:
    """Return a short number greater than `above` and at most `up_to`.

    The result is the default if it lies in this range, and otherwise the midpoint with as few digits as possible.
    Comparisons are in single precision, like the scores.
    """
    low, high = max(above, 0.0), min(up_to, 1.0)

    def fits(value: float) -> bool:
        return bool(np.float32(above) < np.float32(value) <= np.float32(up_to)) and 0 <= value <= 1

    if fits(default):
        return default
    middle = (low + high) / 2
    shown = (float(f"{middle:.{digits}f}") for digits in _DIGITS)
    return next((value for value in shown if fits(value)), float(high))
