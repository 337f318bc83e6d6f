"""Calibration: whether a validity of 0.8 means that eight steps of ten are valid."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import brier_score_loss

from stepsight.core.metrics.items import NO_ITEMS, NO_SCORES, Items
from stepsight.core.metrics.value import Value

BINS = 10

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Of each bin of equal width over 0 to 1, shape (bins,): `count` items, their mean score and the share of them
    that is positive, both NaN in an empty bin."""

    count: NDArray[np.int64]
    score: Floats
    share: Floats


def reliability(items: Items, bins: int = BINS) -> Reliability:
    """The reliability diagram of scores that are probabilities of the positive class."""
    if items.problem == NO_ITEMS or np.isnan(items.scores).any():
        empty = np.full(bins, np.nan)
        return Reliability(np.zeros(bins, np.int64), empty, empty)
    place = np.minimum((items.scores * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        score = np.bincount(place, items.scores, bins) / count
        share = np.bincount(place, items.golds.astype(np.float64), bins) / count
    return Reliability(count, score, share)


def expected_calibration_error(items: Items, bins: int = BINS) -> Value:
    """Mean distance of score and share over the bins, weighted by their items (Naeini et al., 2015)."""
    if not len(items):
        return Value.none(NO_ITEMS)
    if np.isnan(items.scores).any():
        return Value.none(NO_SCORES)
    found = reliability(items, bins)
    filled = found.count > 0
    distance = np.abs(found.score[filled] - found.share[filled])
    return Value(float((found.count[filled] * distance).sum() / len(items)))


def brier(items: Items) -> Value:
    """Mean squared distance of score and gold, 0 to 1."""
    if not len(items):
        return Value.none(NO_ITEMS)
    if np.isnan(items.scores).any():
        return Value.none(NO_SCORES)
    # Rounding can lift the sum of two probabilities above 1, in what others publish too.
    return Value(float(brier_score_loss(items.golds, np.clip(items.scores, 0.0, 1.0))))
