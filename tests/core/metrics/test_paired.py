import numpy as np
import pytest

from stepsight.core.metrics.binary import mcnemar
from stepsight.core.metrics.bootstrap import Value, difference
from stepsight.core.metrics.table import Items


def items(golds, predicted):
    golds = np.array(golds, np.bool_)
    return Items(np.zeros(len(golds)), golds, np.array(predicted, np.bool_), np.arange(len(golds)))


def test_mcnemar_by_hand():
    golds = [True] * 6
    first = items(golds, [True, True, True, True, True, False])
    second = items(golds, [True, False, False, False, False, True])
    found = mcnemar(first, second)
    assert (found.first_only, found.second_only) == (4, 1)
    # Two-sided binomial of 4 against 1 at one half: 2 * (C(5,4) + C(5,5)) / 2^5 = 12 / 32.
    assert found.p.number == pytest.approx(12 / 32)


def test_nothing_to_test():
    same = items([True, False], [True, True])
    # Each is right where the other is wrong: one item against one.
    apart = mcnemar(items([True, True], [True, False]), items([True, True], [False, True]))
    assert (apart.first_only, apart.second_only, apart.p.number) == (1, 1, 1)
    assert mcnemar(same, same).p.reason == "they are right on the same items"
    with pytest.raises(ValueError, match="not the same"):
        mcnemar(same, items([True, True], [True, True]))


def test_the_interval_of_a_difference_is_of_paired_draws():
    # The draws rise and fall together: their difference is always 0.1, however wide each spreads.
    draws = np.linspace(0.2, 0.8, 101)
    found = difference(Value(0.6), Value(0.5), draws + 0.1, draws)
    assert (found.number, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    assert difference(Value.none("why"), Value(0.5), draws, draws).reason == "why"
