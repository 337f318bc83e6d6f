"""Agreement: Krippendorff's alpha of what several people said of the same units.

Alpha is one minus the disagreement within units over that expected where values fall to units by chance: 1 is
perfect agreement, 0 what chance gives, below 0 worse than chance. The formulas are those of "Computing
Krippendorff's Alpha-Reliability" (Krippendorff, 2011); the value is computed by the library of that name, the
resamples here, since they are all one matrix product.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Literal

import krippendorff
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stepsight.core.metrics.bootstrap import Floats, Weights, interval, weighted_totals
from stepsight.core.metrics.value import Value

NO_LABEL = "nobody has labelled anything"
ONE_ANNOTATOR = "only one person has labelled"
NO_OVERLAP = "nothing was labelled by two people"
ALL_SAME = "all labels are the same, so chance would agree as well"


class Level(StrEnum):
    """How far apart two values are: all alike, or by the ratings that lie between them."""

    NOMINAL = "nominal"
    ORDINAL = "ordinal"


@dataclass(frozen=True)
class Agreement:
    """`alpha`, and the share of pairs of ratings of the same unit that are equal, `agreeing`. `n_units` are those
    with at least two ratings, `n_pairs` the pairs within them."""

    alpha: Value
    agreeing: Value
    n_units: int
    n_pairs: int


def alpha(
    ratings: Floats,
    level: Level | str = Level.NOMINAL,
    trace: NDArray[np.int64] | None = None,
    weights: Weights | None = None,
) -> Agreement:
    """How far people agree. `ratings` has shape (annotators, units) and NaN where there is none; of the other
    numbers only the order counts.

    With `trace`, the place of the trace that each unit belongs to, shape (units,), and `weights`, resamples of
    traces, both values have 95 % intervals, unless all units are of one trace. There is no alpha, and the value
    says why, where nobody or one person rated, no unit has two ratings, or all ratings of such units are equal.
    """
    counts = _value_counts(ratings)
    paired = counts.sum(axis=1) > 1
    shared = counts[paired]
    hits, pairs = _pairs(shared)
    problem = _problem(ratings, shared)
    value = Value.none(problem) if problem else Value(_alpha(shared, Level(level)))
    agreeing = Value(float(hits.sum() / pairs.sum())) if len(shared) else Value.none(problem)
    if trace is not None and weights is not None and several(trace[paired]):
        value = interval(value, alpha_draws(ratings, level, trace, weights))
        agreeing = interval(agreeing, agreeing_draws(ratings, trace, weights))
    return Agreement(value, agreeing, len(shared), int(pairs.sum()))


def several(trace: NDArray[np.int64]) -> bool:
    """Whether units are of more than one trace: of a single one all resamples are the same."""
    return len(trace) > 0 and bool((trace != trace[0]).any())


def alpha_draws(ratings: Floats, level: Level | str, trace: NDArray[np.int64], weights: Weights) -> Floats:
    """Alpha of each resample, shape (draws,); NaN where its ratings are all equal, or it has no pair of them."""
    counts = _value_counts(ratings)
    paired = counts.sum(axis=1) > 1
    draw = _nominal_draws if level == Level.NOMINAL else _ordinal_draws
    with np.errstate(invalid="ignore", divide="ignore"):
        return draw(counts[paired], trace[paired], weights)


def agreeing_draws(ratings: Floats, trace: NDArray[np.int64], weights: Weights) -> Floats:
    """The share of equal pairs in each resample, shape (draws,); NaN where it has none."""
    drawn = weighted_totals(_by_trace(np.column_stack(_pairs(_value_counts(ratings))), trace, weights), weights)
    with np.errstate(invalid="ignore"):
        share: Floats = drawn[:, 0] / drawn[:, 1]
    return share


def agreeing_with_others(
    ratings: Floats, person: int, trace: NDArray[np.int64], weights: Weights | None = None
) -> Value:
    """Of the pairs of one person's ratings with those of all others of the same unit, the share that is equal."""
    own, others = ratings[person], np.delete(ratings, person, axis=0)
    said = ~(np.isnan(own) | np.isnan(others))
    columns = np.column_stack([((others == own) & said).sum(axis=0), said.sum(axis=0)]).astype(np.float64)
    hits, pairs = columns.sum(axis=0)
    if not pairs:
        return Value.none(NO_OVERLAP)
    value = Value(float(hits / pairs))
    if weights is None or not several(trace[said.any(axis=0)]):
        return value
    drawn = weighted_totals(_by_trace(columns, trace, weights), weights)
    with np.errstate(invalid="ignore"):
        return interval(value, drawn[:, 0] / drawn[:, 1])


