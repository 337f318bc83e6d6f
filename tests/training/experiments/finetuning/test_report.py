from datetime import date

import pytest

from stepsight.core.paths import asset
from stepsight.training.experiments.finetuning.math500 import Result
from stepsight.training.experiments.finetuning.report import (
    group_runs,
    make_filtering_report,
    read_printed,
    result_tables,
    subset_plots,
)
from stepsight.training.report.tables import show, to_csv, to_markdown
from tests.messages import refused

PAPER = asset("reference", "filter-ablation.json")
RECORDED = asset("reports", "filter-mini")


def result(correct, subset="red", seed=42, scorer="mini-bidir", tokens=10, **others):
    return Result(
        model=f"{subset}-{seed}", correct=correct, tokens=[tokens] * len(correct), subset=subset, scorer=scorer,
        rows=100, seed=seed, **others,
    )  # fmt: skip


# Ten problems. Red solves 4 and 2 of them, random 1 and 1: 30 % against 10 %.
RESULTS = [
    result([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], "red", 42, tokens=20),
    result([1, 1, 0, 0, 0, 0, 0, 0, 0, 0], "red", 43, tokens=21),
    result([1, 0, 0, 0, 0, 0, 0, 0, 0, 0], "random", 42, tokens=30),
    result([1, 0, 0, 0, 0, 0, 0, 0, 0, 0], "random", 43, tokens=30),
]


def text(table):
    return [
        [str(show(cell, column.kind)) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]


def test_the_recorded_runs_give_the_recorded_tables():
    for table in result_tables_of(RECORDED / "runs"):
        assert to_markdown(table) == (RECORDED / "tables" / f"{table.name}.md").read_text()


def result_tables_of(folder):
    return make_filtering_report([folder]).tables


def test_fed_the_papers_figures_it_prints_the_papers_table_to_the_digit():
    # Scorer, filter, N, Acc. and Tok. of the table "Data-filtering ablation" (section 6.2), of three seeds; the
    # differences are those that the text there has: +3.4 for red-only, +0.1 for val-only.
    (table,) = result_tables_of(PAPER)
    assert text(table) == [
        ["LLaDA-PRM", "Val + Red", "5,222", "3", "20.9", "280", "+1.8"],
        ["LLaDA-PRM", "Val-only", "5,222", "3", "19.2", "276", "+0.1"],
        ["LLaDA-PRM", "Red-only", "5,222", "3", "22.5", "249", "+3.4"],
        ["ReasonEval-WizardMath-V1.1", "Val + Red", "4,437", "3", "19.2", "276", "-1.0"],
        ["ReasonEval-WizardMath-V1.1", "Val-only", "4,437", "3", "19.3", "267", "-0.9"],
        ["ReasonEval-WizardMath-V1.1", "Red-only", "4,437", "3", "19.3", "250", "-0.9"],
        ["LLaDA-PRM", "Random", "5,222", "3", "19.1", "271", "–"],
        ["ReasonEval-WizardMath-V1.1", "Random", "4,437", "3", "20.2", "272", "–"],
    ]
    # Lines before the second evaluator and before the random subsets.
    assert table.rules == (3, 6)


def test_subsets_are_means_over_the_seeds_against_the_random_one():
    table, _ = result_tables(RESULTS[::-1])
    red, random = table.rows
    assert red[:4] == ("mini-bidir", "Red-only", 100, 2)
    assert (red[4].number, red[5]) == (pytest.approx(0.3), 20)
    assert red[6].number == pytest.approx(0.2)
    # One seed alone is ahead by 10 points, the other by 30, of ten problems.
    assert -0.1 <= red[6].low <= 0.05 < 0.4 <= red[6].high <= 0.7
    assert random[:2] == ("mini-bidir", "Random")
    assert (random[4].number, random[6].exists) == (pytest.approx(0.1), False)
    assert table.rules == (1,)
    assert to_csv(table).startswith(
        '\ufeff"scorer","filter","rows","seeds","accuracy","tokens","difference","difference_low","difference_high"'
    )


def test_equal_runs_have_no_interval():
    table, _ = result_tables([result([0] * 10, "val", 1), result([0] * 10, "random", 1)])
    assert text(table)[0] == ["mini-bidir", "Val-only", "100", "1", "0.0", "10", "0.0"]


def test_evaluators_have_their_own_random_subsets_and_a_model_that_was_not_tuned_has_none():
    runs = [*RESULTS, result([1] * 10, "red", 42, scorer="other"), result([1] * 10, "", None, scorer="")]
    table, each = result_tables(runs)
    assert [row[:2] for row in table.rows] == [
        ("", "-None"), ("mini-bidir", "Red-only"), ("other", "Red-only"), ("mini-bidir", "Random")
    ]  # fmt: skip
    assert [row[6].exists for row in table.rows] == [False, True, False, False]
    assert "Not every subset has as many seeds." in table.notes
    assert [row[:4] for row in each.rows][:2] == [("", "-None", 100, "–"), ("mini-bidir", "Red-only", 100, "42")]


def test_each_run_has_a_row_with_its_interval():
    problems = {"name": "p", "count": 4, "constant": {"answer": "2", "right": 1}}
    solved = result([1, 0, 0, 0], problems=problems, given_up=2, cut=1)
    subsets, table = result_tables([solved])
    accuracy = table.rows[0][4]
    # Wilson with z = 1.96, n = 4, p = 1/4: middle (0.25 + 3.8415 / 8) / (1 + 3.8415 / 4) = 0.3725,
    # half its width 1.96 sqrt(0.25 * 0.75 / 4 + 3.8415 / 64) / (1 + 3.8415 / 4) = 0.3269.
    assert (accuracy.number, accuracy.low, accuracy.high) == pytest.approx((0.25, 0.0456, 0.6994), abs=1e-4)
    assert table.rows[0][5:] == (10, 1)
    assert table.notes[-1] == "The grader gave up on 2 answers, which count as wrong."
    for notes in (subsets.notes, table.notes):
        assert "Always answering 2 would be right 1 times, 25.0 %." in notes


def test_every_run_is_a_point():
    accuracy, length = subset_plots([*RESULTS, result([1] * 10, "red", scorer="other"), result([1] * 10, "mine")])
    ours, other = accuracy.figure.data
    assert (ours.name, list(ours.x), list(ours.y)) == (
        "mini-bidir", ["Red-only"] * 2 + ["Random"] * 2, [40, 20, 10, 10]
    )  # fmt: skip
    assert (other.name, list(other.x), list(other.y)) == ("other", ["Red-only"], [100])
    assert list(length.figure.data[0].y) == [20, 21, 30, 30]
    assert accuracy.notes == ("Runs on no such subset are not drawn.",)
    assert [len(curve.y) for curve in subset_plots(read_printed(PAPER))[0].figure.data] == [4, 4]
    assert subset_plots([result([1], "mine")])[0].figure is None


def test_a_report_holds_our_tables_and_the_papers(tmp_path):
    report = make_filtering_report([RECORDED / "runs", PAPER], date(2026, 11, 21))
    assert [table.name for table in report.tables] == ["subsets", "runs", "paper-subsets"]
    assert "21 November 2026" in report.page
    (tmp_path / "other.json").write_text('{"label": "tab:filter_ablation", "rows": [{"name": "Best"}]}')
    for paths in ([PAPER, PAPER], [tmp_path / "none"], [tmp_path / "other.json"]):
        with refused():
            make_filtering_report(paths)
    assert [group.gain.exists for group in group_runs(RESULTS)] == [True, False]
