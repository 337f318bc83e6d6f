"""First errors: whether the first step called wrong is the first that is.

ProcessBench (Zheng et al., 2024): the prediction for a solution is its first step judged wrong, or none; F1 is the
harmonic mean of the accuracy on solutions with an error and on those without.

MR-Score (Zeng et al., 2023) weighs three parts: Matthews' correlation of the verdicts on solutions, the accuracy
of the first error among wrong solutions, and that of the explanation, which needs a language model and is left
out here.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import matthews_corrcoef

from stepsight.core.metrics.bootstrap import Floats, Weights, weighted_sums
from stepsight.core.metrics.items import ONE_CLASS
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.core.metrics.value import Value

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FirstErrors:
    """Of the traces whose gold is known, shape (n,): 0-based first errors, `SILENT` where there is none, by the
    `gold` and as `predicted`; `trace`, their places in the table."""

    gold: Ints
    predicted: Ints
    trace: Ints

    @property
    def wrong(self) -> NDArray[np.bool_]:
        return np.not_equal(self.gold, SILENT)

    @property
    def hit(self) -> NDArray[np.bool_]:
        return np.equal(self.gold, self.predicted)


def first_errors(table: StepTable, threshold: float = 0.5) -> FirstErrors:
    """The first step of each trace whose validity is below `threshold`.

    A trace counts where its gold names an error or says of every step that it is valid, and the evaluator said
    something of every step up to there.
    """
    gold = table.first_errors()
    silent = ~table.present
    silent[table.trace[table.valid == SILENT]] = True
    unread = np.zeros(table.traces, np.bool_)
    before = (gold[table.trace] == SILENT) | (table.position <= gold[table.trace])
    unread[table.trace[np.isnan(table.validity) & before]] = True
    predicted = table.first(table.validity.astype(np.float32) < np.float32(threshold))
    kept = np.flatnonzero(((gold != SILENT) | ~silent) & ~unread)
    return FirstErrors(gold[kept], predicted[kept], kept)


class Outcome(StrEnum):
    """What became of the first error of a trace: it is found, or none is seen where there is none; none is seen
    where there is one; one is seen where there is none; another step is taken for it."""

    RIGHT = "right"
    MISSED = "missed"
    FALSE_ALARM = "false-alarm"
    WRONG_STEP = "wrong-step"


def count_outcomes(found: FirstErrors) -> dict[Outcome, int]:
    """How many traces each outcome has."""
    seen = found.predicted != SILENT
    kinds = {
        Outcome.RIGHT: found.hit,
        Outcome.MISSED: found.wrong & ~seen,
        Outcome.FALSE_ALARM: ~found.wrong & seen,
        Outcome.WRONG_STEP: found.wrong & seen & ~found.hit,
    }
    return {outcome: int(hits.sum()) for outcome, hits in kinds.items()}


def accuracy_on_wrong(found: FirstErrors) -> Value:
    """Of the traces with an error, the share whose first error is found: first-error accuracy."""
    if not found.wrong.any():
        return Value.none("no trace has an error")
    return Value(float(found.hit[found.wrong].mean()))


def accuracy_on_right(found: FirstErrors) -> Value:
    """Of the traces without an error, the share in which none is seen."""
    if found.wrong.all():
        return Value.none("every trace has an error" if len(found.gold) else "there is nothing to measure")
    return Value(float(found.hit[~found.wrong].mean()))


def process_bench_f1(found: FirstErrors) -> Value:
    """Harmonic mean of the two accuracies; 0 where one of them is."""
    parts = [accuracy_on_wrong(found), accuracy_on_right(found)]
    lacking = next((part for part in parts if not part.exists), None)
    if lacking is not None:
        return lacking
    return Value(float(_harmonic(*(np.array([part.number]) for part in parts))[0]))


def process_bench_f1_draws(found: FirstErrors, weights: Weights) -> Floats:
    """ProcessBench's F1 of each resample; NaN where it has one kind of trace only."""
    rates = []
    for kind in (found.wrong, ~found.wrong):
        hits, total = weighted_sums([kind & found.hit, kind], found.trace, weights)
        with np.errstate(invalid="ignore"):
            rates.append(hits / total)
    return _harmonic(*rates)


def _harmonic(a: Floats, b: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.where(a + b > 0, 2 * a * b / (a + b), a + b)


def matthews(found: FirstErrors) -> Value:
    """Matthews' correlation of gold and predicted verdicts on solutions: MR-Score's first part, -1 to 1."""
    if not len(found.gold) or found.wrong.all() or not found.wrong.any():
        return Value.none(ONE_CLASS)
    return Value(float(matthews_corrcoef(found.wrong, found.predicted != SILENT)))