def _value_counts(ratings: Floats) -> Floats:
    """How often each unit got each of the values that occur, in their order: shape (units, values)."""
    known = ~np.isnan(ratings)
    values, codes = np.unique(ratings[known], return_inverse=True)
    cells = np.nonzero(known)[1] * len(values) + codes
    counted = np.bincount(cells, minlength=ratings.shape[1] * len(values))
    return counted.reshape(ratings.shape[1], len(values)).astype(np.float64)


def _problem(ratings: Floats, shared: Floats) -> str:
    people = int((~np.isnan(ratings)).any(axis=1).sum())
    if people < 2:
        return ONE_ANNOTATOR if people else NO_LABEL
    if not len(shared):
        return NO_OVERLAP
    return ALL_SAME if (shared.sum(axis=0) > 0).sum() == 1 else ""


def _pairs(counts: Floats) -> tuple[Floats, Floats]:
    """Of each unit the pairs of ratings that are equal, and all of them, shape (units,)."""
    total = counts.sum(axis=1)
    hits: Floats = (counts * (counts - 1)).sum(axis=1) / 2
    pairs: Floats = total * (total - 1) / 2
    return hits, pairs


def _alpha(shared: Floats, level: Level) -> float:
    spelled: Literal["nominal", "ordinal"] = "nominal" if level is Level.NOMINAL else "ordinal"
    return float(krippendorff.alpha(value_counts=shared, level_of_measurement=spelled))


def _nominal_draws(shared: Floats, trace: NDArray[np.int64], weights: Weights) -> Floats:
    """By the equal coincidences alone, since all others count alike."""
    equal = (shared * (shared - 1)).sum(axis=1) / (shared.sum(axis=1) - 1)
    drawn = weighted_totals(_by_trace(np.column_stack([equal, shared]), trace, weights), weights)
    same, marginals = drawn[:, 0], drawn[:, 1:]
    total = marginals.sum(axis=1)
    expected = total**2 - (marginals**2).sum(axis=1)
    alphas: Floats = 1 - (total - 1) * (total - same) / np.where(expected > 0, expected, np.nan)
    return alphas


def _ordinal_draws(shared: Floats, trace: NDArray[np.int64], weights: Weights) -> Floats:
    """By the coincidences of every pair of values; how far these are apart follows from each resample itself."""
    couples = list(combinations(range(shared.shape[1]), 2))
    others = shared.sum(axis=1) - 1
    met = [shared[:, low] * shared[:, high] / others for low, high in couples]
    drawn = weighted_totals(_by_trace(np.column_stack([*met, shared]), trace, weights), weights)
    marginals = drawn[:, len(couples) :]
    below = np.cumsum(marginals, axis=1)
    observed, expected = np.zeros(len(weights)), np.zeros(len(weights))
    for place, (low, high) in enumerate(couples):
        between = below[:, high] - below[:, low] + (marginals[:, low] - marginals[:, high]) / 2
        observed += drawn[:, place] * between**2
        expected += marginals[:, low] * marginals[:, high] * between**2
    alphas: Floats = 1 - (marginals.sum(axis=1) - 1) * observed / np.where(expected > 0, expected, np.nan)
    return alphas


def _by_trace(columns: Floats, trace: NDArray[np.int64], weights: Weights) -> Floats:
    """Sums over the units of each trace, shape (traces, columns)."""
    units = np.arange(len(trace))
    owner = csr_array((np.ones(len(trace)), (trace, units)), shape=(weights.shape[1], len(trace)))
    summed: Floats = owner @ columns
    return summed
