"""The bootstrap over traces: a metric on many resamples at once.

A resample is how often each trace was drawn. F1 and its like come from counts per trace, so that all resamples are
one matrix product; an AUC comes from one sort, and a sparse product and a cumulated sum over all resamples. Both
give, on any resample, what scikit-learn gives on the items repeated accordingly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stepsight.core.metrics.items import Items
from stepsight.core.metrics.value import Value

DRAWS = 1000
# Resamples are gone through in chunks, whose arrays stay within this many numbers.
_CHUNK = 4_000_000

Floats = NDArray[np.float64]
Weights = NDArray[np.uint8]


def resamples(traces: int, draws: int = DRAWS, seed: int = 0) -> Weights:
    """How often each trace is drawn, shape (draws, traces). The same for every evaluator, so that differences
    between evaluators are paired."""
    rng = np.random.default_rng(seed)
    if not traces:
        return np.zeros((draws, 0), np.uint8)
    # None is ever drawn as often as 255 times.
    counts = np.empty((draws, traces), np.uint8)
    for row in counts:
        row[:] = np.bincount(rng.integers(0, traces, traces), minlength=traces)
    return counts


def macro_f1_draws(items: Items, weights: Weights) -> Floats:
    """Macro-F1 of each resample, shape (draws,); NaN where it has one class only."""
    cells = [items.golds & items.predicted, items.golds & ~items.predicted,
             ~items.golds & items.predicted, ~items.golds & ~items.predicted]  # fmt: skip
    tp, fn, fp, tn = weighted_sums(cells, items.trace, weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        positive, negative = 2 * tp / (2 * tp + fp + fn), 2 * tn / (2 * tn + fp + fn)
    both = (tp + fn > 0) & (fp + tn > 0)
    return np.where(both, (positive + negative) / 2, np.nan)


def auc_draws(items: Items, weights: Weights) -> Floats:
    """AUC of each resample, shape (draws,); NaN where it has one class only or there are no scores.

    By Mann and Whitney's count: a positive beats every negative below it, and half of those equal to it.
    """
    if items.ranking_problem:
        return np.full(len(weights), np.nan)
    ladder = _Ladder.of(items)
    size = sum(part.shape[0] + part.shape[1] for part in (ladder.positive, ladder.negative))
    return np.concatenate([_auc_chunk(ladder, chunk) for chunk in _chunks(weights, size)])


@dataclass(frozen=True, eq=False)
class _Ladder:
    """The items by rising score, as rungs between which no order matters: a rung holds the positives that the same
    negatives are below of, and those negatives that are on no rung before.

    `positive` and `negative` count them by rung and trace, sparse, of shape (rungs, traces); `ties`, of the rungs
    `tied`, counts the negatives that equal its positives instead of being below them. Negatives above every
    positive are on a last rung without one.
    """

    positive: Any
    negative: Any
    ties: Any
    tied: NDArray[np.int64]

    @classmethod
    def of(cls, items: Items) -> "_Ladder":
        value = np.unique(items.scores, return_inverse=True)[1]
        count = int(value.max()) + 1
        has_positive = np.bincount(value[items.golds], minlength=count) > 0
        has_negative = np.bincount(value[~items.golds], minlength=count) > 0
        # A score begins a rung where it is the first with positives since the last one with negatives.
        last_negative = np.maximum.accumulate(np.where(has_negative, np.arange(count), -1))
        last_positive = np.maximum.accumulate(np.where(has_positive, np.arange(count), -1))
        before = np.append(-1, last_positive[:-1])
        begins = has_positive & ((before < 0) | (last_negative >= before))
        # Negatives go to the rung of the next positive above them.
        rung = np.cumsum(begins)
        rung_of_positive, rung_of_negative = rung - 1, np.where(has_positive, rung - 1, rung)
        shape = int(rung[-1]) + 1, int(items.trace.max()) + 1
        tie = ~items.golds & has_positive[value]
        tied, place = np.unique(rung_of_positive[value[tie]], return_inverse=True)
        return cls(
            _counts(rung_of_positive[value[items.golds]], items.trace[items.golds], shape),
            _counts(rung_of_negative[value[~items.golds]], items.trace[~items.golds], shape),
            _counts(place, items.trace[tie], (len(tied), shape[1])),
            tied,
        )


def _counts(rows: NDArray[np.int64], traces: NDArray[np.int64], shape: tuple[int, int]) -> Any:
    return csr_array((np.ones(len(rows), np.float32), (rows, traces)), shape=shape)


def _auc_chunk(ladder: _Ladder, weights: Weights) -> Floats:
    """Sums of counts are exact in single precision, as long as there are fewer than 16 million; products of them in
    double."""
    drawn = np.ascontiguousarray(weights[:, : ladder.positive.shape[1]].T, np.float32)
    positive, below = ladder.positive @ drawn, ladder.negative @ drawn
    np.cumsum(below, axis=0, out=below)
    won = np.einsum("rd,rd->d", positive, below, dtype=np.float64)
    won -= np.einsum("rd,rd->d", positive[ladder.tied], ladder.ties @ drawn, dtype=np.float64) / 2
    pairs = positive.sum(axis=0, dtype=np.float64) * below[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(pairs > 0, won / pairs, np.nan)


def weighted_sums(
    hits: Sequence[NDArray[np.bool_]], trace: NDArray[np.int64], weights: Weights
) -> NDArray[np.float64]:
    """How many items are hit in each resample, shape (hits, draws)."""
    per_trace = np.stack([np.bincount(trace[hit], minlength=weights.shape[1]) for hit in hits]).astype(np.float32)
    return weighted_totals(per_trace.T, weights).T.astype(np.float64)


def weighted_totals(per_trace: NDArray[Any], weights: Weights) -> NDArray[Any]:
    """Sums over the traces of each resample, shape (draws, columns), of numbers per trace, shape (traces, columns).
    They are computed, and given, in the type of those numbers."""
    drawn = [chunk.astype(per_trace.dtype) @ per_trace for chunk in _chunks(weights, weights.shape[1])]
    return np.concatenate(drawn)


def weighted_counts(hit: NDArray[np.bool_], trace: NDArray[np.int64], weights: Weights) -> Floats:
    """`weighted_sums` of one kind of hit, shape (draws,)."""
    counted: Floats = weighted_sums([hit], trace, weights)[0]
    return counted


def _chunks(weights: Weights, numbers: int) -> Iterator[Weights]:
    """Some resamples at a time, so that `numbers` for each stay bounded."""
    size = max(1, _CHUNK // max(1, numbers))
    for start in range(0, len(weights), size):
        yield weights[start : start + size]


def share(hit: NDArray[np.bool_], trace: NDArray[np.int64], weights: Weights | None, lacking: str) -> Value:
    """The share of items that are hit, with its interval where there are `weights` and items of several traces;
    `lacking` says why there is no value where there are no items."""
    if not len(hit):
        return Value.none(lacking)
    value = Value(float(hit.mean()))
    if weights is None:
        return value
    # Pairs of people share few of many traces.
    kept, place = np.unique(trace, return_inverse=True)
    if len(kept) == 1:
        return value
    hits, total = weighted_sums([hit, np.ones_like(hit)], place, weights[:, kept])
    with np.errstate(invalid="ignore"):
        return interval(value, hits / total)


def interval(value: Value, draws: Floats) -> Value:
    """`value` with the 2.5th and 97.5th percentile of its resamples; without, where most of them have no value."""
    if not value.exists or np.isnan(draws).mean() > 0.5:
        return value
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return value.within(float(low), float(high))
