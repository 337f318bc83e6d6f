import math

import pytest

from tests.training.grid.toy import results
from training.grid.forms import survival_table

# Gains of 0.25 and 0.25 in the first; of 0.125 and 0 in the second, where the pair of seed 3 has no counterpart.
GAINS = {("a", "1k", 1): (0.75, 0.5), ("a", "1k", 2): (0.75, 0.5)}
FIRST = results(GAINS, "first")
SECOND = results({("a", "1k", 1): (0.625, 0.5), ("a", "1k", 2): (0.5, 0.5), ("a", "1k", 3): (1.0, 0.0)}, "second")


def test_what_is_left_of_the_gain_by_hand():
    row = survival_table(FIRST, SECOND).rows[0]
    assert row[:3] == ("synthetic", "offline", "macro-AUC")
    before, after, change, kept, pairs = row[3:]
    assert (before.number, after.number, change.number) == (0.25, 0.0625, -0.1875)
    # A quarter of it. Resamples have the pair of seed 1 never, once or twice: none, a quarter or half of it.
    assert (kept.number, kept.low, kept.high, pairs) == (0.25, 0.0, 0.5, 2)


def test_a_pair_without_a_value_in_one_form_counts_in_neither():
    row = survival_table(results({**GAINS, ("a", "1k", 3): (math.nan, 0.5)}, "first"), SECOND).rows[0]
    assert row[3:] == survival_table(FIRST, SECOND).rows[0][3:]


def test_of_no_clear_gain_no_share_is_told():
    row = survival_table(SECOND, FIRST).rows[0]
    assert (row[3].number, row[3].low) == (0.0625, 0.0)
    assert not row[6].exists


def test_forms_without_a_pair_in_common_have_no_value():
    other = results({("b", "1k", 1): (0.75, 0.5)}, "other")
    row = survival_table(FIRST, other).rows[0]
    assert (row[3].exists, row[4].exists, row[7]) == (False, False, 0)


@pytest.mark.parametrize("figure", ["macro-AUC", "Late-AUC", "Accuracy", "macro-F1"])
def test_every_figure_has_a_row(figure):
    assert [row[2] for row in survival_table(FIRST, SECOND).rows].count(figure) == 1
