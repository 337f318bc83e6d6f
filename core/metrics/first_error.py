"""First-error metrics: is the first step that an evaluator calls wrong the gold's first wrong step?

ProcessBench (Zheng et al., 2024): the prediction for a solution is the first step judged wrong, or none; F1 is the
harmonic mean of the accuracies on solutions with and without an error.

MR-Score (Zeng et al., 2023) weights three parts: Matthews' correlation of the verdicts on solutions, the accuracy
of the first error among wrong solutions, and that of the explanation, which needs a language model and is omitted
here.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import AnyInts, Bools, Floats64
from stepsight.core.metrics.bootstrap import Value, Weights, weighted_sums
from stepsight.core.metrics.table import ONE_CLASS, SILENT, StepTable
from stepsight.core.scores import Outputs


@dataclass(frozen=True, eq=False)
class FirstErrors:
    """First errors of the traces that count, each of shape (n,): `gold` and `predicted`, 0-based, `SILENT` for
    none; `trace`, the index in the table; `called_wrong`, True if the evaluator faults the solution, with or
    without naming a step.

    Of the table's other traces, `no_gold` have too little gold, and `no_verdict` too little of a verdict.
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
        """The number of traces that do not count, with the reason, in words; "" if all count."""
        total = len(self.trace) + self.no_gold + self.no_verdict
        reasons = {
            "their gold says too little": self.no_gold,
            "the evaluator says too little of them": self.no_verdict,
        }
        parts = [f"{count:,} of {total:,} traces do not count: {why}" for why, count in reasons.items() if count]
        return "; ".join(parts)


def first_errors(table: StepTable, threshold: float = 0.5, outputs: Outputs = Outputs.THREE_WAY) -> FirstErrors:
    """The first step of each trace with a validity below `threshold`.

    A trace counts if its gold names an error or calls every step valid, and the evaluator's verdict is known: it
    scored every step up to the first one it blames, or up to the gold's error, whichever comes first. If the
    evaluator's `outputs` are verdicts in words, its word on the solution decides `called_wrong`.
    """
    gold = table.first_errors()
    predicted = table.first(table.validity < np.float32(threshold))
    unscored = table.first(np.isnan(table.validity))
    known = knows_first_error(gold, predicted, unscored, outputs)
    labelled = np.ones(table.traces, np.bool_)
    labelled[table.trace[table.valid == SILENT]] = False
    labelled |= gold != SILENT
    present = table.present
    kept = np.flatnonzero(present & labelled & known)
    called_wrong = predicted != SILENT
    if outputs.in_words and not (table.redundancy > 0).any():
        called_wrong |= table.solution == 0
    return FirstErrors(
        gold[kept],
        predicted[kept],
        kept,
        called_wrong[kept],
        no_gold=int((present & ~labelled).sum()),
        no_verdict=int((present & labelled & ~known).sum()),
    )


def knows_first_error(
    gold: NDArray[Any], predicted: NDArray[Any], unscored: NDArray[Any], outputs: Outputs = Outputs.THREE_WAY
) -> Bools:
    """True for each trace if the evaluator's verdicts suffice to compare its first error with the gold's, shape
    (n,).

    `gold`, `predicted` and `unscored` are the first step that is wrong by the gold, that the evaluator blames, and
    that it leaves unscored, 0-based, `SILENT` for none, each of shape (n,). Nothing after the earlier of the first
    two changes the outcome. If its `outputs` are checks, it has looked at every step, and finds no fault with those
    it passes over.
    """
    if outputs == Outputs.CHECKS:
        return np.ones(len(gold), np.bool_)
    decided = (unscored == SILENT) | ((gold != SILENT) & (gold < unscored))
    known: Bools = decided | ((predicted != SILENT) & (predicted < unscored))
    return known


class Outcome(StrEnum):
    """right: the first error is found, or none where there is none; missed: none is found although there is one;
    false-alarm: one is found although there is none; wrong-step: another step is blamed."""

    RIGHT = "right"
    MISSED = "missed"
    FALSE_ALARM = "false-alarm"
    WRONG_STEP = "wrong-step"


def count_outcomes(errors: FirstErrors) -> dict[Outcome, int]:
    """The number of traces with each outcome."""
    alarm = errors.predicted != SILENT
    kinds = {
        Outcome.RIGHT: errors.hit,
        Outcome.MISSED: errors.wrong & ~alarm,
        Outcome.FALSE_ALARM: ~errors.wrong & alarm,
        Outcome.WRONG_STEP: errors.wrong & alarm & ~errors.hit,
    }
    return {outcome: int(hits.sum()) for outcome, hits in kinds.items()}


def accuracy_on_wrong(errors: FirstErrors) -> Value:
    """The share of traces with an error whose first error is found: first-error accuracy."""
    if not errors.wrong.any():
        return Value.none("no trace has an error")
    return Value(float(errors.hit[errors.wrong].mean()), errors.left_out)


def accuracy_on_right(errors: FirstErrors) -> Value:
    """The share of traces without an error in which none is found."""
    if errors.wrong.all():
        return Value.none("every trace has an error" if len(errors.gold) else "there is nothing to measure")
    return Value(float(errors.hit[~errors.wrong].mean()), errors.left_out)


def process_bench_f1(errors: FirstErrors) -> Value:
    """Harmonic mean of the two accuracies; 0 if either is 0."""
    parts = [accuracy_on_wrong(errors), accuracy_on_right(errors)]
    lacking = next((part for part in parts if not part.exists), None)
    if lacking is not None:
        return lacking
    return Value(float(_harmonic(*(np.array([part.number]) for part in parts))[0]), errors.left_out)


def process_bench_f1_draws(errors: FirstErrors, weights: Weights) -> Floats64:
    """ProcessBench's F1 of each resample; NaN if it has only one kind of trace."""
    rates = []
    for kind in (errors.wrong, ~errors.wrong):
        hits, total = weighted_sums([kind & errors.hit, kind], errors.trace, weights)
        with np.errstate(invalid="ignore"):
            rates.append(hits / total)
    return _harmonic(*rates)


def _harmonic(a: Floats64, b: Floats64) -> Floats64:
    with np.errstate(invalid="ignore"):
        return np.where(a + b > 0, 2 * a * b / (a + b), a + b)


def matthews(errors: FirstErrors) -> Value:
    """Matthews' correlation of gold and predicted verdicts on solutions: MR-Score's first part, -1 to 1."""
    if not len(errors.gold) or errors.wrong.all() or not errors.wrong.any():
        return Value.none(ONE_CLASS)
    called_wrong = errors.called_wrong
    # It is Pearson's correlation of the two verdicts as numbers; of a constant one it is taken to be 0.
    constant = called_wrong.all() or not called_wrong.any()
    correlation = 0.0 if constant else float(np.corrcoef(errors.wrong, called_wrong)[0, 1])
    return Value(correlation, errors.left_out)
