import math

import numpy as np
import pytest

from stepsight.core.metrics.binary import (
    auc,
    brier,
    expected_calibration_error,
    f1,
    macro_f1,
    mcnemar,
    precision,
    recall,
    reliability,
)
from stepsight.core.metrics.bootstrap import Value, difference
from stepsight.core.metrics.table import Items
from stepsight.training.evaluate.diagnostics import roc


def items(scores, golds, predicted=None):
    scores, golds = np.array(scores, np.float64), np.array(golds, np.bool_)
    predicted = scores >= 0.5 if predicted is None else np.array(predicted, np.bool_)
    return Items(scores, golds, predicted, np.arange(len(golds)))


def test_a_class_that_is_never_predicted_has_f1_zero():
    # Everything predicted positive: F1 of the positive class 2 * 1 / (2 * 1 + 1) = 2 / 3, of the other 0.
    assert macro_f1(items([0.9, 0.8], [True, False])).number == pytest.approx(1 / 3)


def test_the_f1_of_a_class_that_the_gold_lacks_is_undefined_although_it_is_predicted():
    absent = items([0.9, 0.1], [False, False])
    assert f1(absent).reason == "the gold has no such item"
    assert np.isnan(f1.draws(absent, np.array([[1, 1]]))).all()
    # One positive, predicted together with one negative: 2 * 1 / (1 + 2). Without its trace there is none.
    present = items([0.9, 0.8], [True, False])
    assert f1(present).number == pytest.approx(2 / 3)
    assert f1.draws(present, np.array([[1, 1], [0, 2]])) == pytest.approx([2 / 3, math.nan], nan_ok=True)
    assert f1(items([0.1], [True])).number == 0


@pytest.mark.parametrize("metric", [auc, macro_f1])
@pytest.mark.parametrize(
    ("golds", "reason"),
    [([], "there is nothing to measure"), ([True, True], "the gold has one class only"), ([False], "one class")],
)
def test_no_value_without_two_classes(metric, golds, reason):
    value = metric(items(np.linspace(0, 1, len(golds)), golds))
    assert math.isnan(value.number)
    assert reason in value.reason


def test_verdicts_alone_have_no_curve_but_an_f1():
    found = items([math.nan, math.nan], [True, False], [True, False])
    assert macro_f1(found).number == 1
    assert auc(found).reason == "the evaluator gives no scores to rank by"
    assert roc(found)[0].shape == (0,)


def test_nothing_predicted_and_nothing_there():
    assert precision(items([0.1], [True])).reason == "nothing is predicted so"
    assert recall(items([0.9], [False])).reason == "the gold has no such item"


def test_the_curve_goes_from_corner_to_corner():
    false, true, _ = roc(items([0.9, 0.4, 0.6, 0.2], [True, True, False, False]))
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(true, false) == pytest.approx(3 / 4)


def scored(scores, golds):
    golds = np.array(golds, np.bool_)
    return Items(np.array(scores, np.float64), golds, golds, np.arange(len(golds)))


FOUND = scored([0.1, 0.3, 0.7, 0.9, 1.0], [False, True, True, True, False])


def test_two_bins_by_hand(monkeypatch):
    monkeypatch.setattr("stepsight.core.metrics.binary.BINS", 2)
    # Below 0.5: scores 0.1, 0.3 (mean 0.2), half of them positive. Above: 0.7, 0.9, 1.0 (mean 2.6 / 3), two thirds.
    found = reliability(FOUND)
    assert found.count.tolist() == [2, 3]
    np.testing.assert_allclose(found.score, [0.2, 2.6 / 3])
    np.testing.assert_allclose(found.share, [0.5, 2 / 3])
    # (2 * 0.3 + 3 * (2.6 - 2) / 3) / 5
    assert expected_calibration_error(FOUND).number == pytest.approx((0.6 + 0.6) / 5)


def test_brier_of_probabilities_that_rounding_lifted_above_1():
    assert brier(scored([1.001, -0.0005, 0.5], [1, 0, 1])).number == pytest.approx(0.25 / 3)


def test_an_empty_bin_is_no_number():
    found = reliability(scored([0.05], [True]))
    assert found.count.tolist() == [1] + [0] * 9
    assert np.isnan(found.share[1:]).all()
    # One item is enough to fill a bin: its share is 1, its score 0.05.
    assert expected_calibration_error(scored([0.05], [True])).number == pytest.approx(0.95)


@pytest.mark.parametrize("metric", [brier, expected_calibration_error])
def test_nothing_and_no_scores(metric):
    assert metric(scored([], [])).reason == "there is nothing to measure"
    assert metric(scored([np.nan], [True])).reason == "the evaluator gives no scores to rank by"
    assert reliability(scored([], [])).count.sum() == 0


def predicted_items(golds, predicted):
    golds = np.array(golds, np.bool_)
    return Items(np.zeros(len(golds)), golds, np.array(predicted, np.bool_), np.arange(len(golds)))


def test_mcnemar_by_hand():
    golds = [True] * 6
    first = predicted_items(golds, [True, True, True, True, True, False])
    second = predicted_items(golds, [True, False, False, False, False, True])
    found = mcnemar(first, second)
    assert (found.first_only, found.second_only) == (4, 1)
    # Two-sided binomial of 4 against 1 at one half: 2 * (C(5,4) + C(5,5)) / 2^5 = 12 / 32.
    assert found.p.number == pytest.approx(12 / 32)


def test_nothing_to_test():
    same = predicted_items([True, False], [True, True])
    # Each is right where the other is wrong: one item against one.
    apart = mcnemar(predicted_items([True, True], [True, False]), predicted_items([True, True], [False, True]))
    assert (apart.first_only, apart.second_only, apart.p.number) == (1, 1, 1)
    assert mcnemar(same, same).p.reason == "they are right on the same items"
    with pytest.raises(ValueError, match="not the same"):
        mcnemar(same, predicted_items([True, True], [True, True]))


def test_the_interval_of_a_difference_is_of_paired_draws():
    # The draws rise and fall together: their difference is always 0.1, however wide each spreads.
    draws = np.linspace(0.2, 0.8, 101)
    found = difference(Value(0.6, draws=draws + 0.1), Value(0.5, draws=draws))
    assert (found.number, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    assert difference(Value.none("why"), Value(0.5, draws=draws)).reason == "why"
    assert math.isnan(difference(Value(0.6), Value(0.5, draws=draws)).low)
