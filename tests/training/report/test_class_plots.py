import pytest

from stepsight.core.judgment import Mode
from stepsight.training.evaluate.diagnostics import by_class
from stepsight.training.report.plots import (
    class_plot,
    class_roc_plot,
    confusion_plot,
    share_plot,
    styles,
    sweep_plot,
)
from stepsight.training.report.results import ordered, three_way_rows
from tests.training.judged import fill, measure, row_of

NO_NEU = (["pos", "neg", "pos"], ["pos", "pos", "pos"], ["pos", "neg", "pos"], ["pos", "pos", "pos"])


@pytest.fixture
def found(sqlite_store):
    return measure(sqlite_store, fill(sqlite_store))


@pytest.fixture
def row(found):
    return row_of(found, Mode.OFFLINE)


@pytest.fixture
def without_neu(sqlite_store):
    return row_of(measure(sqlite_store, fill(sqlite_store, NO_NEU)), Mode.OFFLINE)


def test_shares_of_gold_and_predictions(found, row):
    rows = [one for one in three_way_rows(found) if one.mode == Mode.OFFLINE]
    plot = share_plot(rows, styles(ordered(found.rows)), Mode.OFFLINE)
    gold, predicted = plot.figure.data
    assert (gold.name, predicted.name) == ("gold", "one_mind")
    assert list(gold.y) == pytest.approx([2 / 12, 2 / 12, 8 / 12], abs=1e-4)
    assert list(predicted.y) == pytest.approx([1 / 12, 2 / 12, 9 / 12], abs=1e-4)
    assert plot.notes == ()


def test_confusion(row):
    (cells,) = confusion_plot(row).figure.data
    assert [list(line) for line in cells.text] == [["1", "0", "1"], ["0", "1", "1"], ["0", "1", "7"]]
    assert list(cells.z[2]) == pytest.approx([0, 1 / 8, 7 / 8])
    assert list(cells.y) == ["neg", "neu", "pos"]


def test_roc_of_each_class(row):
    names = [trace.name for trace in class_roc_plot(row).figure.data]
    assert [name.split(",")[0] for name in names] == ["neg", "neu", "pos"]
    assert names[1] == "neu, AUC 0.925"


def test_sweep(row):
    plot = sweep_plot(row)
    told = {trace.name: trace for trace in plot.figure.data}
    assert list(told) == ["precision", "recall", "F1", "F1 by argmax, 0.500"]
    assert told["F1"].y[15] == pytest.approx(2 / 3, abs=1e-4)
    # Nothing is predicted beyond the highest probability: no precision, and recall 0.
    assert (told["precision"].y[90], told["recall"].y[90]) == (None, 0)


def test_classes(found, row):
    look = styles(ordered(found.rows))
    plot = class_plot({"one_mind": by_class(row.subject, found.weights)}, look, "f1", "F1", Mode.OFFLINE)
    (bars,) = plot.figure.data
    assert list(bars.y) == pytest.approx([2 / 3, 1 / 2, 14 / 17], abs=1e-4)
    assert all(bars.error_y.array)


def test_a_class_that_the_gold_lacks_is_told_in_words(without_neu):
    told = "The gold labels no step neu, so that there is nothing to draw for it."
    assert (sweep_plot(without_neu).figure, sweep_plot(without_neu).notes) == (None, (told,))
    assert class_roc_plot(without_neu).notes == (told,)
    assert len(class_roc_plot(without_neu).figure.data) == 2
    assert confusion_plot(without_neu).notes == ("The gold labels no step neu: its row is empty.",)
