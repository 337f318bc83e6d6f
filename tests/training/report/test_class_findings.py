import pytest

from stepsight.core.judgment import Mode
from stepsight.training.report.results import classes, confusions, decisions, three_way_rows
from tests.training.judged import fill, measure


@pytest.fixture
def found(sqlite_store):
    return measure(sqlite_store, fill(sqlite_store))


def test_only_three_classes_are_told_of(found):
    assert [(row.evaluator, row.mode) for row in three_way_rows(found)] == [
        ("one_mind", Mode.OFFLINE),
        ("one_mind", Mode.ONLINE),
    ]


def test_confusion(found):
    table = confusions(found)
    assert [row[2:] for row in table.rows if row[1] == "offline"] == [
        ("neg", 1, 0, 1),
        ("neu", 0, 1, 1),
        ("pos", 0, 1, 7),
    ]
    # Online the wrong second step looks right, and the redundant one wrong.
    assert [row[2:] for row in table.rows if row[1] == "online"] == [
        ("neg", 0, 0, 2),
        ("neu", 1, 1, 0),
        ("pos", 0, 1, 7),
    ]


def test_class_by_class(found):
    table = classes(found)
    assert [column.title for column in table.columns[2:]] == [
        "neg AUC", "neu AUC", "pos AUC", "neg F1", "neu F1", "pos F1",
    ]  # fmt: skip
    row = table.rows[0]
    assert [row[i].number for i in (3, 5, 6, 7)] == pytest.approx([18.5 / 20, 2 / 3, 1 / 2, 14 / 17])
    assert table.notes == ()


def test_decision_rules(found):
    table = decisions(found)
    told = {(row[1], row[2]): [value.number for value in row[3:]] for row in table.rows}
    assert told["offline", "argmax"] == pytest.approx([2 / 12, 1 / 2, 1 / 2, 1 / 2])
    assert told["offline", "p ≥ 0.15"] == pytest.approx([4 / 12, 1 / 2, 1, 2 / 3])
    assert len(told) == len(table.rows) == 12
    assert any("to be chosen on other data" in note for note in table.notes)


def test_a_class_that_the_gold_lacks_is_told(sqlite_store):
    golds = (["pos", "neg", "pos"], ["pos", "pos", "pos"], ["pos", "neg", "pos"], ["pos", "pos", "pos"])
    table = classes(measure(sqlite_store, fill(sqlite_store, golds)))
    assert "The gold labels no step neu." in table.notes
    assert not table.rows[0][3].exists
