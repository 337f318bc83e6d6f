"""Agreement between annotators: Krippendorff's alpha for several people, Cohen's kappa for two.

Alpha is one minus the ratio of the disagreement within units to the disagreement expected by chance. It is 1 for
perfect agreement, 0 at chance level, and negative for worse than chance. The formulas are those of "Computing
Krippendorff's Alpha-Reliability" (Krippendorff, 2011). The `krippendorff` library can compute alpha, but its values
on the bootstrap resamples are computed here, because they reduce to a single matrix product.

Kappa (Cohen, "A Coefficient of Agreement for Nominal Scales", 1960) is the agreement above chance as a share of the
greatest possible agreement above chance. The gold labels can take the place of one of the two raters; the share of
agreement is then an accuracy. Kappa and its values on the resamples equal scikit-learn's results on the same units.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any, Literal

import krippendorff
import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.metrics.bootstrap import Value, Weights, interval, ratio, share, statistic, weighted_sums

NO_LABEL = "nobody has labelled anything"
ONE_ANNOTATOR = "only one person has labelled"
NO_OVERLAP = "nothing was labelled by two people"
NOTHING_SHARED = "there is nothing that both labelled"
ONE_LABEL = "both give one and the same label only, so chance would agree as well"
ALL_SAME = "all labels are the same, so chance would agree as well"


class Scale(StrEnum):
    """The scale of ratings, which determines the distance between two ratings.

    On a nominal scale all unequal ratings are equally far apart. On an ordinal scale the distance depends on how
    many ratings lie between them.
    """

    NOMINAL = "nominal"
    ORDINAL = "ordinal"


@dataclass(frozen=True)
class Agreement:
    """The agreement among several people.

    `alpha` is Krippendorff's alpha. `agreeing` is the share of equal pairs among all pairs of ratings of the same
    unit. `n_units` counts the units with at least two ratings, and `n_pairs` the pairs within them.
    """

    alpha: Value
    agreeing: Value
    n_units: int
    n_pairs: int


def alpha(
    ratings: Floats64,
    scale: Scale = Scale.NOMINAL,
    trace: Ints | None = None,
    weights: Weights | None = None,
) -> Agreement:
    """Measure the agreement among several people.

    `ratings` has the shape (annotators, units), with NaN for missing ratings. Only the order of the numbers
    matters.

    `trace` has the shape (units,) and gives the index of each unit's trace, and `weights` are the resamples of
    traces. If both are given, both values get 95 % intervals, unless all units belong to one trace. Alpha is
    undefined, and states the reason, if fewer than two people rated, no unit has two ratings, or all ratings of
    such units are equal.
    """
    counts = _value_counts(ratings)
    paired = counts.sum(axis=1) > 1
    shared = counts[paired]
    total = counts.sum(axis=1)
    hits, pairs = (counts * (counts - 1)).sum(axis=1) / 2, total * (total - 1) / 2
    problem = _problem(ratings, shared)
    value = Value.none(problem)
    if not problem:
        level: Literal["nominal", "ordinal"] = "nominal" if scale is Scale.NOMINAL else "ordinal"
        value = Value(float(krippendorff.alpha(value_counts=shared, level_of_measurement=level)))
    if trace is not None and weights is not None and several(trace[paired]):
        value = interval(value, alpha_draws(ratings, scale, trace, weights))
    agreeing = _share_of_pairs(hits, pairs, trace, weights, problem)
    return Agreement(value, agreeing, len(shared), int(pairs.sum()))


def several(trace: Ints) -> bool:
    """True if the units belong to more than one trace. With a single trace, all resamples would be identical."""
    return len(trace) > 0 and bool((trace != trace[0]).any())


def alpha_draws(ratings: Floats64, scale: Scale, trace: Ints, weights: Weights) -> Floats64:
    """Return alpha on each resample, with shape (draws,). It is NaN if a resample has no pairs or all its ratings
    are equal."""
    counts = _value_counts(ratings)
    paired = counts.sum(axis=1) > 1
    draw = _nominal_draws if scale == Scale.NOMINAL else _ordinal_draws
    with np.errstate(invalid="ignore", divide="ignore"):
        return draw(counts[paired], trace[paired], weights)


def agreeing_with_others(ratings: Floats64, person: int, trace: Ints, weights: Weights | None = None) -> Value:
    """Return how often one person agrees with the others.

    This is the share of equal pairs among all pairs of this person's rating and another person's rating of the same
    unit.
    """
    own, others = ratings[person], np.delete(ratings, person, axis=0)
    both = ~(np.isnan(own) | np.isnan(others))
    return _share_of_pairs(((others == own) & both).sum(axis=0), both.sum(axis=0), trace, weights, NO_OVERLAP)


def _share_of_pairs(
    hits: NDArray[Any], pairs: NDArray[Any], trace: Ints | None, weights: Weights | None, lacking: str
) -> Value:
    """Return the share of equal pairs, given the numbers of equal and of all pairs within each unit. It has an
    interval if `weights` are given and the pairs belong to several traces."""
    if not pairs.any():
        return Value.none(lacking)
    value = Value(float(hits.sum() / pairs.sum()))
    if trace is None or weights is None or not several(trace[pairs > 0]):
        return value
    return interval(value, ratio(hits, pairs, trace, weights))


@dataclass(frozen=True, eq=False)
class RaterPair:
    """Two people's ratings of the units that both of them rated.

    All three arrays have the shape (n,). Ratings are integers, and `trace` holds the index of each unit's trace.
    """

    first: Ints
    second: Ints
    trace: Ints

    @classmethod
    def of(cls, first: Floats64, second: Floats64, trace: Ints) -> "RaterPair":
        """Build a pair from two people's ratings of all units, arrays of shape (units,) with NaN for missing
        ratings."""
        both = ~(np.isnan(first) | np.isnan(second))
        return cls(first[both].astype(np.int64), second[both].astype(np.int64), trace[both])

    def __len__(self) -> int:
        return len(self.first)

    @property
    def hit(self) -> Bools:
        return np.equal(self.first, self.second)

    @property
    def traces(self) -> int:
        return len(np.unique(self.trace))

    @property
    def values(self) -> Ints:
        return np.unique(np.concatenate([self.first, self.second]))


def _kappa_problem(pair: RaterPair) -> str:
    if not len(pair):
        return NOTHING_SHARED
    return ONE_LABEL if len(pair.values) == 1 else ""


@statistic(_kappa_problem)
def kappa(pair: RaterPair, weights: Weights) -> Floats64:
    """Cohen's unweighted kappa, from -1 to 1.

    It is undefined if the two people share no unit, or if both give one and the same label to every unit, in the
    sample or in a resample.
    """
    kept, place = np.unique(pair.trace, return_inverse=True)
    sides = [side == value for side in (pair.first, pair.second) for value in pair.values]
    hits, *marginals = weighted_sums([pair.hit, *sides], place, weights[:, kept])
    firsts, seconds = np.split(np.array(marginals), 2)
    total = firsts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed, expected = hits / total, (firsts * seconds).sum(axis=0) / total**2
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)


def agreeing(pair: RaterPair, weights: Weights | None = None) -> Value:
    """Return the share of units that both people rate the same."""
    return share(pair.hit, pair.trace, weights, NOTHING_SHARED)


def _value_counts(ratings: Floats64) -> Floats64:
    """Count how often each unit got each rating. The result has the shape (units, ratings), with ratings in
    ascending order."""
    rated = ~np.isnan(ratings)
    values, codes = np.unique(ratings[rated], return_inverse=True)
    cells = np.nonzero(rated)[1] * len(values) + codes
    counted = np.bincount(cells, minlength=ratings.shape[1] * len(values))
    return counted.reshape(ratings.shape[1], len(values)).astype(np.float64)


def _problem(ratings: Floats64, shared: Floats64) -> str:
    people = int((~np.isnan(ratings)).any(axis=1).sum())
    if people < 2:
        return ONE_ANNOTATOR if people else NO_LABEL
    if not len(shared):
        return NO_OVERLAP
    return ALL_SAME if (shared.sum(axis=0) > 0).sum() == 1 else ""


def _nominal_draws(shared: Floats64, trace: Ints, weights: Weights) -> Floats64:
    """Compute nominal alpha on each resample. Counting the equal pairs is enough, since all unequal pairs are
    equally far apart."""
    equal = (shared * (shared - 1)).sum(axis=1) / (shared.sum(axis=1) - 1)
    same, *ratings = weighted_sums([equal, *shared.T], trace, weights)
    marginals = np.array(ratings)
    total = marginals.sum(axis=0)
    expected = total**2 - (marginals**2).sum(axis=0)
    alphas: Floats64 = 1 - (total - 1) * (total - same) / np.where(expected > 0, expected, np.nan)
    return alphas


def _ordinal_draws(shared: Floats64, trace: Ints, weights: Weights) -> Floats64:
    """Compute ordinal alpha on each resample.

    Unlike nominal alpha, this needs a count for every pair of unequal ratings, because the distance between two
    ratings depends on the resample.
    """
    couples = list(combinations(range(shared.shape[1]), 2))
    others = shared.sum(axis=1) - 1
    met = [shared[:, low] * shared[:, high] / others for low, high in couples]
    drawn = weighted_sums([*met, *shared.T], trace, weights)
    marginals = drawn[len(couples) :]
    below = np.cumsum(marginals, axis=0)
    observed, expected = np.zeros(len(weights)), np.zeros(len(weights))
    for place, (low, high) in enumerate(couples):
        between = below[high] - below[low] + (marginals[low] - marginals[high]) / 2
        observed += drawn[place] * between**2
        expected += marginals[low] * marginals[high] * between**2
    alphas: Floats64 = 1 - (marginals.sum(axis=0) - 1) * observed / np.where(expected > 0, expected, np.nan)
    return alphas
