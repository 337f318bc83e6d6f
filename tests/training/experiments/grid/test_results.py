import json
import math
from dataclasses import replace

import numpy as np
import pytest

from stepsight.core.files.whole_files import write_json
from stepsight.core.metrics.table import build_table
from stepsight.core.paths import asset
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.training.experiments.grid.design import RunSettings
from stepsight.training.experiments.grid.results import (
    by_size_and_data,
    contrast,
    figures_of,
    gains,
    mean,
    pair_values,
    read_results,
)
from tests.cases import each
from tests.messages import refused
from tests.training.experiments.grid.toy import KEY, results

# Six steps of one trace, two of each third; the probabilities of neg, neu, pos.
STEPS = ["a", "b", "c", "d", "e", "f"]
PROBS = [[0.1, 0.2, 0.7], [0.1, 0.6, 0.3], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.6, 0.1, 0.3], [0.7, 0.1, 0.2]]
RESULTS = results({("a", "1k", 1): (0.75, 0.5), ("b", "1k", 1): (None, 0.5)}, about="made by hand")


def measured(*labels):
    trace = Trace.of("q", STEPS, labels, "1")
    return figures_of(build_table([(trace, StepScores(np.array(PROBS, np.float32)))]))


def test_figures_by_hand():
    found = measured("pos", "pos", "neu", "pos", "neg", "pos")
    # Decided: pos, neu, neu, pos, neg, neg. Right are the 1st, 3rd, 4th and 5th of six.
    assert found["accuracy"] == pytest.approx(4 / 6)
    # F1 of neg: 2 * 1 / (1 + 2); of neu: 2 * 1 / (1 + 2); of pos: 2 * 2 / (4 + 2).
    assert found["macro_f1"] == pytest.approx((2 / 3 + 2 / 3 + 2 / 3) / 3)
    # neg .6 is above .1 .1 .2 .1 and below .7: 4 of 5. neu .5 is above .2 .1 .1 .1 and below .6: 4 of 5.
    # pos .7 .3 .8 .2 against .3 .3: .7 and .8 win 2 each, .3 ties twice, .2 loses both: 5 of 8.
    assert found["macro_auc"] == pytest.approx((4 / 5 + 4 / 5 + 5 / 8) / 3)
    assert (found["traces"], found["steps"]) == (1, 6)
    # The first third has pos only; the last a neg at .6 against .7, and a pos at .2 against .3: both AUCs are 0. In
    # the middle, neu .5 is above .1 and pos .8 above .3.
    assert [found[f"{third}_auc"] for third in ("early", "middle", "late")] == [None, 1, 0]
    assert [found[f"late_{name}"] for name in ("accuracy", "steps", "neg", "neu", "pos")] == [0.5, 2, 1, 0, 1]
    assert [found["pos_auc"], found["pos_f1"], found["neg_auc"]] == pytest.approx([5 / 8, 2 / 3, 4 / 5])


def test_a_class_that_the_gold_lacks_has_no_f1_although_it_is_predicted():
    # The third step, the only neu one, has no label here, and neu is predicted for the second.
    found = measured("pos", "pos", None, "pos", "neg", "pos")
    assert (found["neu_auc"], found["neu_f1"]) == (None, None)
    # Decided of five: pos, neu, pos, neg, neg. F1 of neg: 2 * 1 / (1 + 2); of pos: 2 * 2 / (4 + 2).
    assert found["macro_f1"] == pytest.approx((2 / 3 + 2 / 3) / 2)


def test_results_are_read_as_they_were_written(tmp_path):
    write_json(tmp_path / "results.json", RESULTS.as_json())
    assert read_results(tmp_path) == read_results(tmp_path / "results.json") == RESULTS
    assert RESULTS.keys == [KEY]


def test_the_rows_of_the_paper():
    found = read_results(asset("reference", "full-grid-results.json"))
    assert (len(found.runs), found.planned, found.rounded) == (54, 54, True)
    settings, figures = found.figures(("PRM800K", "offline"))[0]
    assert settings == RunSettings("1B", "1k", "bidirectional", 13)
    # 48.1, 41.4, 61.8 and 31.8 percent.
    assert figures == {"accuracy": 0.481, "macro_f1": 0.414, "macro_auc": 0.618, "late_auc": 0.318}


@each(
    "values",
    [
        None,
        {"format": "other"},
        {"format": "stepsight-grid"},
        {"label": "tab:full-grid-results"},
        RESULTS.as_json() | {"runs": [{"run": {}}]},
        RESULTS.as_json() | {"runs": [{"run": vars(RESULTS.runs[0].run), "about": {}, "tests": {"a": {"b": {}}}}]},
        RESULTS.as_json() | {"runs": []},
    ],
)
def test_a_file_that_is_not_a_result_is_refused(tmp_path, values):
    (tmp_path / "results.json").unlink(missing_ok=True)
    if values is not None:
        (tmp_path / "results.json").write_text(json.dumps(values))
    with refused():
        read_results(tmp_path)


PAIRED = results({("a", "1k", 1): (0.75, 0.5), ("a", "1k", 2): (0.5, 0.5), ("b", "1k", 1): (0.25, 0.5)})


def test_runs_are_matched_by_size_data_and_seed():
    pairs = pair_values(PAIRED, KEY, "macro_auc")
    assert list(pairs.index) == [("a", "1k", 1), ("a", "1k", 2), ("b", "1k", 1)]
    assert pairs.to_numpy().tolist() == [[0.75, 0.5], [0.5, 0.5], [0.25, 0.5]]
    # Without its causal run a bidirectional one has no pair.
    assert len(pair_values(replace(PAIRED, runs=PAIRED.runs[:-1]), KEY, "macro_auc")) == 2


def test_cells_come_by_amount_of_data():
    runs = results({("a", "1k", 1): (0.5, 0.5), ("a", "2k", 1): (0.5, 0.5), ("b", "1k", 1): (0.5, 0.5)})
    cells = [(data, size) for data, size, _ in by_size_and_data(pair_values(runs, KEY, "macro_auc"))]
    assert cells == [("1k", "a"), ("1k", "b"), ("2k", "a")]


def test_wins_ties_and_the_mean_by_hand():
    of_pairs = contrast(gains(pair_values(PAIRED, KEY, "macro_auc")))
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
