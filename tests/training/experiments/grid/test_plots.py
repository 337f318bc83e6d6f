import json

import numpy as np

from stepsight.core.paths import asset
from stepsight.training.experiments.grid.plots import (
    cell_plot,
    class_plots,
    scaling_plots,
    scatter_plot,
    survival_plots,
    third_plot,
)
from stepsight.training.experiments.grid.results import read_results
from stepsight.training.experiments.grid.tables import survival_table
from tests.training.experiments.grid.test_tables import DETAILS, KEY
from tests.training.experiments.grid.toy import results

FOUND = results({("a", "1k", 1): (0.75, 0.5), ("a", "1k", 2): (0.5, 0.5), ("b", "2k", 1): (0.25, 0.5)})


def curves(plot):
    return {curve["name"]: curve for curve in json.loads(plot.data)["data"]}


def test_scaling_is_the_mean_over_all_else():
    by_size, by_data = scaling_plots(FOUND, KEY, "macro_auc")
    assert (curves(by_size)["Bidir"]["x"], curves(by_size)["Bidir"]["y"]) == (["a", "b"], [0.625, 0.25])
    assert (curves(by_data)["Causal"]["x"], curves(by_data)["Causal"]["y"]) == (["1k", "2k"], [0.5, 0.5])


def test_every_pair_is_a_point():
    found = curves(scatter_plot(FOUND, KEY))
    assert (found["a"]["x"], found["a"]["y"]) == ([0.5, 0.5], [0.75, 0.5])
    assert (found["b"]["x"], found["b"]["y"]) == ([0.5], [0.25])


def test_thirds_are_differences_in_points():
    (bars,) = curves(third_plot(DETAILS, KEY)).values()
    assert (bars["x"], bars["y"]) == (["early", "middle", "late"], [None, 0.0, 25.0])


def test_gains_of_two_forms_stand_side_by_side():
    other = results({("a", "1k", 1): (0.5, 0.5), ("a", "1k", 2): (0.625, 0.5)}, "cut")
    first = results({("a", "1k", 1): (0.75, 0.5), ("a", "1k", 2): (0.5, 0.5)}, "whole")
    auc, late = survival_plots(survival_table(first, other), ("whole", "cut"))
    found = curves(auc)
    assert (found["whole"]["y"], found["whole"]["x"]) == (["synthetic offline"], [12.5])
    assert (found["cut"]["x"], found["cut"]["error_x"]["array"]) == ([6.25], [6.25])
    assert late.caption == "The gain in Late-AUC: bidirectional minus causal"


def test_classes_and_cells():
    auc, f1 = class_plots(DETAILS, KEY)
    assert curves(auc)["Bidir"]["y"] == [0.75, 0.75, 0.75]
    assert curves(f1)["Causal"]["y"] == [0.25, 0.25, 0.25]
    found = curves(cell_plot(FOUND, KEY))["Bidir"]
    assert (found["x"], found["y"]) == (["a 1k", "b 2k"], [0.625, 0.25])
    assert found["error_y"]["array"] == [round(float(np.std([0.75, 0.5], ddof=1)), 4), None]


def test_the_papers_rows_draw_what_they_can_and_say_the_rest():
    paper, key = read_results(asset("reference", "full-grid-results.json")), ("PRM800K", "offline")
    assert sum(len(curve["x"]) for curve in curves(scatter_plot(paper, key)).values()) == 27
    for plot in (third_plot(paper, key), *class_plots(paper, key)):
        assert plot.figure is None
        assert plot.notes == ("The results hold no such figures of single runs.",)
