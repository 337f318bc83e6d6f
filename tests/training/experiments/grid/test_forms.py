import math

import pytest

from stepsight.training.experiments.grid.tables import survival_table
from tests.training.experiments.grid.toy import results

# Gains of 0.25 in the first; of 0.125 and 0 in turn in the second, where the pair of seed 10 has no counterpart.
GAINS = {("a", "1k", seed): (0.75, 0.5) for seed in range(10)}
FIRST = results(GAINS, "first")
LEFT = {("a", "1k", seed): (0.5 if seed % 2 else 0.625, 0.5) for seed in range(10)}
SECOND = results(LEFT | {("a", "1k", 10): (1.0, 0.0)}, "second")


def test_the_remaining_share_of_a_gain_by_hand():
    row = survival_table(FIRST, SECOND).rows[0]
    assert row[:3] == ("synthetic", "offline", "macro-AUC")
    before, after, change, kept, pairs = row[3:]
    assert (before.number, after.number, change.number) == (0.25, 0.0625, -0.1875)
    assert (kept.number, pairs) == (0.25, 10)
    # Of 10 pairs drawn k are even, with probability 1/2 each, and k / 20 is kept; k is at most 2 in 5.5 % of the
    # draws and at most 1 in 1.1 %.
    assert (kept.low, kept.high) == (0.1, 0.4)


def test_a_pair_without_a_value_in_one_form_counts_in_neither():
    row = survival_table(results({**GAINS, ("a", "1k", 10): (math.nan, 0.5)}, "first"), SECOND).rows[0]
    assert row[3:] == survival_table(FIRST, SECOND).rows[0][3:]


def test_an_unclear_gain_has_no_share():
    # 0.125 and -0.125 in turn are 0 on average.
    row = survival_table(results({place: (0.625 - 0.25 * (place[2] % 2), 0.5) for place in GAINS}), FIRST).rows[0]
    assert row[3].low < row[3].number == 0
    assert (row[6].exists, row[6].reason) == (False, "the first gain is not clearly above zero")


def test_few_pairs_have_no_share():
    few = results({place: both for place, both in GAINS.items() if place[2] < 8}, "few")
    row = survival_table(few, SECOND).rows[0]
    assert (row[3].number, row[7]) == (0.25, 8)
    assert (row[6].exists, row[6].reason) == (False, "there are fewer than 9 pairs")


def test_forms_without_a_pair_in_common_have_no_value():
    other = results({("b", "1k", 1): (0.75, 0.5)}, "other")
    row = survival_table(FIRST, other).rows[0]
    assert (row[3].exists, row[4].exists, row[7]) == (False, False, 0)


@pytest.mark.parametrize("figure", ["macro-AUC", "Late-AUC", "Accuracy", "macro-F1"])
def test_every_figure_has_a_row(figure):
    assert [row[2] for row in survival_table(FIRST, SECOND).rows].count(figure) == 1
