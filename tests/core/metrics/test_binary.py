import math

import numpy as np
import pytest

from stepsight.core.metrics.binary import (
    auc,
    auc_within,
    f1,
    macro_f1,
    precision,
    recall,
)
from stepsight.core.metrics.table import Items
from stepsight.training.evaluate.curves import roc


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


def test_auc_within_compares_the_items_of_one_trace():
    # Trace 0: 0.9 > 0.2 and 0.9 > 0.5. Trace 1: 0.1 < 0.3, and a tie 0.1 = 0.1. Trace 2 has no positive.
    scores = np.array([0.9, 0.2, 0.5, 0.1, 0.3, 0.1, 0.95])
    gold = np.array([True, False, False, True, False, False, False])
    found = Items(scores, gold, scores >= 0.5, np.array([0, 0, 0, 1, 1, 1, 2]))
    assert auc_within(found).number == pytest.approx((2 + 0 + 0.5) / 4)
    # Trace 0 drawn twice and trace 2 once; only trace 2.
    draws = auc_within.draws(found, np.array([[2, 0, 1], [0, 0, 3]], np.uint8))
    assert draws[0] == 1
    assert math.isnan(draws[1])
    only_others = Items(scores[5:], gold[5:] | [True, False], scores[5:] > 0, np.array([0, 1]))
    assert auc_within(only_others).reason == "no trace has items of both classes"
