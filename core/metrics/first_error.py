"""First-error metrics: whether the first step that an evaluator calls wrong is the first wrong step in the gold
labels.

ProcessBench (Zheng et al., 2024): the prediction for a solution is the first step judged wrong, or "none". F1 is
the harmonic mean of the accuracies on solutions with and without an error.

MR-Score (Zeng et al., 2023) is a weighted sum of three parts: Matthews' correlation of the verdicts on solutions,
the accuracy of the first error in wrong solutions, and the accuracy of the explanation. The last part needs a
language model and is omitted here.
"""

from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import AnyInts, Bools, Floats64
from stepsight.core.metrics.bootstrap import Value, Weights, ratio, statistic
from stepsight.core.metrics.reasoneval import Errors, Level, items
from stepsight.core.metrics.table import ONE_CLASS, SILENT, StepTable
from stepsight.core.scores import Outputs, Thresholds


@dataclass(frozen=True, eq=False)
class FirstErrors:
    """The first error in the gold labels and the first error that the evaluator finds, for each comparable trace.
    Redundant solutions take the place of errors in the result of `redundant_solutions`.

    The arrays have the shape (n,). `gold` and `predicted` are 0-based steps, or `SILENT` if there is no error.
    `trace` is the index of the trace in the step table. `called_wrong` is True if the evaluator calls the solution
    wrong, whether or not it names a step.

    `no_gold` counts the traces that are left out because they have too few gold labels, and `no_verdict` those left
    out because the evaluator judged too few of their steps.
    """

    gold: AnyInts
    predicted: AnyInts
    trace: AnyInts
    called_wrong: Bools
    no_gold: int = 0
    no_verdict: int = 0

    @property
    def wrong(self) -> Bools:
        return np.not_equal(self.gold, SILENT)

    @property
    def hit(self) -> Bools:
        return np.equal(self.gold, self.predicted)

    @property
    def left_out(self) -> str:
        """A sentence that says how many traces are left out and why, or "" if none are."""
        total = len(self.trace) + self.no_gold + self.no_verdict
        reasons = {
            "their gold says too little": self.no_gold,
            "the evaluator says too little of them": self.no_verdict,
        }
        parts = [
            f"{count:,} of {total:,} traces do not count: {reason}" for reason, count in reasons.items() if count
        ]
        return "; ".join(parts)


def first_errors(table: StepTable, threshold: float = 0.5, outputs: Outputs = Outputs.THREE_WAY) -> FirstErrors:
    """Find the first step of each trace whose validity is below `threshold`, and compare it with the gold labels.

    A trace counts if two conditions hold. The gold labels must show an error or call every step valid. The
    evaluator must have scored every step up to the first one it blames or up to the gold error, whichever comes
    first, or else all steps. If the evaluator's `outputs` are verdicts in words, its verdict on the whole solution
    also decides `called_wrong`.
    """
    gold = table.first_errors()
    predicted = table.first(table.validity < np.float32(threshold))
    unscored = table.first(np.isnan(table.validity))
    is_known = knows_first_error(gold, predicted, unscored, outputs)
    labelled = np.ones(table.traces, np.bool_)
    labelled[table.trace[table.valid == SILENT]] = False
    labelled |= gold != SILENT
    present = table.present
    counted = np.flatnonzero(present & labelled & is_known)
    called_wrong = predicted != SILENT
    if outputs.in_words and not (table.redundancy > 0).any():
        called_wrong |= table.solution == 0
    return FirstErrors(
        gold[counted],
        predicted[counted],
        counted,
        called_wrong[counted],
        no_gold=int((present & ~labelled).sum()),
        no_verdict=int((present & labelled & ~is_known).sum()),
    )


def redundant_solutions(table: StepTable, outputs: Outputs, thresholds: Thresholds | None = None) -> FirstErrors:
    """Compare the solutions that the evaluator calls redundant with those that are redundant in the gold labels.

    The rule is the protocol's for solutions (`core.metrics.reasoneval`). A redundant solution has 0 in place of a
    first error and any other has `SILENT`, since redundant steps are not compared one by one. A trace counts if
    the gold labels call a step redundant or label every step, and the evaluator judges the whole solution.
    """
    judged = items(table, Errors.REDUNDANT, Level.SOLUTION, outputs, thresholds)
    if outputs == Outputs.SOLUTION or outputs.in_words:
        unread = np.isnan(table.solution)
    else:
        unread = np.zeros(table.traces, np.bool_)
        unread[table.trace[np.isnan(table.validity)]] = True
    is_read = ~unread[judged.trace]
    gold, predicted = (np.where(free[is_read], SILENT, 0) for free in (judged.gold, judged.predicted))
    return FirstErrors(
        gold,
        predicted,
        judged.trace[is_read],
        predicted != SILENT,
        no_gold=int(table.present.sum()) - len(judged),
        no_verdict=int((~is_read).sum()),
    )


