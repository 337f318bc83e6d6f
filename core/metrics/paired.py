"""Paired comparison of two evaluators on the same items: differences with intervals, and McNemar's test."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from stepsight.core.arrays import Floats64
from stepsight.core.metrics.items import Items
from stepsight.core.metrics.value import Value


def difference(first: Value, second: Value, first_draws: Floats64, second_draws: Floats64) -> Value:
    """First minus second, with the interval of the paired resamples: both sets of draws are of the same traces."""
    for value in (first, second):
        if not value.exists:
            return Value.none(value.reason)
    draws = first_draws - second_draws
    low, high = (np.nan, np.nan) if np.isnan(draws).mean() > 0.5 else np.nanpercentile(draws, [2.5, 97.5])
    return Value(first.number - second.number).within(float(low), float(high))


@dataclass(frozen=True)
class McNemar:
    """The number of items that only the first, and only the second, predicts rightly; `p` of the exact two-sided
    test."""

    first_only: int
    second_only: int
    p: Value


def mcnemar(first: Items, second: Items) -> McNemar:
    """McNemar's exact test on the predictions of two evaluators.

    Without an item on which exactly one is right there is nothing to test. Raises `ValueError` where the items
    are not the same.
    """
    if len(first) != len(second) or not np.array_equal(first.gold, second.gold):
        raise ValueError("the items are not the same")
    one, other = first.predicted == first.gold, second.predicted == second.gold
    only, others = int((one & ~other).sum()), int((other & ~one).sum())
    if not only + others:
        return McNemar(0, 0, Value.none("they are right on the same items"))
    return McNemar(only, others, Value(float(binomtest(only, only + others).pvalue)))
