"""Two-class metrics and their bootstrap draws, McNemar's test of two evaluators, and calibration.

Calibration means that scores behave like probabilities: eight in ten steps with a validity of 0.8 are valid.

F1 is computed from counts per trace, so that all resamples take one matrix product. AUC takes one sort, then a
sparse product and a cumulative sum over all resamples. On any resample, both equal what scikit-learn returns when
each item is repeated as often as it was drawn. scikit-learn could also compute the metrics themselves, but it
spends milliseconds on validating its arguments, and an evaluation computes hundreds of metrics.
"""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from stepsight.core.arrays import AnyInts, Floats64, Ints
from stepsight.core.metrics.bootstrap import Value, Weights, chunks, ratio, statistic, weighted_sums
from stepsight.core.metrics.table import NO_ITEMS, NO_SCORES, Items

BINS = 10


def _lacks_gold_problem(items: Items) -> str:
    return "" if items.gold.any() else "the gold has no such item"


def _lacks_predictions(items: Items) -> str:
    return "" if items.predicted.any() else "nothing is predicted so"


@statistic(attrgetter("problem"))
def macro_f1(items: Items, weights: Weights) -> Floats64:
    """The mean of both classes' F1 scores over all items.

    A class that is never predicted has an F1 of 0. It is undefined if all gold labels are of one class.
    """
    cells = [items.gold & items.predicted, items.gold & ~items.predicted,
             ~items.gold & items.predicted, ~items.gold & ~items.predicted]  # fmt: skip
    tp, fn, fp, tn = weighted_sums(cells, items.trace, weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        positive, negative = 2 * tp / (2 * tp + fp + fn), 2 * tn / (2 * tn + fp + fn)
    both = (tp + fn > 0) & (fp + tn > 0)
    return np.where(both, (positive + negative) / 2, np.nan)


@statistic(_lacks_gold_problem)
def f1(items: Items, weights: Weights) -> Floats64:
    """The F1 of the positive class. It is 0 if the class is never predicted, and undefined if no gold label is of
    this class."""
    counts = weighted_sums([items.gold & items.predicted, items.gold, items.predicted], items.trace, weights)
    hits, positives, predicted = counts
    with np.errstate(invalid="ignore"):
        return np.where(positives > 0, 2 * hits / (positives + predicted), np.nan)


@statistic(_lacks_predictions)
def precision(items: Items, weights: Weights) -> Floats64:
    """The share of positive predictions that are right. It is undefined if nothing is predicted positive."""
    return ratio(items.gold & items.predicted, items.predicted, items.trace, weights)


@statistic(_lacks_gold_problem)
def recall(items: Items, weights: Weights) -> Floats64:
    """The share of gold positives that are predicted positive. It is undefined if there are no gold positives."""
    return ratio(items.gold & items.predicted, items.gold, items.trace, weights)


@statistic(attrgetter("ranking_problem"))
def auc(items: Items, weights: Weights) -> Floats64:
    """The area under the ROC curve of the scores for the positive class. A tie counts one half.

    It is computed from the Mann-Whitney count of pairs: a positive beats every negative below it, and half of the
    negatives equal to it. It is NaN if a resample has only one class, or if there are no
    scores.
    """
    if items.ranking_problem:
        return np.full(len(weights), np.nan)
    ladder = _Ladder.of(items)
    size = sum(part.shape[0] + part.shape[1] for part in (ladder.positive, ladder.negative))
    return np.concatenate([_auc_chunk(ladder, chunk) for chunk in chunks(weights, size)])


@dataclass(frozen=True, eq=False)
class _Ladder:
    """The items in ascending order of score, grouped into rungs within which the order does not matter.

    All positives on one rung are above the same set of negatives. A negative is on the lowest rung whose positives
    are not below it; negatives above every positive are on an additional last rung. `positive` and `negative` are
    sparse counts of items by rung and trace, of shape (rungs, traces). `tied` lists the rungs on which some
    negatives equal the positives, and `ties` counts these negatives by rung and trace.
    """

    positive: Any
    negative: Any
    ties: Any
    tied: AnyInts

    @classmethod
    def of(cls, items: Items) -> "_Ladder":
        # Most modules that import this one need no AUC, and SciPy takes half a second.
        from scipy.sparse import csr_array

        def counts(rows: AnyInts, traces: AnyInts, shape: tuple[int, int]) -> Any:
            return csr_array((np.ones(len(rows), np.float32), (rows, traces)), shape=shape)

        # The rank of each score among the distinct scores, from 0.
        value = np.unique(items.scores, return_inverse=True)[1].astype(np.int32)
        has_positive, has_negative = np.zeros((2, int(value.max()) + 1), np.bool_)
        has_positive[value[items.gold]] = True
        has_negative[value[~items.gold]] = True
        # A score with positives begins a rung if a negative lies above the previous such score, up to this one.
        above = np.flatnonzero(has_positive)
        begins = np.zeros(len(has_positive), np.bool_)
        begins[above[0]] = True
        negatives = np.cumsum(has_negative, dtype=np.int32)
        begins[above[1:]] = negatives[above[1:]] > (negatives - has_negative)[above[:-1]]
        # Negatives go to the rung of the next positive above them.
        rung = np.cumsum(begins, dtype=np.int32)
        rung_of_positive, rung_of_negative = rung - np.int32(1), rung - has_positive
        shape = int(rung[-1]) + 1, int(items.trace.max()) + 1
        is_tied = ~items.gold & has_positive[value]
        tied, place = np.unique(rung_of_positive[value[is_tied]], return_inverse=True)
        return cls(
            counts(rung_of_positive[value[items.gold]], items.trace[items.gold], shape),
            counts(rung_of_negative[value[~items.gold]], items.trace[~items.gold], shape),
            counts(place, items.trace[is_tied], (len(tied), shape[1])),
            tied,
        )


def _auc_chunk(ladder: _Ladder, weights: Weights) -> Floats64:
    """Compute the AUC for one chunk of the resamples.

    Sums of counts are exact in single precision below 16 million. Products of sums are computed in double
    precision.
    """
    draws = np.ascontiguousarray(weights[:, : ladder.positive.shape[1]].T, np.float32)
    positive, below = ladder.positive @ draws, ladder.negative @ draws
    np.cumsum(below, axis=0, out=below)
    wins = np.einsum("rd,rd->d", positive, below, dtype=np.float64)
    wins -= np.einsum("rd,rd->d", positive[ladder.tied], ladder.ties @ draws, dtype=np.float64) / 2
    pairs = positive.sum(axis=0, dtype=np.float64) * below[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(pairs > 0, wins / pairs, np.nan)


@dataclass(frozen=True)
class McNemar:
    """The result of McNemar's test of two evaluators.

    `first_only` and `second_only` count the items that only the first or only the second evaluator predicts
    correctly. `p` is the p-value of the exact two-sided test.
    """

    first_only: int
    second_only: int
    p: Value


def mcnemar(first: Items, second: Items) -> McNemar:
    """Run McNemar's exact test on the predictions of two evaluators for the same items.

    The p-value is undefined if there is no item on which exactly one of them is right. Raises `ValueError` if the
    items differ.
    """
    if len(first) != len(second) or not np.array_equal(first.gold, second.gold):
        raise ValueError("the items are not the same")
    right, other = first.predicted == first.gold, second.predicted == second.gold
    only, others = int((right & ~other).sum()), int((other & ~right).sum())
    if not only + others:
        return McNemar(0, 0, Value.none("they are right on the same items"))
    # The binomial test of a fair coin, in whole numbers: SciPy's own would take another 50 MB.
    tail = term = 1
    for count in range(min(only, others)):
        term = term * (only + others - count) // (count + 1)
        tail += term
    return McNemar(only, others, Value(min(1.0, 2 * tail / 2 ** (only + others))))


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram with bins of equal width from 0 to 1.

    Each array has the shape (bins,). `count` is the number of items in the bin, `score` their mean score, and
    `share` the share of positives among them. `score` and `share` are NaN for an empty bin.
    """

    count: Ints
    score: Floats64
    share: Floats64


def reliability(items: Items) -> Reliability:
    """Return the reliability diagram of the scores, taken as probabilities of the positive class. All bins are
    empty if there are no items or no scores."""
    if _score_problem(items):
        empty = np.full(BINS, np.nan)
        return Reliability(np.zeros(BINS, np.int64), empty, empty)
    place = np.minimum((items.scores * BINS).astype(np.int64), BINS - 1)
    count = np.bincount(place, minlength=BINS)
    with np.errstate(invalid="ignore"):
        score = np.bincount(place, items.scores, BINS) / count
        share = np.bincount(place, items.gold.astype(np.float64), BINS) / count
    return Reliability(count, score, share)


def _score_problem(items: Items) -> str:
    if not len(items):
        return NO_ITEMS
    return NO_SCORES if np.isnan(items.scores).any() else ""


def expected_calibration_error(items: Items) -> Value:
    """Return the expected calibration error (Naeini et al., 2015).

    It is the mean over the bins, weighted by their counts, of the distance between the bin's mean score and its
    share of positives. It is undefined if there are no items or no scores.
    """
    if problem := _score_problem(items):
        return Value.none(problem)
    diagram = reliability(items)
    filled = diagram.count > 0
    distance = np.abs(diagram.score[filled] - diagram.share[filled])
    return Value(float((diagram.count[filled] * distance).sum() / len(items)))


def brier(items: Items) -> Value:
    """Return the Brier score, from 0 to 1: the mean squared difference between the scores and the gold labels (0 or
    1)."""
    if problem := _score_problem(items):
        return Value.none(problem)
    # Rounding can lift the sum of two probabilities above 1, in published scores too.
    return Value(float(np.mean((np.clip(items.scores, 0.0, 1.0) - items.gold) ** 2)))
