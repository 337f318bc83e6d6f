from dataclasses import replace

import pytest

from stepsight.core.paths import asset
from stepsight.training.experiments.finetuning.results import read_printed
from stepsight.training.experiments.finetuning.tables import (
    model_table,
    printed_table,
    run_table,
    sentences,
    subset_table,
)
from stepsight.training.report.table_files import to_csv
from stepsight.training.report.tables import show
from tests.training.experiments.finetuning.test_results import result


def text(table):
    return [
        [str(show(cell, column.kind)) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]


def test_fed_the_papers_figures_it_prints_the_papers_table_to_the_digit():
    # Scorer, filter, N, Acc. and Tok. of the table "Data-filtering ablation" (section 6.2); the differences are
    # those that the text there tells: +3.4 for red-only, +0.1 for val-only.
    table = printed_table(read_printed(asset("reference", "filter-ablation.json")))
    assert text(table) == [
        ["LLaDA-PRM", "Val + Red", "5,222", "20.9", "280", "+1.8"],
        ["LLaDA-PRM", "Val-only", "5,222", "19.2", "276", "+0.1"],
        ["LLaDA-PRM", "Red-only", "5,222", "22.5", "249", "+3.4"],
        ["ReasonEval-WizardMath-V1.1", "Val + Red", "4,437", "19.2", "276", "-1.0"],
        ["ReasonEval-WizardMath-V1.1", "Val-only", "4,437", "19.3", "267", "-0.9"],
        ["ReasonEval-WizardMath-V1.1", "Red-only", "4,437", "19.3", "250", "-0.9"],
        ["", "Random", "5,222", "19.1", "271", "–"],
        ["", "Random", "4,437", "20.2", "272", "–"],
    ]
    # Lines before the second evaluator and before the random subsets.
    assert table.rules == (3, 6)


# Ten problems. Red solves 4 and 2 of them, random 1 and 1: 30 % against 10 %.
RESULTS = [
    result([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], "red", 42, tokens=20),
    result([1, 1, 0, 0, 0, 0, 0, 0, 0, 0], "red", 43, tokens=21),
    result([1, 0, 0, 0, 0, 0, 0, 0, 0, 0], "random", 42, tokens=30),
    result([1, 0, 0, 0, 0, 0, 0, 0, 0, 0], "random", 43, tokens=30),
]


def test_subsets_are_means_over_the_seeds_against_the_random_one():
    table = subset_table(RESULTS[::-1])
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
    assert list(sentences(RESULTS)) == [
        "mini-bidir, Red-only: +20.0 points against the random subset, not clearly different from zero."
    ]


def test_equal_runs_have_no_interval():
    table = subset_table([result([0] * 10, "val", 1), result([0] * 10, "random", 1)])
    assert text(table)[0] == ["mini-bidir", "Val-only", "100", "1", "0.0", "10", "0.0"]
    assert list(sentences([result([0] * 10, "val", 1), result([0] * 10, "random", 1)])) == [
        "mini-bidir, Val-only: 0.0 points against the random subset, not clearly different from zero."
    ]


def test_a_clear_difference_is_said():
    found = [result([1] * 90 + [0] * 10, "val", 1), result([0] * 100, "random", 1)]
    assert list(sentences(found)) == [
        "mini-bidir, Val-only: +90.0 points against the random subset, clearly different from zero."
    ]


def test_evaluators_have_their_own_random_subsets_and_others_have_none():
    found = [*RESULTS, result([1] * 10, "red", 42, scorer="other"), result([1] * 10, "", None, scorer="")]
    table = subset_table(found)
    assert [row[:2] for row in table.rows] == [
        ("", "-None"), ("mini-bidir", "Red-only"), ("other", "Red-only"), ("mini-bidir", "Random")
    ]  # fmt: skip
    assert [row[6].exists for row in table.rows] == [False, True, False, False]
    assert "Not every subset has as many seeds." in table.notes


def test_a_line_parts_the_random_runs_from_a_model_without_an_evaluator():
    found = [result([1] * 10, "", None, scorer=""), *RESULTS[2:]]
    assert subset_table(found).rules == (1,)


def test_each_run_has_a_row():
    table = run_table(RESULTS)
    assert [row[1:4] for row in table.rows] == [
        ("Red-only", 100, "42"), ("Red-only", 100, "43"), ("Random", 100, "42"), ("Random", 100, "43")
    ]  # fmt: skip
    assert [row[4].number for row in table.rows] == [0.4, 0.2, 0.1, 0.1]


def test_the_accuracy_of_a_constant_answer_is_noted():
    problems = {"name": "p", "count": 10, "sha256": "0", "constant": {"answer": "2", "right": 1}}
    found = [replace(one, problems=problems) for one in RESULTS]
    said = "Always answering 2 would be right 1 times, 10.0 %."
    for table in (subset_table(found), run_table(found), model_table(found)):
        assert said in table.notes


def test_models_have_a_mean_below_them():
    table = model_table(RESULTS[:2])
    assert [column.title for column in table.columns] == ["Model", "Subset", "Seed", "Pass@1", "Tokens", "Cut"]
    assert text(table)[-1] == ["mean", "", "", "30.0", "20", "0"]
    assert table.rules == (2,)
    assert len(model_table(RESULTS[:1]).rows) == 1
