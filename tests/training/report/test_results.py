import csv
import io

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.figures import CALIBRATION, FIRST_ERRORS, PROTOCOL, Metric
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.table import Third
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import evaluators_of, register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.storage.traces.writer import TraceWriter
from stepsight.training.report.differences import changes, differences
from stepsight.training.report.results import (
    classes,
    confusions,
    decisions,
    evaluators_table,
    first_error_figures,
    has_pairs,
    measures,
    merged,
    outcomes,
    position_gains,
    position_values,
    positions,
    prm_score,
    published,
    results,
    slug,
    third_reasons,
)
from stepsight.training.report.tables import to_csv
from tests.storage.samples import add, evaluator, judge
from tests.training.judged import NEG, NEU, POS, fill, measure, measure_stored, row_of


def rows_of(table):
    return list(csv.DictReader(io.StringIO(to_csv(table).removeprefix("\ufeff"))))


@pytest.mark.parametrize("mode", [Mode.OFFLINE, Mode.ONLINE])
@pytest.mark.parametrize("errors", list(Errors))
def test_figures_are_those_of_the_evaluation(evaluation, mode, errors):
    told = {row["evaluator"]: row for row in rows_of(results(evaluation, mode, errors))}
    said = [row for row in evaluation.as_json()["rows"] if (row["mode"], row["errors"]) == (mode, errors)]
    assert told.keys() == {row["evaluator"] for row in said}
    assert len(said) >= 5
    for row in said:
        shown = told[row["evaluator"]]
        for name in PROTOCOL:
            assert (float(shown[name]) if shown[name] else None) == row[name], (row["evaluator"], name)
            ends = [float(shown[key]) if shown[key] else None for key in (f"{name}_low", f"{name}_high")]
            assert ends == row["intervals"][name]
        assert (int(shown["n_solutions"]), int(shown["n_steps"])) == (row["n_solutions"], row["n_steps"])
        if not row["evaluator"].startswith("baseline:"):
            assert float(shown["beats_baseline_by"]) == row["beats_baseline_by"]["value"]
            words = {True: "yes", False: "no", None: "too few labels"}
            assert shown["above_baselines"] == words[row["above_baselines"]]


def test_a_table_tells_what_is_missing_and_has_the_baselines_below(evaluation):
    table = results(evaluation, Mode.OFFLINE, Errors.INVALID)
    names = [row[0] for row in table.rows]
    assert names[:2] == ["one_mind", "words"]
    assert [name.startswith("baseline:") for name in names] == [False] * 2 + [True] * 4
    assert table.rules == (2,)
    assert "words: 3 of 4 traces judged" in table.notes
    assert "words: the evaluator gives no scores to rank by" in table.notes
    assert table.name == "three-way-invalid-offline"
    assert table.caption.startswith("three_way: invalid errors, offline, 4 traces")


def test_other_figures_keep_the_columns_that_have_a_value(evaluation):
    table = measures(evaluation, "first-errors", "caption", FIRST_ERRORS)
    assert [column.key for column in table.columns] == ["evaluator", "mode", *FIRST_ERRORS]
    told = {(row["evaluator"], row["mode"]): row for row in rows_of(table)}
    # Two traces have an error: offline the first one is evaluation, the other is not; online neither.
    assert float(told["one_mind", "offline"]["first_error_accuracy"]) == 0.5
    assert float(told["one_mind", "online"]["first_error_accuracy"]) == 0
    # An evaluator's modes stand together.
    assert [row[:2] for row in table.rows[:3]] == [
        ("one_mind", "offline"),
        ("one_mind", "online"),
        ("words", "offline"),
    ]
    assert measures(evaluation, "none", "caption", {"mystery": Metric("Mystery")}) is None


def test_first_errors_tell_of_how_many_traces_they_are(sqlite_store):
    dataset = fill(sqlite_store)
    (words,) = [one for one in evaluators_of(sqlite_store, dataset.id) if one.name == "words"]
    trace = next(iterate_traces(sqlite_store, dataset.id))
    # Of the first trace, whose second step is wrong, it says nothing.
    save_judgments(
        sqlite_store, words.id, [Judgment(trace, Mode.OFFLINE, StepScores(np.zeros((3, 3), np.float32)))]
    )
    evaluation = measure(sqlite_store, dataset)
    for table in (first_error_figures(evaluation), outcomes(evaluation)):
        traces = {row[:2]: row[-1] for row in table.rows}
        assert (traces["one_mind", "offline"], traces["words", "offline"]) == (4, 2)
        assert "words: 1 of 3 traces do not count: the evaluator says too little of them" in table.notes


def test_a_figure_that_nobody_has_is_left_out_with_its_reason(sqlite_store):
    right = [["pos", "neu", "pos"], ["pos", "pos", "neu"], ["neu", "pos", "pos"], ["pos", "pos", "pos"]]
    evaluation = measure(sqlite_store, fill(sqlite_store, right))
    assert measures(evaluation, "first-errors", "caption", FIRST_ERRORS) is None
    both = measures(evaluation, "both", "caption", {**CALIBRATION, **FIRST_ERRORS})
    assert [column.key for column in both.columns] == ["evaluator", "mode", *CALIBRATION]
    assert "First-error accuracy, ProcessBench F1: no trace has an error" in both.notes


