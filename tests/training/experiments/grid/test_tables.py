import pytest

from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.published import reference_tables
from stepsight.core.paths import asset
from stepsight.training.experiments.grid.design import RunSettings
from stepsight.training.experiments.grid.results import GridResults, RunResult, read_results
from stepsight.training.experiments.grid.tables import (
    cell_table,
    class_table,
    mean_table,
    paired_table,
    run_table,
    third_table,
)
from stepsight.training.report.tables import show
from tests.training.experiments.grid.toy import KEY, figures, results

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
    for row, source, run in zip(rows, printed("tab:full-grid-results").rows, PAPER.runs, strict=True):
        assert row[3] == source.name == names[run.settings.mask]
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
    found = GridResults("less", FOUND.runs, 54, baselines={"baseline:constant": {KEY: figures(0.5)}})
    table = run_table(found, KEY)
    assert table.notes == ("6 of 54 runs are done.",)
    assert shown(table)[-1] == ["baseline:constant", "", "", "", "40.0", "30.0", "50.0", "50.0"]
    # A rule before the second size, and before the baselines.
    assert table.rules == (4, 6)


THIRD = {"steps": 30.0, "accuracy": 0.5, "neg": 10.0, "neu": 5.0, "pos": 15.0}


def detailed(mask, late):
    thirds = {"early": THIRD | {"macro_auc": float("nan")}, "middle": THIRD | {"macro_auc": 0.5}}
    classes = {label: {"auc": late, "f1": 0.25} for label in ("neg", "neu", "pos")}
    more = {"thirds": thirds | {"late": THIRD | {"macro_auc": late}}, "classes": classes}
    return RunResult(RunSettings("a", "1k", mask, 1), {KEY: figures(0.5, **more)})


def test_thirds_and_classes_by_hand():
    found = GridResults("details", [detailed("bidirectional", 0.75), detailed("causal", 0.5)], 2)
    thirds = shown(third_table(found, KEY))
    assert thirds[0] == ["early", "–", "–", "–", "30", "10", "5", "15"]
    assert thirds[2] == ["late", "75.0", "50.0", "+25.0", "30", "10", "5", "15"]
    assert shown(class_table(found, KEY))[1] == ["neu", "75.0", "50.0", "+25.0", "25.0", "25.0", "0.0"]


@pytest.mark.parametrize("table", [third_table, class_table])
def test_figures_that_the_paper_does_not_print_have_no_table(table):
    assert table(PAPER, OFFLINE) is None


def test_a_mean_without_a_value_is_a_dash():
    found = results({("a", "1k", 1): (float("nan"), 0.5)})
    row = mean_table(found, KEY).rows[0]
    assert isinstance(row[8], Value)
    assert not row[8].exists
    assert not row[10].exists
