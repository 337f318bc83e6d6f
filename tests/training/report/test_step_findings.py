import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.position import Third
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.value import Value
from stepsight.core.scores import StepScores
from stepsight.storage.judgments.evaluators import judges_of
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import iterate_traces
from stepsight.training.evaluate.evaluation import evaluate
from stepsight.training.report.results import (
    changes,
    differences,
    has_pairs,
    outcomes,
    position_gains,
    position_values,
    positions,
    third_reasons,
)
from tests.training.judged import fill, measure, row_of


@pytest.fixture
def found(sqlite_store):
    return measure(sqlite_store, fill(sqlite_store))


@pytest.fixture
def offline_only(sqlite_store):
    dataset = fill(sqlite_store)
    words = [one for one in judges_of(sqlite_store, dataset.id) if one.name == "words"]
    return evaluate(sqlite_store, dataset, words, draws=20)


def test_outcomes_are_counted_by_mode(found):
    """Gold errors: the second step of trace 0, the third of trace 2. Offline one_mind calls the second step of
    trace 0 wrong (0.3) and no other; online the second of trace 1 (0.4), which has no error."""
    table = outcomes(found)
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
    (words,) = [one for one in judges_of(sqlite_store, dataset.id) if one.name == "words"]
    trace = next(iterate_traces(sqlite_store, dataset.id))
    said = StepScores(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]], np.float32))
    save_judgments(sqlite_store, words.id, [Judgment(trace, Mode.OFFLINE, said, 0.0)])
    assert "words" not in {row[0] for row in outcomes(measure(sqlite_store, dataset)).rows}


def test_online_minus_offline_is_the_difference_of_the_rows(found):
    table = differences(found)
    (row,) = [row for row in table.rows if row[:2] == ("one_mind", "invalid")]
    online, offline = (row_of(found, mode).measured for mode in (Mode.ONLINE, Mode.OFFLINE))
    for value, name in zip(row[2:6], ("sol_f1", "sol_auc", "step_f1", "step_auc"), strict=True):
        assert value.number == pytest.approx(online[name].value.number - offline[name].value.number), name
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


def test_positions(found):
    values = position_values(found, Errors.INVALID)
    table = positions(found, Errors.INVALID, values)
    told = {row[:2]: row[2:] for row in table.rows}
    titles = [column.title for column in table.columns[2:]]
    assert titles[:3] == ["Step-AUC, early", "Step-AUC, middle", "Step-AUC, late"]
    early, middle, late = told["one_mind", "offline"][:3]
    assert (early.exists, middle.number, late.number) == (False, 1, 0.5)
    assert told["one_mind", "online"][1].number == pytest.approx(0.5 / 3)
    assert "one_mind, words: Step-AUC early, the gold has one class only" in table.notes
    assert "one_mind: Macro-AUC early, the gold has no neg" in table.notes
    gains = position_gains(found, Errors.INVALID, values)
    (gain,) = [row for row in gains.rows if row[0] == "one_mind"]
    assert gain[2].number == pytest.approx(1 - 0.5 / 3)


def test_changes(found):
    told = {row[:2]: row[2:] for row in changes(found, Errors.INVALID).rows}
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