def test_names_of_files():
    assert slug("three_way") == "three-way"
    assert slug("a/b: c.1") == "a-b-c.1"
    assert slug("../..") == "dataset"


def test_notes_of_the_same_kind_are_one():
    assert merged(["a: x", "b: x", "a: x", "Alone", "c: y"]) == ("a, b: x", "Alone", "c: y")


def test_printed_figures_never_look_measured(sqlite_store):
    """Of a benchmark's full size and kind, so that the paper's rows are of it."""
    dataset, name = _benchmark(sqlite_store)
    evaluation = measure(sqlite_store, dataset)
    table = results(evaluation, Mode.OFFLINE, Errors.INVALID)
    told = {row["evaluator"]: row for row in rows_of(table)}
    assert told[name]["source"] == "measured"
    assert told["LLaDA-PRM"]["source"] == "published"
    assert (float(told["LLaDA-PRM"]["sol_f1"]), told["LLaDA-PRM"]["sol_f1_low"]) == (0.93, "")
    assert {table.rows[place][0] for place in table.faint} == {row["evaluator"] for row in told.values()
                                                              if row["source"] == "published"}  # fmt: skip
    assert any("published in the paper, not measured here" in note for note in table.notes)
    (row,) = rows_of(published(evaluation, Errors.INVALID))
    (said,) = [row for row in evaluation.as_json()["rows"] if row["evaluator"] == name and row["mode"] == "offline"]
    assert float(row["sol_f1"]) == said["published"]["sol_f1"] == 0.78
    assert float(row["sol_f1_difference"]) == said["published"]["differences"]["sol_f1"]
    assert row["mode"] == "offline"


def _benchmark(store):
    labels = (["pos", "neg", "pos"], ["pos", "pos", "pos"])
    made = [Trace.of(f"q{i}", ["s"] * 3, labels[i % 2], id=str(i)) for i in range(159)]
    with store.write() as session:
        writer = TraceWriter(session, "invalid", "mr-math-invalid", "file.json")
        writer.add([(f"row {i}", trace) for i, trace in enumerate(made)])
        writer.finish("file.json", "0" * 64)
    dataset = find_dataset(store, "invalid")
    name = "reasoneval_mistral-7b"
    one = register_evaluator(store, name=name, fingerprint="f", format="imported", attention="unknown")
    save_judgments(
        store, one.id, [judge(trace, "offline", i) for i, trace in enumerate(iterate_traces(store, dataset.id))]
    )
    return dataset, name


def test_no_published_table_where_nothing_was_measured_again(evaluation):
    assert published(evaluation, Errors.INVALID) is None
    assert prm_score(evaluation) is None


def test_judges(sqlite_store):
    dataset = fill(sqlite_store)
    table = evaluators_table(evaluators_of(sqlite_store, dataset.id))
    assert table.rows == (
        ("one_mind", "stepsight", "bidirectional", "three-way", "f1"),
        ("words", "imported", "unknown", "verdict", "f2"),
    )


def test_prm_score_by_category_and_class(sqlite_store):
    labels = {"circular": ["pos", "neu", "pos"], "confidence": ["pos", "neg", "pos"]}
    made = [Trace.of(f"q{name}", ["s"] * 3, golds, id=name, meta={"classification": name})
            for name, golds in labels.items()]  # fmt: skip
    traces = add(sqlite_store, made, dataset="prm")
    one = evaluator(sqlite_store)
    # Validity at least 0.5 but at the wrong step; p_neu at least 0.15 at the redundant one: all rightly judged.
    right = {"circular": [POS, NEU, POS], "confidence": [POS, NEG, POS]}
    save_judgments(sqlite_store, one.id, [
        Judgment(trace, Mode.OFFLINE, StepScores(np.array(right[trace.id], np.float32))) for trace in traces
    ])  # fmt: skip
    evaluation = measure(sqlite_store, find_dataset(sqlite_store, "prm"))
    table = prm_score(evaluation)
    titles = {column.key: column.title for column in table.columns[2:]}
    assert titles == {
        "prmscore": "PRMScore",
        "prmscore_simplicity": "simplicity",
        "prmscore_circular": "circular",
        "prmscore_soundness": "soundness",
        "prmscore_confidence": "confidence",
    }
    told = {(row["evaluator"], row["mode"]): row for row in rows_of(table)}
    assert {float(told["mini", "offline"][key]) for key in titles} == {1}
    # A constant of 0.5 is an error in PRMBench's script: F1 is 2 / 4 of errors, one step of three, and 0 of others.
    assert float(told["baseline:constant", "offline"]["prmscore_confidence"]) == pytest.approx((2 / 4 + 0) / 2)


def test_confusion(evaluation):
    table = confusions(evaluation)
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


