import json
from dataclasses import replace

import pytest

from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.published import reference_tables
from stepsight.core.paths import asset
from stepsight.training.experiments.grid.results import read_results
from stepsight.training.experiments.grid.tables import (
    cell_table,
    class_table,
    mean_table,
    paired_table,
    run_table,
    scaling_plots,
    scatter_plot,
    survival_plots,
    survival_table,
    third_plot,
    third_table,
)
from stepsight.training.report.tables import show
from tests.training.experiments.grid.toy import KEY, figures, one_run, results

PAPER = read_results(asset("reference", "full-grid-results.json"))
OFFLINE = ("PRM800K", "offline")
FOUND = results({("a", "1k", 1): (0.75, 0.5), ("a", "1k", 2): (0.5, 0.5), ("b", "1k", 1): (0.25, 0.5)})


def shown(table):
    return [
        [str(show(cell, column.kind)) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]


def printed(label):
    (table,) = (table for table in reference_tables() if table.label == label)
    return table


def test_the_papers_table_of_means_on_3000_traces_to_its_digit():
    rows = {(row[0], row[1]): row[2:] for row in shown(mean_table(PAPER, OFFLINE))}
    bidirectional, causal, difference = (row.values for row in printed("tab:main-3k-results").rows)
    for place, size in enumerate(("1B", "2B", "3B")):
        row = rows["3k", size]
        for metric in range(3):
            at = 3 * place + metric
            expected = [f"{bidirectional[at]:.1f}", f"{causal[at]:.1f}", f"{difference[at]:+.1f}"]
            assert row[3 * metric : 3 * metric + 3] == expected


def test_the_papers_pairs_with_its_own_figures_beside_them():
    table = paired_table(PAPER, OFFLINE)
    assert [(row[0], row[1]) for row in shown(table)] == [
        ("Accuracy", "22/27"), ("macro-F1", "22/27"), ("macro-AUC", "22/27"), ("Late-AUC", "22/27"),
    ]  # fmt: skip
    assert [row[3].split(" ")[0] for row in shown(table)] == ["+2.02", "+0.90", "+1.06", "+6.20"]
    assert (
        "22/27 and +2.03 in Accuracy, 22/27 and +0.90 in macro-F1, 22/27 and +1.05 in macro-AUC" in table.notes[1]
    )


def test_the_papers_rows_come_back_as_they_are_printed():
    names = {"bidirectional": "Bidir", "causal": "Causal"}
    rows = shown(run_table(PAPER, OFFLINE))
    for row, source, of_run in zip(rows, printed("tab:full-grid-results").rows, PAPER.runs, strict=True):
        assert row[3] == source.name == names[of_run.run.mask]
        assert row[4:] == [f"{number:.1f}" for number in source.values[3:]]


def test_means_by_hand():
    rows = shown(mean_table(FOUND, KEY))
    # macro-AUC of a: (0.75 + 0.5) / 2 = 0.625 against 0.5; accuracy is 0.1 less on both sides.
    assert rows[0][:5] == ["1k", "a", "52.5", "40.0", "+12.5"]
    assert rows[0][8:11] == ["62.5", "50.0", "+12.5"]
    assert rows[1][8:11] == ["25.0", "50.0", "-25.0"]


def test_cells_by_hand():
    rows = shown(cell_table(FOUND, KEY))
    # 0.75 and 0.5 lie 0.125 from their mean: the sample's deviation is sqrt(2 x 0.125^2 / 1) = 0.177.
    assert rows[0] == ["a", "1k", "62.5", "17.7", "50.0", "0.0", "+12.5"]
    assert rows[1] == ["b", "1k", "25.0", "–", "50.0", "–", "-25.0"]


def test_runs_say_how_many_are_missing_and_end_with_the_baselines():
    baselines = {"baseline:constant": {KEY[0]: {KEY[1]: figures(0.5)}}}
    table = run_table(replace(FOUND, planned=54, baselines=baselines), KEY)
    assert table.notes == ("6 of 54 runs are done.",)
    assert shown(table)[-1] == ["baseline:constant", "", "", "", "40.0", "30.0", "50.0", "50.0"]
    # A rule before the second size, and before the baselines.
    assert table.rules == (4, 6)


COUNTS = {"steps": 30, "neg": 10, "neu": 5, "pos": 15}


def detailed(mask, late):
    more = {f"{third}_{name}": count for third in ("early", "middle", "late") for name, count in COUNTS.items()}
    more |= {"early_auc": None, "middle_auc": 0.5}
    more |= {
        f"{label}_{name}": value for label in ("neg", "neu", "pos") for name, value in (("auc", late), ("f1", 0.25))
    }
    return one_run(("a", "1k", mask, 1), figures(0.5, late, **more))


DETAILS = replace(FOUND, planned=2, runs=(detailed("bidirectional", 0.75), detailed("causal", 0.5)))


def test_thirds_and_classes_by_hand():
    thirds = shown(third_table(DETAILS, KEY))
    assert thirds[0] == ["early", "–", "–", "–", "30", "10", "5", "15"]
    assert thirds[2] == ["late", "75.0", "50.0", "+25.0", "30", "10", "5", "15"]
    assert shown(class_table(DETAILS, KEY))[1] == ["neu", "75.0", "50.0", "+25.0", "25.0", "25.0", "0.0"]


@pytest.mark.parametrize("table", [third_table, class_table])
def test_figures_that_the_paper_does_not_print_have_no_table(table):
    assert table(PAPER, OFFLINE) is None


def test_a_mean_without_a_value_is_a_dash():
    found = results({("a", "1k", 1): (None, 0.5)})
    row = mean_table(found, KEY).rows[0]
    assert isinstance(row[8], Value)
    assert not row[8].exists
    assert not row[10].exists


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
    row = survival_table(results({**GAINS, ("a", "1k", 10): (None, 0.5)}, "first"), SECOND).rows[0]
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


DRAWN = results({("a", "1k", 1): (0.75, 0.5), ("a", "1k", 2): (0.5, 0.5), ("b", "2k", 1): (0.25, 0.5)})


def curves(plot):
    return {curve["name"]: curve for curve in json.loads(plot.data)["data"]}


def test_scaling_is_the_mean_over_all_else():
    by_size, by_data = scaling_plots(DRAWN, KEY, "macro_auc")
    assert (curves(by_size)["Bidir"]["x"], curves(by_size)["Bidir"]["y"]) == (["a", "b"], [0.625, 0.25])
    assert (curves(by_data)["Causal"]["x"], curves(by_data)["Causal"]["y"]) == (["1k", "2k"], [0.5, 0.5])


def test_every_pair_is_a_point():
    found = curves(scatter_plot(DRAWN, KEY))
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


def test_the_papers_rows_draw_what_they_can_and_say_the_rest():
    paper, key = read_results(asset("reference", "full-grid-results.json")), ("PRM800K", "offline")
    assert sum(len(curve["x"]) for curve in curves(scatter_plot(paper, key)).values()) == 27
    plot = third_plot(paper, key)
    assert plot.figure is None
    assert plot.notes == ("The results hold no such figures of single runs.",)
