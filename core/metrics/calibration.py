"""Calibration of scores as probabilities: of steps with a validity of 0.8, are eight of ten valid?"""

from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import Floats64, Ints
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.table import NO_ITEMS, NO_SCORES, Items

BINS = 10


@dataclass(frozen=True, eq=False)
class Reliability:
    """Bins of equal width over 0 to 1, each of shape (bins,): `count` items, their mean score, and the share of
    positives among them, both NaN for an empty bin."""

    count: Ints
    score: Floats64
    share: Floats64


def reliability(items: Items, bins: int = BINS) -> Reliability:
    """The reliability diagram of scores that are probabilities of the positive class."""
    if items.problem == NO_ITEMS or np.isnan(items.scores).any():
        empty = np.full(bins, np.nan)
        return Reliability(np.zeros(bins, np.int64), empty, empty)
    place = np.minimum((items.scores * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        score = np.bincount(place, items.scores, bins) / count
        share = np.bincount(place, items.gold.astype(np.float64), bins) / count
    return Reliability(count, score, share)


def expected_calibration_error(items: Items, bins: int = BINS) -> Value:
    """Mean distance between score and share over the bins, weighted by their items (Naeini et al., 2015)."""
    if not len(items):
        return Value.none(NO_ITEMS)
    if np.isnan(items.scores).any():
        return Value.none(NO_SCORES)
    diagram = reliability(items, bins)
    filled = diagram.count > 0
    distance = np.abs(diagram.score[filled] - diagram.share[filled])
    return Value(float((diagram.count[filled] * distance).sum() / len(items)))


def brier(items: Items) -> Value:
    """Mean squared distance between score and gold, 0 to 1."""
    if not len(items):
        return Value.none(NO_ITEMS)
    if np.isnan(items.scores).any():
        return Value.none(NO_SCORES)
    # Rounding can lift the sum of two probabilities above 1, in what others publish too.
    return Value(float(np.mean((np.clip(items.scores, 0.0, 1.0) - items.gold) ** 2)))
