from dataclasses import replace

import numpy as np
import pytest

from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.reasoneval import Errors, Level
from stepsight.core.metrics.shortcuts import BASELINES
from stepsight.core.metrics.table import Third
from stepsight.training.evaluate.diagnostics import by_class, by_retroactive_change
from stepsight.training.report.plots import (
    change_plot,
    class_plot,
    class_roc_plot,
    confusion_plot,
    make_figure,
    make_line,
    make_plot,
    position_plot,
    reliability_plot,
    roc_plot,
    share_plot,
    styles,
    sweep_plot,
)
from stepsight.training.report.results import ordered, scored_rows, three_way_rows
from tests.training.judged import fill, measure, row_of


@pytest.fixture
def rows(evaluation):
    return scored_rows(evaluation, Mode.OFFLINE)


@pytest.fixture
def look(evaluation):
    return styles(ordered(evaluation.rows))


def named(plot):
    return {trace.name.split(",")[0]: trace for trace in plot.figure.data}


def test_roc_of_validity(rows, look):
    plot = roc_plot(rows, look, Errors.INVALID, Level.STEP, Mode.OFFLINE)
    assert plot.caption == "ROC of validity, step level, offline"
    curve = named(plot)["one_mind"]
    # Of nine valid steps seven have 0.9 and so has one of the two wrong ones, two 0.8; the other wrong one has 0.3.
    points = list(zip(curve.x, curve.y, strict=True))
    assert (0.5, round(7 / 9, 4)) in points
    assert (0.5, 1.0) in points
    # Half of 7 of the 18 pairs, none of 2, all of the other 9.
    assert curve.name == f"one_mind, AUC {(3.5 + 9) / 18:.3f}"
    assert named(plot).keys() == {"one_mind", *BASELINES}
    assert plot.notes == ("words: the evaluator gives no scores to rank by",)


def test_a_gold_of_one_class_is_told_in_words(rows, look):
    right = [
        replace(row, subject=replace(row.subject, table=row.subject.table.where(row.subject.table.valid == 1)))
        for row in rows
    ]
    plot = roc_plot(right, look, Errors.INVALID, Level.STEP, Mode.OFFLINE)
    assert plot.figure is None
    assert len(plot.notes) == 1
    assert plot.notes[0].endswith("baseline:last-step: the gold has one class only")


def test_reliability(rows, look):
    plot = reliability_plot(rows, look, Mode.OFFLINE)
    line = named(plot)["one_mind"]
    # Bins of 0.3 (one, wrong), 0.8 (two, valid) and 0.9 (eight, seven of them valid).
    assert list(line.x) == pytest.approx([0.3, 0.8, 0.9])
    assert list(line.y) == pytest.approx([0, 1, 7 / 8])
    assert list(line.customdata) == [1, 2, 8]
    assert line.visible is True
    assert named(plot)["baseline:length"].visible == "legendonly"
    assert plot.notes == ("words: the evaluator gives no scores to rank by",)


def test_position_with_intervals_and_gaps(look):
    values = {Third.EARLY: Value.none("why"), Third.MIDDLE: Value(0.5).within(0.25, 0.625), Third.LATE: Value(1)}
    plot = position_plot({"one_mind": values}, look, "caption", "Step-AUC")
    (line,) = plot.figure.data
    assert list(line.y) == [None, 0.5, 1]
    assert (list(line.error_y.array), list(line.error_y.arrayminus)) == ([None, 0.125, None], [None, 0.25, None])
    assert plot.notes == ("one_mind: early, why",)
    points = position_plot({"one_mind": values}, look, "caption", "Step-AUC", difference=True)
    assert points.figure.data[0].y[1] == 50
    nothing = position_plot({"one_mind": dict.fromkeys(Third, Value.none("why"))}, look, "caption", "Step-AUC")
    assert (nothing.figure, nothing.notes) == (None, ("one_mind: why",))


def test_change(evaluation, look):
    online, offline = row_of(evaluation, Mode.ONLINE), row_of(evaluation, Mode.OFFLINE)
    plot = change_plot({"one_mind": by_retroactive_change(online, offline)}, look, Errors.INVALID)
    (bars,) = plot.figure.data
    assert list(bars.x) == ["fell", "stayed", "rose"]
    assert list(bars.y) == pytest.approx([1, 1 / 9, 0], abs=1e-4)
    assert list(bars.customdata) == [1, 9, 1]


def test_evaluators_keep_their_look_and_baselines_are_grey(evaluation):
    row = row_of(evaluation, Mode.OFFLINE)
    many = styles([replace(row, evaluator=f"e{i}") for i in range(20)] + ordered(evaluation.rows))
    looks = {tuple(style.items()) for name, style in many.items() if name.startswith("e")}
    assert len(looks) == 20
    assert len({many[name]["color"] for name in many if name.startswith("baseline:")}) == 1
    assert len({many[name]["dash"] for name in many if name.startswith("baseline:")}) == 4


def test_long_curves_are_thinned_and_keep_their_ends():
    x = np.linspace(0, 1, 5000)
    line = make_line(x, x, "n", {"color": "#000", "dash": "solid"})
    assert len(line.x) <= 400
    assert (line.x[0], line.x[-1]) == (0, 1)


def test_a_figure_without_curves_is_none():
    assert make_plot("caption", make_figure("x", "y"), ["a: b"]).figure is None


NO_NEU = (["pos", "neg", "pos"], ["pos", "pos", "pos"], ["pos", "neg", "pos"], ["pos", "pos", "pos"])


@pytest.fixture
def row(evaluation):
    return row_of(evaluation, Mode.OFFLINE)


@pytest.fixture
def without_neu(sqlite_store):
    return row_of(measure(sqlite_store, fill(sqlite_store, NO_NEU)), Mode.OFFLINE)


def test_shares_of_gold_and_predictions(evaluation, row):
    rows = [one for one in three_way_rows(evaluation) if one.mode == Mode.OFFLINE]
    plot = share_plot(rows, styles(ordered(evaluation.rows)), Mode.OFFLINE)
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


def test_classes(evaluation, row):
    look = styles(ordered(evaluation.rows))
    plot = class_plot({"one_mind": by_class(row.subject.table, evaluation.weights)}, look, "f1", "F1", Mode.OFFLINE)
    (bars,) = plot.figure.data
    assert list(bars.y) == pytest.approx([2 / 3, 1 / 2, 14 / 17], abs=1e-4)
    assert all(bars.error_y.array)


def test_a_class_that_the_gold_lacks_is_told_in_words(without_neu):
    told = "The gold labels no step neu, so that there is nothing to draw for it."
    assert (sweep_plot(without_neu).figure, sweep_plot(without_neu).notes) == (None, (told,))
    assert class_roc_plot(without_neu).notes == (told,)
    assert len(class_roc_plot(without_neu).figure.data) == 2
    assert confusion_plot(without_neu).notes == ("The gold labels no step neu: its row is empty.",)
