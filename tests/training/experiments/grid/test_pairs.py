import math

import numpy as np
import pytest

from stepsight.core.files import asset
from stepsight.training.experiments.grid.pairs import contrast, differences, interval, mean, pairs_of
from stepsight.training.experiments.grid.results import Results, read_results
from tests.training.experiments.grid.toy import KEY, results

FOUND = results({("a", "1k", 1): (0.75, 0.5), ("a", "1k", 2): (0.5, 0.5), ("b", "1k", 1): (0.25, 0.5)})


def test_runs_are_matched_by_size_data_and_seed():
    pairs = pairs_of(FOUND)
    assert [(pair.size, pair.data, pair.causal.cell.seed) for pair in pairs] == [
        ("a", "1k", 1), ("a", "1k", 2), ("b", "1k", 1),
    ]  # fmt: skip
    assert [pair.causal.cell.mask for pair in pairs] == ["causal"] * 3
    # Without its causal run a bidirectional one has no pair.
    assert len(pairs_of(Results("less", FOUND.runs[:-1], 6))) == 2


def test_wins_ties_and_the_mean_by_hand():
    found = contrast(differences(pairs_of(FOUND), KEY, "macro_auc"))
    # +0.25, 0 and -0.25.
    assert (found.wins, found.ties, found.pairs, found.mean.number) == (1, 1, 3, 0)
    assert found.mean.low == pytest.approx(-0.25)
    assert found.mean.high == pytest.approx(0.25)


def test_what_has_no_value_is_left_out():
    found = contrast(np.array([0.5, np.nan, 0.25]))
    assert (found.pairs, found.wins, found.mean.number) == (2, 2, 0.375)
    none = contrast(np.array([np.nan]))
    assert (none.pairs, none.mean.exists, none.mean.reason) == (0, False, "no pair has a value")
    assert mean([math.nan, 1.0, 0.0]).number == 0.5
    assert not mean([math.nan]).exists
    assert all(math.isnan(end) for end in interval(np.array([1.0])))


@pytest.mark.parametrize(
    ("metric", "points"), [("accuracy", 2.02), ("macro_f1", 0.90), ("macro_auc", 1.06), ("late_auc", 6.20)]
)
def test_the_papers_rows_give_the_papers_pairs(metric, points):
    found = contrast(
        differences(
            pairs_of(read_results(asset("reference", "full-grid-results.json"))), ("PRM800K", "offline"), metric
        )
    )
    assert (found.pairs, found.ties) == (27, 0)
    assert found.wins == 22
    assert round(100 * found.mean.number, 2) == points
