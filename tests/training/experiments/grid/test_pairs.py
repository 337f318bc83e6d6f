import math
from dataclasses import replace

import numpy as np
import pytest

from stepsight.core.paths import asset
from stepsight.training.experiments.grid.pairs import by_size_and_data, contrast, gains, mean, pair_values
from stepsight.training.experiments.grid.results import read_results
from tests.training.experiments.grid.toy import KEY, results

RESULTS = results({("a", "1k", 1): (0.75, 0.5), ("a", "1k", 2): (0.5, 0.5), ("b", "1k", 1): (0.25, 0.5)})


def test_runs_are_matched_by_size_data_and_seed():
    pairs = pair_values(RESULTS, KEY, "macro_auc")
    assert list(pairs.index) == [("a", "1k", 1), ("a", "1k", 2), ("b", "1k", 1)]
    assert pairs.to_numpy().tolist() == [[0.75, 0.5], [0.5, 0.5], [0.25, 0.5]]
    # Without its causal run a bidirectional one has no pair.
    assert len(pair_values(replace(RESULTS, runs=RESULTS.runs[:-1]), KEY, "macro_auc")) == 2


def test_cells_come_by_amount_of_data():
    runs = results({("a", "1k", 1): (0.5, 0.5), ("a", "2k", 1): (0.5, 0.5), ("b", "1k", 1): (0.5, 0.5)})
    cells = [(data, size) for data, size, _ in by_size_and_data(pair_values(runs, KEY, "macro_auc"))]
    assert cells == [("1k", "a"), ("1k", "b"), ("2k", "a")]


def test_wins_ties_and_the_mean_by_hand():
    of_pairs = contrast(gains(pair_values(RESULTS, KEY, "macro_auc")))
    # +0.25, 0 and -0.25.
    assert (of_pairs.wins, of_pairs.ties, of_pairs.pairs, of_pairs.mean.number) == (1, 1, 3, 0)
    assert of_pairs.mean.low == pytest.approx(-0.25)
    assert of_pairs.mean.high == pytest.approx(0.25)


def test_undefined_values_are_left_out():
    of_pairs = contrast(np.array([0.5, np.nan, 0.25]))
    assert (of_pairs.pairs, of_pairs.wins, of_pairs.mean.number) == (2, 2, 0.375)
    none = contrast(np.array([np.nan]))
    assert (none.pairs, none.mean.exists, none.mean.reason) == (0, False, "no pair has a value")
    assert mean([math.nan, 1.0, 0.0]).number == 0.5
    assert not mean([math.nan]).exists
    assert math.isnan(contrast([1.0]).mean.low)


@pytest.mark.parametrize(
    ("metric", "points"), [("accuracy", 2.02), ("macro_f1", 0.90), ("macro_auc", 1.06), ("late_auc", 6.20)]
)
def test_the_papers_rows_give_the_papers_pairs(metric, points):
    paper = read_results(asset("reference", "full-grid-results.json"))
    of_pairs = contrast(gains(pair_values(paper, ("PRM800K", "offline"), metric)))
    assert (of_pairs.pairs, of_pairs.ties) == (27, 0)
    assert of_pairs.wins == 22
    assert round(100 * of_pairs.mean.number, 2) == points