def knows_first_error(
    gold: NDArray[Any], predicted: NDArray[Any], unscored: NDArray[Any], outputs: Outputs = Outputs.THREE_WAY
) -> Bools:
    """Return True for each trace in which enough steps are judged to compare the evaluator's first error with the
    gold one.

    All arrays have the shape (n,) and hold 0-based steps, with `SILENT` if there is no such step: `gold` is the
    first step that the gold labels call wrong, `predicted` the first that the evaluator blames, and `unscored` the
    first without a score. Steps after the earlier of `gold` and `predicted` cannot change the outcome. If the
    `outputs` are checks, the result is True for every trace, because the evaluator has looked at every step, and
    steps without a verdict count as faultless.
    """
    if outputs == Outputs.CHECKS:
        return np.ones(len(gold), np.bool_)
    decided = (unscored == SILENT) | ((gold != SILENT) & (gold < unscored))
    return decided | ((predicted != SILENT) & (predicted < unscored))


class Outcome(StrEnum):
    """The result of an evaluator on the first error of a trace, or on the redundancy of a solution.

    - right: it found the first error, or correctly found no error.
    - missed: it found no error although there is one.
    - false-alarm: it found an error although there is none.
    - wrong-step: it blamed a step other than the first error. Redundancy has no such outcome.
    """

    RIGHT = "right"
    MISSED = "missed"
    FALSE_ALARM = "false-alarm"
    WRONG_STEP = "wrong-step"


OUTCOMES = tuple(Outcome)
"""The outcomes in the order of their codes."""


def outcome_codes(gold: NDArray[Any], predicted: NDArray[Any], known: Bools | None = None) -> NDArray[np.int8]:
    """Return the outcome of each trace as an index into `OUTCOMES`, or `SILENT` where `known` is False.

    All arrays have the shape (n,). `gold` and `predicted` hold 0-based steps, or `SILENT` if there is no error.
    """
    cases = [gold == predicted, predicted == SILENT, gold == SILENT]
    kinds = [OUTCOMES.index(kind) for kind in (Outcome.RIGHT, Outcome.MISSED, Outcome.FALSE_ALARM)]
    codes = np.select(cases, kinds, OUTCOMES.index(Outcome.WRONG_STEP)).astype(np.int8)
    return codes if known is None else np.where(known, codes, np.int8(SILENT))


def count_outcomes(errors: FirstErrors) -> dict[Outcome, int]:
    """Count the traces with each outcome."""
    counts = np.bincount(outcome_codes(errors.gold, errors.predicted), minlength=len(OUTCOMES))
    return dict(zip(OUTCOMES, counts.tolist(), strict=True))


def _problem_of_wrong(errors: FirstErrors) -> str:
    return "" if errors.wrong.any() else "no trace has an error"


def _problem_of_either(errors: FirstErrors) -> str:
    return _problem_of_wrong(errors) or ("every trace has an error" if errors.wrong.all() else "")


_left_out = attrgetter("left_out")


@statistic(_problem_of_wrong, _left_out)
def accuracy_on_wrong(errors: FirstErrors, weights: Weights) -> Floats64:
    """The first-error accuracy: among traces with an error, the share whose first error is found."""
    return ratio(errors.hit & errors.wrong, errors.wrong, errors.trace, weights)


@statistic(_problem_of_either, _left_out)
def process_bench_f1(errors: FirstErrors, weights: Weights) -> Floats64:
    """ProcessBench's F1: the harmonic mean of the accuracies on wrong and right solutions, or 0 if either accuracy
    is 0. It is undefined if there are no wrong or no right solutions."""
    wrong, right = (ratio(errors.hit & part, part, errors.trace, weights) for part in (errors.wrong, ~errors.wrong))
    with np.errstate(invalid="ignore"):
        return np.where(wrong + right > 0, 2 * wrong * right / (wrong + right), wrong + right)


def matthews(errors: FirstErrors) -> Value:
    """Return Matthews' correlation between the gold and the predicted verdicts on solutions, from -1 to 1. This is
    the first part of MR-Score."""
    if not len(errors.gold) or errors.wrong.all() or not errors.wrong.any():
        return Value.none(ONE_CLASS)
    called_wrong = errors.called_wrong
    # This is Pearson's correlation of the two verdicts as numbers; if a verdict is constant, it is defined as 0.
    constant = called_wrong.all() or not called_wrong.any()
    correlation = 0.0 if constant else float(np.corrcoef(errors.wrong, called_wrong)[0, 1])
    return Value(correlation, errors.left_out)
