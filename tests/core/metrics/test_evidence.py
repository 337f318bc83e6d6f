"""The AUC of falls for needed steps against others, by hand, and its interval over problems."""

import numpy as np
import pytest

from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.evidence import evidence_hits, hit, measure_falls, step_changes
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Trace
from tests.cases import each

FALLS = (
    ("p", 0.4, True), ("p", 0.1, False), ("q", 0.2, True), ("q", 0.3, False), ("r", 0.1, True), ("r", -0.1, False),
)  # fmt: skip


def test_the_auc_counts_pairs_and_its_resamples_draw_whole_problems():
    found = measure_falls(FALLS)
    # Of nine pairs 0.4 wins three, 0.2 two, and 0.1 one and a half.
    assert found.auc.number == pytest.approx(6.5 / 9)
    assert (found.needed, found.others, found.problems) == (3, 3, 3)
    won = np.array([[1, 1, 1], [1, 0, 1], [0.5, 0, 1]])
    drawn = [(times @ won @ times) / 9 for times in resamples(3).astype(np.float64)]
    assert [found.auc.low, found.auc.high] == pytest.approx(np.percentile(drawn, [2.5, 97.5]).tolist())


def test_steps_of_one_kind_have_no_auc():
    for falls in ([], [("p", 0.1, True)]):
        assert not measure_falls(falls).auc.exists


@each(
    "changes, named, first, expected",
    [
        ([0.1, 0.5, 0.1], 1, 1, 1.0),
        # One is above, and two share the next two places.
        ([0.1, 0.5, 0.1], 0, 1, 0.0),
        ([0.1, 0.5, 0.1], 0, 2, 0.5),
        ([0.1, 0.5, 0.1], 0, 3, 1.0),
        # A causal evaluator never moves.
        ([0.0, 0.0, 0.0, 0.0], 2, 1, 0.25),
        ([0.0, 0.0, 0.0, 0.0], 2, 3, 0.75),
        ([0.0], 0, 3, 1.0),
    ],
)
def test_the_named_step_is_among_the_first(changes, named, first, expected):
    assert hit(np.array(changes), named, first) == expected


def test_the_verdict_on_a_step_moves_once_a_later_step_is_whole():
    trace = Trace.of("q", ["a", ["b", "c"], "d"])
    validity = [[0.9], [0.8, 0.5], [0.4, 0.5, 0.6], [0.5, 0.1, 0.7, 0.5]]
    rows = tuple(np.array([[1 - one, 0, one] for one in row], np.float32) for row in validity)
    hindsight = Hindsight(rows, ends=trace.step_ends)
    # Of step 1 after itself 0.9, after step 2 0.4 and after step 3 0.5; of step 2 the least of its sub-steps.
    assert step_changes(hindsight, trace, 0) == pytest.approx([0.5, 0.1])
    assert step_changes(hindsight, trace, 1) == pytest.approx([0.4])


def test_hits_stand_beside_the_next_step_and_chance():
    """The first link is met at 1, which the next step misses; the second is the next step, and met at 3 alone."""
    changes = [np.array([0.0, 0.9, 0.1, 0.0]), np.array([0.1, 0.3, 0.2])]
    found = evidence_hits(changes, [1, 0], np.array([0, 1]), 50)
    assert (found.links, found.traces) == (2, 2)
    assert [found.hit[first].number for first in (1, 3)] == [0.5, 1.0]
    assert [found.above_next[first].number for first in (1, 3)] == [0.0, 0.0]
    # Chance is 1/4 and 1/3 at 1, and 3/4 and 1 at 3.
    assert [found.above_chance[first].number for first in (1, 3)] == pytest.approx([0.5 - 7 / 24, 1 - 7 / 8])
    assert found.hit[1].low <= 0.5 <= found.hit[1].high
