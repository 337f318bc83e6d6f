import json

from stepsight.core.paths import asset
from stepsight.training.experiments.finetuning.plots import printed_plots, subset_plots
from stepsight.training.experiments.finetuning.results import read_printed
from tests.training.experiments.finetuning.test_results import result


def curves(plot):
    return {curve["name"]: curve for curve in json.loads(plot.data)["data"]}


def test_every_run_is_a_point_and_several_have_a_mean():
    runs = [
        result([1, 0], seed=42, tokens=4),
        result([1, 1], seed=43, tokens=6),
        result([0, 0], "random", tokens=9),
        result([1, 0], "red", scorer="other"),
        result([1, 1], "mine"),
    ]
    accuracy, length = subset_plots(runs)
    found = curves(accuracy)
    assert list(found) == ["mini-bidir", "mini-bidir, mean", "other"]
    assert found["mini-bidir"]["y"] == [50, 100, 0]
    assert found["mini-bidir"]["text"] == ["seed 42", "seed 43", "seed 42"]
    # The third and the fourth subset, a little to the left of the other evaluator's.
    assert found["mini-bidir"]["x"] == [1.92, 1.92, 2.92]
    assert (found["mini-bidir, mean"]["x"], found["mini-bidir, mean"]["y"]) == ([1.92], [75])
    assert (found["other"]["x"], found["other"]["y"]) == ([2.08], [50])
    assert curves(length)["mini-bidir"]["y"] == [4, 6, 9]
    assert accuracy.notes == ("Runs on no such subset are not drawn.",)


def test_the_papers_means():
    accuracy, length = printed_plots(read_printed(asset("reference", "filter-ablation.json")))
    found = curves(accuracy)
    assert len(found) == 2
    assert all(len(curve["y"]) == 4 for curve in found.values())
    assert accuracy.notes == length.notes == ()


def test_without_runs_on_subsets_there_is_nothing_to_draw():
    accuracy, length = subset_plots([result([1], "mine")])
    assert accuracy.figure is None
    assert length.figure is None
