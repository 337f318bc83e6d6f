"""The AUC of falls for needed steps against others, by hand, and its interval over problems."""

import numpy as np
import pytest

from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.needed_steps import LabelledFall, measure_falls

FALLS = (
    ("p", 0.4, True), ("p", 0.1, False), ("q", 0.2, True), ("q", 0.3, False), ("r", 0.1, True), ("r", -0.1, False),
)  # fmt: skip


def test_the_auc_counts_pairs_and_its_resamples_draw_whole_problems():
    found = measure_falls(LabelledFall(*fall) for fall in FALLS)
    # Of nine pairs 0.4 wins three, 0.2 two, and 0.1 one and a half.
    assert found.auc.number == pytest.approx(6.5 / 9)
    assert (found.needed, found.others, found.problems) == (3, 3, 3)
    won = np.array([[1, 1, 1], [1, 0, 1], [0.5, 0, 1]])
    drawn = [(times @ won @ times) / 9 for times in resamples(3).astype(np.float64)]
    assert [found.auc.low, found.auc.high] == pytest.approx(np.percentile(drawn, [2.5, 97.5]).tolist())


def test_steps_of_one_kind_have_no_auc():
    for falls in ([], [LabelledFall("p", 0.1, True)]):
        assert not measure_falls(falls).auc.exists
