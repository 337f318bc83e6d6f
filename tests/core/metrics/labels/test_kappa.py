import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.labels.agreement import (
    NOTHING_SHARED,
    ONE_LABEL,
    RaterPair,
    agreeing,
    kappa,
    kappa_draws,
)

NONE = np.nan


def pair(first, second, trace=None):
    first, second = np.array(first, float), np.array(second, float)
    return RaterPair.of(first, second, np.arange(len(first)) if trace is None else np.array(trace))


def test_cohens_own_example():
    # Cohen (1960): of 200 cases, rows are one judge's three classes, columns the other's.
    table = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
    cases = [(row, column) for row in range(3) for column in range(3) for _ in range(table[row][column])]
    found = pair(*zip(*cases, strict=True))
    # They agree on 140 of 200; chance gives 120/200 * 100/200 + 60/200 * 60/200 + 20/200 * 40/200 = 0.41.
    assert agreeing(found).number == pytest.approx(0.7)
    assert kappa(found).number == pytest.approx((0.7 - 0.41) / (1 - 0.41))
    assert round(kappa(found).number, 3) == 0.492


def test_only_steps_that_both_rated_count():
    found = pair([0, NONE, 2, 1], [0, 1, NONE, 2], [0, 0, 1, 1])
    assert (len(found), found.traces) == (2, 2)
    # Equal once of twice; by chance 1/2 * 1/2 for neg, nothing for the others.
    assert kappa(found).number == pytest.approx((1 / 2 - 1 / 4) / (1 - 1 / 4))


def test_an_undefined_kappa_gives_the_reason():
    weights = resamples(2, 20)
    for given in (None, weights):
        assert kappa(pair([0, NONE], [NONE, 1]), given).reason == NOTHING_SHARED
        assert agreeing(pair([0, NONE], [NONE, 1]), given).reason == NOTHING_SHARED
        assert kappa(pair([2, 2], [2, 2]), given).reason == ONE_LABEL
        assert agreeing(pair([2, 2], [2, 2]), given).number == 1
        # One always says neg, the other always pos: by chance they would never agree either.
        assert kappa(pair([0, 0], [2, 2]), given).number == 0


def test_every_resample_has_scikit_learns_value_on_the_repeated_units():
    rng = np.random.default_rng(5)
    trace = np.repeat(np.arange(30), rng.integers(1, 6, 30))
    first = rng.choice(3, len(trace)).astype(float)
    second = np.where(rng.random(len(trace)) < 0.6, first, rng.choice(3, len(trace)))
    # The last traces are not shared, which must not move the places of the others.
    second[trace > 24] = NONE
    second[trace == 3] = NONE
    found, weights = RaterPair.of(first, second, trace), resamples(30, 50)
    for row, drawn in zip(weights, kappa_draws(found, weights), strict=True):
        chosen = np.repeat(np.arange(len(found)), row[found.trace])
        assert drawn == pytest.approx(cohen_kappa_score(found.first[chosen], found.second[chosen]))
    value = kappa(found, weights)
    assert value.number == pytest.approx(cohen_kappa_score(found.first, found.second))
    assert value.low < value.number < value.high
    share = agreeing(found, weights)
    assert share.low < share.number < share.high


def test_one_trace_alone_has_no_interval():
    found, weights = pair([0, 2, 2], [0, 2, 1], [1, 1, 1]), resamples(3, 20)
    assert kappa(found, weights).exists
    assert np.isnan([kappa(found, weights).low, agreeing(found, weights).low]).all()


def test_a_resample_without_a_unit_has_no_value():
    found = pair([0, 2], [0, 2], [0, 1])
    np.testing.assert_array_equal(kappa_draws(found, np.array([[1, 1], [2, 0], [0, 0]], np.uint8)), [1, NONE, NONE])