def test_class_by_class(evaluation):
    table = classes(evaluation)
    assert [column.title for column in table.columns[2:]] == [
        "neg AUC", "neu AUC", "pos AUC", "neg F1", "neu F1", "pos F1",
    ]  # fmt: skip
    row = table.rows[0]
    assert [row[i].number for i in (3, 5, 6, 7)] == pytest.approx([18.5 / 20, 2 / 3, 1 / 2, 14 / 17])
    assert table.notes == ()


def test_decision_rules(evaluation):
    table = decisions(evaluation)
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


@pytest.fixture
def offline_only(sqlite_store):
    dataset = fill(sqlite_store)
    words = [one for one in evaluators_of(sqlite_store, dataset.id) if one.name == "words"]
    return measure_stored(sqlite_store, dataset, words, draws=20)


def test_outcomes_are_counted_by_mode(evaluation):
    """Gold errors: the second step of trace 0, the third of trace 2. Offline one_mind calls the second step of
    trace 0 wrong (0.3) and no other; online the second of trace 1 (0.4), which has no error."""
    table = outcomes(evaluation)
    assert [column.key for column in table.columns] == [
        "evaluator", "mode", "right", "missed", "false-alarm", "wrong-step", "n_traces"
    ]  # fmt: skip
    told = {row[:2]: row[2:] for row in table.rows}
    assert told["one_mind", "offline"] == (3, 1, 0, 0, 4)
    assert told["one_mind", "online"] == (1, 2, 1, 0, 4)
    # All is well, says `words` of its three traces.
    assert told["words", "offline"] == (1, 2, 0, 0, 3)


def test_verdicts_on_redundancy_have_no_outcomes(sqlite_store):
    dataset = fill(sqlite_store)
    (words,) = [one for one in evaluators_of(sqlite_store, dataset.id) if one.name == "words"]
    trace = next(iterate_traces(sqlite_store, dataset.id))
    said = StepScores(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]], np.float32))
    save_judgments(sqlite_store, words.id, [Judgment(trace, Mode.OFFLINE, said, 0.0)])
    assert "words" not in {row[0] for row in outcomes(measure(sqlite_store, dataset)).rows}


def test_online_minus_offline_is_the_difference_of_the_rows(evaluation):
    table = differences(evaluation)
    (row,) = [row for row in table.rows if row[:2] == ("one_mind", "invalid")]
    online, offline = (row_of(evaluation, mode).measured for mode in (Mode.ONLINE, Mode.OFFLINE))
    for value, name in zip(row[2:6], ("sol_f1", "sol_auc", "step_f1", "step_auc"), strict=True):
        assert value.number == pytest.approx(online[name].number - offline[name].number), name
    # The wrong step is seen only offline.
    assert row[5].number < 0
    assert row[6] == 4
    assert table.rows[table.rules[0]][0].startswith("baseline:")
    assert "words" not in {row[0] for row in table.rows}


def test_nothing_to_compare_is_none(offline_only):
    assert not has_pairs(offline_only)
    assert differences(offline_only) is None
    assert changes(offline_only, Errors.INVALID) is None
    values = position_values(offline_only, Errors.INVALID)
    assert position_gains(offline_only, Errors.INVALID, values) is None


def test_positions(evaluation):
    values = position_values(evaluation, Errors.INVALID)
    table = positions(evaluation, Errors.INVALID, values)
    told = {row[:2]: row[2:] for row in table.rows}
    titles = [column.title for column in table.columns[2:]]
    assert titles[:3] == ["Step-AUC, early", "Step-AUC, middle", "Step-AUC, late"]
    early, middle, late = told["one_mind", "offline"][:3]
    assert (early.exists, middle.number, late.number) == (False, 1, 0.5)
    assert told["one_mind", "online"][1].number == pytest.approx(0.5 / 3)
    assert "one_mind, words: Step-AUC early, the gold has one class only" in table.notes
    assert "one_mind: Macro-AUC early, the gold has no neg" in table.notes
    gains = position_gains(evaluation, Errors.INVALID, values)
    (gain,) = [row for row in gains.rows if row[0] == "one_mind"]
    assert gain[2].number == pytest.approx(1 - 0.5 / 3)


def test_changes(evaluation):
    told = {row[:2]: row[2:] for row in changes(evaluation, Errors.INVALID).rows}
    steps, wrong, share, online, offline = told["one_mind", "fell"]
    assert (steps, wrong, share.number, online.number, offline.number) == (1, 1, 1, 0, 1)
    assert told["one_mind", "stayed"][:2] == (9, 1)
    # A baseline by length does not change its mind; a group without steps has no row.
    assert ("baseline:length", "fell") not in told
    assert told["baseline:length", "stayed"][0] == 11


def test_a_reason_of_every_third_is_told_once():
    none = Value.none("why")
    assert third_reasons(dict.fromkeys(Third, none), "X ") == ["why"]
    some = {Third.EARLY: none, Third.MIDDLE: Value(1), Third.LATE: none}
    assert third_reasons(some, "X ") == ["X early and late, why"]
