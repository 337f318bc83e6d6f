"""A pair: two evaluators on the same items, and whether their difference is more than chance."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from stepsight.core.metrics.bootstrap import Floats
from stepsight.core.metrics.items import Items
from stepsight.core.metrics.value import Value


def difference(first: Value, second: Value, first_draws: Floats, second_draws: Floats) -> Value:
    """First minus second with the interval of the paired resamples: both sets of draws are of the same traces."""
    for value in (first, second):
        if not value.exists:
            return Value.none(value.reason)
    draws = first_draws - second_draws
    low, high = (np.nan, np.nan) if np.isnan(draws).mean() > 0.5 else np.nanpercentile(draws, [2.5, 97.5])
    return Value(first.number - second.number).within(float(low), float(high))


@dataclass(frozen=True)
class McNemar:
    """How many items only the first, and only the second, predicts rightly; `p` of the exact two-sided test."""

    first_only: int
    second_only: int
    p: Value


def mcnemar(first: Items, second: Items) -> McNemar:
    """McNemar's exact test on the predictions of two evaluators.

    Without an item on which exactly one is right there is nothing to test. Raises `ValueError` where the items
    are not the same.
    """
    if len(first) != len(second) or not np.array_equal(first.golds, second.golds):
        raise ValueError("the items are not the same")
    one, other = first.predicted == first.golds, second.predicted == second.golds
    only, others = int((one & ~other).sum()), int((other & ~one).sum())
    if not only + others:
        return McNemar(0, 0, Value.none("they are right on the same items"))
    return McNemar(only, others, Value(float(binomtest(only, only + others).pvalue)))
