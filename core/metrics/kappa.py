"""Agreement of two raters: Cohen's kappa, and the share of units on which they agree.

Cohen, "A Coefficient of Agreement for Nominal Scales" (1960): the share on which two agree, less what chance gives,
over the most that could be above chance. The gold may be one of the two; the share is then an accuracy. Value and
resamples are what scikit-learn gives on the same units.
"""

from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.metrics.bootstrap import Weights, interval, share, weighted_sums
from stepsight.core.metrics.value import Value

NOTHING_SHARED = "there is nothing that both labelled"
ONE_LABEL = "both give one and the same label only, so chance would agree as well"


@dataclass(frozen=True, eq=False)
class RaterPair:
    """The ratings of the units that both rated, as numbers, and the place of each unit's trace: shape (n,)."""

    first: Ints
    second: Ints
    trace: Ints

    @classmethod
    def of(cls, first: Floats64, second: Floats64, trace: Ints) -> "RaterPair":
        """The pair of two people's ratings of all units, shape (units,), NaN where there is none."""
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


def kappa(pair: RaterPair, weights: Weights | None = None) -> Value:
    """Cohen's kappa, unweighted, -1 to 1; with `weights`, resamples of traces, it has its 95 % interval, unless all
    units are of one trace.

    There is none where the two share no unit, or both give one and the same label throughout.
    """
    if not len(pair):
        return Value.none(NOTHING_SHARED)
    if len(pair.values) == 1:
        return Value.none(ONE_LABEL)
    # scikit-learn's function checks its input for milliseconds, which for all pairs of fifty people are seconds.
    value = Value(float(kappa_draws(pair, np.ones((1, int(pair.trace.max()) + 1), np.uint8))[0]))
    return value if weights is None or pair.traces == 1 else interval(value, kappa_draws(pair, weights))


def agreeing(pair: RaterPair, weights: Weights | None = None) -> Value:
    """The share of units that both rate alike."""
    return share(pair.hit, pair.trace, weights, NOTHING_SHARED)


def kappa_draws(pair: RaterPair, weights: Weights) -> Floats64:
    """Kappa of each resample, shape (draws,); NaN where it has no unit or one value only."""
    kept, place = np.unique(pair.trace, return_inverse=True)
    drawn = weights[:, kept]
    sides = [side == value for side in (pair.first, pair.second) for value in pair.values]
    hits, *marginals = weighted_sums([pair.hit, *sides], place, drawn)
    firsts, seconds = np.split(np.array(marginals), 2)
    total = firsts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed, expected = hits / total, (firsts * seconds).sum(axis=0) / total**2
        kappas: Floats64 = np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
    return kappas
