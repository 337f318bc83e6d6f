import math

import numpy as np
import pytest

from core.label import Label
from core.metrics import auc, step_validity
from core.scores import StepScores
from core.trace import Step, Trace


def scores(*validities):
    return StepScores(np.array([[1 - v, v / 4, 3 * v / 4] for v in validities], np.float32))


def test_a_step_scores_as_its_least_valid_substep_and_silent_gold_is_left_out():
    # Valid without a label, wrong at the second step, unlabelled after it.
    first = Trace("a", "q", (Step(("x",), valid=True), Step(("y", "z"), Label.NEG), Step(("w",))))
    second = Trace.of("q", ["x", "y"], ["neu", "pos"])
    pooled, golds = step_validity([(first, scores(0.9, 0.7, 0.2, 0.1)), (second, scores(0.3, 0.8))])
    # 0.9; min(0.7, 0.2) = 0.2; 0.1 says nothing; then both steps of the second trace.
    np.testing.assert_allclose(pooled, [0.9, 0.2, 0.3, 0.8], atol=1e-6)
    assert golds.tolist() == [True, False, True, True]


def test_no_trace_and_no_gold_give_no_step():
    for pairs in ([], [(Trace.of("q", ["x"]), scores(0.5))]):
        pooled, golds = step_validity(pairs)
        assert (pooled.shape, golds.shape, golds.dtype) == ((0,), (0,), np.bool_)


def test_scores_of_another_trace_are_refused():
    with pytest.raises(ValueError):
        step_validity([(Trace.of("q", ["x", "y"], ["pos", "neg"]), scores(0.5))])


@pytest.mark.parametrize(
    ("values", "golds", "expected"),
    [
        # Of the four pairs 0.9 > 0.6, 0.9 > 0.2 and 0.4 > 0.2 are in order, 0.4 < 0.6 is not.
        ([0.9, 0.4, 0.6, 0.2], [True, True, False, False], 3 / 4),
        # 0.5 = 0.5 is a tie and counts one half, 0.5 > 0.1 one.
        ([0.5, 0.5, 0.1], [True, False, False], (0.5 + 1) / 2),
        ([0.1, 0.9], [True, False], 0.0),
        ([0.3, 0.3, 0.3], [True, False, True], 0.5),
    ],
)
def test_auc_counts_pairs_in_order(values, golds, expected):
    assert auc(np.array(values), np.array(golds)) == pytest.approx(expected)


@pytest.mark.parametrize("golds", [[], [True, True], [False]])
def test_auc_of_one_class_is_no_number(golds):
    assert math.isnan(auc(np.linspace(0, 1, len(golds)), np.array(golds, np.bool_)))
