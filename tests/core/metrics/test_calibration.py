import numpy as np
import pytest

from stepsight.core.metrics.binary import brier, expected_calibration_error, reliability
from stepsight.core.metrics.table import Items


def items(scores, golds):
    golds = np.array(golds, np.bool_)
    return Items(np.array(scores, np.float64), golds, golds, np.arange(len(golds)))


FOUND = items([0.1, 0.3, 0.7, 0.9, 1.0], [False, True, True, True, False])


def test_two_bins_by_hand():
    # Below 0.5: scores 0.1, 0.3 (mean 0.2), half of them positive. Above: 0.7, 0.9, 1.0 (mean 2.6 / 3), two thirds.
    found = reliability(FOUND, bins=2)
    assert found.count.tolist() == [2, 3]
    np.testing.assert_allclose(found.score, [0.2, 2.6 / 3])
    np.testing.assert_allclose(found.share, [0.5, 2 / 3])
    # (2 * 0.3 + 3 * (2.6 - 2) / 3) / 5
    assert expected_calibration_error(FOUND, bins=2).number == pytest.approx((0.6 + 0.6) / 5)


def test_brier_of_probabilities_that_rounding_lifted_above_1():
    assert brier(items([1.001, -0.0005, 0.5], [1, 0, 1])).number == pytest.approx(0.25 / 3)


def test_an_empty_bin_is_no_number():
    found = reliability(items([0.05], [True]))
    assert found.count.tolist() == [1] + [0] * 9
    assert np.isnan(found.share[1:]).all()
    # One item is enough to fill a bin: its share is 1, its score 0.05.
    assert expected_calibration_error(items([0.05], [True])).number == pytest.approx(0.95)


@pytest.mark.parametrize("metric", [brier, expected_calibration_error])
def test_nothing_and_no_scores(metric):
    assert metric(items([], [])).reason == "there is nothing to measure"
    assert metric(items([np.nan], [True])).reason == "the evaluator gives no scores to rank by"
    assert reliability(items([], [])).count.sum() == 0
