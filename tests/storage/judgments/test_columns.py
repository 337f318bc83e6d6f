"""Columns of the store agree with the table that is built trace by trace."""

from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import text

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.table import SILENT, build_table
from stepsight.core.scores import StepScores
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from tests.storage.samples import SAMPLES, add, evaluator, find_judgment, judge

COLUMNS = ("trace", "position", "label", "valid", "validity", "redundancy", "probs", "solution")


@pytest.fixture
def traces(store):
    # Another dataset before and after, whose rows have to stay out.
    add(store, SAMPLES, dataset="before")
    found = add(store)
    add(store, SAMPLES, dataset="after")
    return found


def gold_of(store, name="sums"):
    return read_gold(store, find_dataset(store, name))


def expected(store, traces, evaluator_id, mode):
    """The table of the traces that have a judgment, built one by one, and the places of those traces."""
    judgments = [find_judgment(store, trace, evaluator_id, mode) for trace in traces]
    found = [judged for judged in judgments if judged is not None]
    scores = ((judged.trace, judged.online if mode == Mode.ONLINE else judged.offline) for judged in found)
    table = replace(build_table(scores), solution=np.array([judged.solution for judged in found], np.float64))
    return table, [place for place, judged in enumerate(judgments) if judged is not None]


def same(store, traces, evaluator_id, mode):
    """Assert that both ways give the same table; returns how many traces it has."""
    gold = gold_of(store)
    found = read_table(store, gold, evaluator_id, mode)
    other, places = expected(store, traces, evaluator_id, mode)
    assert found.ids == tuple(trace.id for trace in traces)
    for name in COLUMNS:
        left, right = getattr(found, name), getattr(other, name)
        if name == "trace":
            right = np.array(places, np.int64)[right]
        if name == "solution":
            left = left[places]
        np.testing.assert_array_equal(left, right, err_msg=name)
    return len(places)


def test_a_step_takes_22_bytes_where_none_has_sub_steps(sqlite_store):
    """Four for each of trace, position and three probabilities, one of which is the redundancy; one for either
    gold."""
    steps = Trace("plain", "q", (Step(("a",), Label.POS), Step(("b",), Label.NEG)))
    stored = add(sqlite_store, [steps])
    asked = evaluator(sqlite_store).id
    probs = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]], np.float32)
    save_judgments(sqlite_store, asked, [Judgment(stored[0], Mode.ONLINE, StepScores(probs))])
    table = read_table(sqlite_store, gold_of(sqlite_store), asked, Mode.ONLINE)
    np.testing.assert_array_equal(table.redundancy, probs[:, Label.NEU])
    assert np.shares_memory(table.redundancy, table.probs)
    columns = (table.trace, table.position, table.label, table.valid, table.probs)
    assert sum(column.nbytes for column in columns) == 22 * len(table)


def test_gold(store, traces):
    gold = gold_of(store)
    assert gold.ids == ("error", "clean", "missing", "first")
    assert gold.trace_ids.tolist() == [trace.trace_id for trace in traces]
    assert gold.digests == tuple(trace.digest for trace in traces)
    assert gold.counts.tolist() == [2, 1, 2, 3]
    # error: pos, neg; clean: pos; missing: nothing; first: valid without a label, neg, nothing.
    assert gold.label.tolist() == [Label.POS, Label.NEG, Label.POS, SILENT, SILENT, SILENT, Label.NEG, SILENT]
    assert gold.valid.tolist() == [1, 0, 1, SILENT, SILENT, 1, 0, SILENT]
    assert gold.substeps.tolist() == [1, 2, 1, 1, 1, 1, 2, 1]
    assert gold.trace.tolist() == [0, 0, 1, 2, 2, 3, 3, 3]
    # The meta of `clean` says "generator": "hand".
    assert gold.groups == ("", "hand", "", "")


def test_groups_are_texts_by_the_benchmarks_own_field(store):
    metas = [
        {"classification": "circular", "generator": "x"},
        {"question_type": "POT"},
        {"family": 3},
        {"other": 1},
    ]
    add(store, [Trace(str(i), "q", (Step(("a",)),), meta) for i, meta in enumerate(metas)], dataset="groups")
    assert gold_of(store, "groups").groups == ("circular", "POT", "3", "")


@pytest.mark.parametrize("mode", [Mode.OFFLINE, Mode.ONLINE])
def test_judgments_of_the_mode_itself(store, traces, mode):
    mini, other = evaluator(store), evaluator(store, "other")
    save_judgments(store, mini.id, [judge(trace, mode, seed) for seed, trace in enumerate(traces)])
    save_judgments(store, other.id, [judge(trace, mode, 50) for trace in traces])
    assert same(store, traces, mini.id, mode) == 4


@pytest.mark.parametrize("mode", [Mode.OFFLINE, Mode.ONLINE])
def test_hindsight_gives_its_last_row_and_its_diagonal(store, traces, mode):
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, "hindsight", seed) for seed, trace in enumerate(traces)])
    assert same(store, traces, mini.id, mode) == 4


def test_missing_and_stale_judgments_have_no_steps(store, traces):
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, "offline") for trace in traces[:3]])
    with store.write() as session:
        session.execute(text("UPDATE judgments SET digest = 'before' WHERE trace_id = :id"),
                        {"id": traces[1].trace_id})  # fmt: skip
    assert same(store, traces, mini.id, Mode.OFFLINE) == 2
    found = read_table(store, gold_of(store), mini.id, Mode.OFFLINE)
    assert found.present.tolist() == [True, False, True, False]
    assert len(read_table(store, gold_of(store), mini.id, Mode.ONLINE)) == 0


def test_silence_and_scores_of_the_whole(store, traces):
    mini = evaluator(store)
    quiet = [
        Judgment(trace, Mode.OFFLINE, StepScores(np.zeros((len(trace.substeps), 3))), 0.25) for trace in traces
    ]
    # The second sub-step of the step `b` of the last trace is silent, and so is the step.
    partly = judge(traces[3], "offline").offline
    assert partly is not None
    probs = partly.probs.copy()
    probs[2] = 0
    quiet[3] = Judgment(traces[3], Mode.OFFLINE, StepScores(probs), None)
    save_judgments(store, mini.id, quiet)
    assert same(store, traces, mini.id, Mode.OFFLINE) == 4
    found = read_table(store, gold_of(store), mini.id, Mode.OFFLINE)
    assert np.isnan(found.validity).tolist() == [True] * 5 + [False, True, False]
    assert found.solution[:3].tolist() == [0.25] * 3
    assert np.isnan(found.solution[3])


def test_the_first_of_equally_valid_substeps_is_taken(store):
    (trace,) = add(store, [Trace("t", "q", (Step(("a", "b", "c")),))], dataset="ties")
    mini = evaluator(store)
    probs = np.array([[0.25, 0.5, 0.25], [0.5, 0.125, 0.375], [0.5, 0.25, 0.25]], np.float32)
    save_judgments(store, mini.id, [Judgment(trace, Mode.OFFLINE, StepScores(probs))])
    found = read_table(store, gold_of(store, "ties"), mini.id, Mode.OFFLINE)
    # s_val 0.75, 0.5, 0.5: the second row; s_red is the greatest of the three.
    assert found.probs.tolist() == [[0.5, 0.125, 0.375]]
    assert (found.validity.tolist(), found.redundancy.tolist()) == ([0.5], [0.5])


def test_traces_that_came_after_the_gold_was_read_stay_out(store, traces):
    mini, gold = evaluator(store), gold_of(store)
    more = add(store, [Trace("later", "q", (Step(("a",)),))])
    save_judgments(store, mini.id, [judge(trace, "offline") for trace in more])
    found = read_table(store, gold, mini.id, Mode.OFFLINE)
    assert (found.traces, len(found)) == (4, 8)


def test_an_empty_dataset(store):
    add(store, [], dataset="none")
    gold = gold_of(store, "none")
    assert (gold.ids, gold.counts.shape, gold.substeps.shape, gold.trace.shape) == ((), (0,), (0,), (0,))
    assert not gold.ends_at_first_error()
    table = read_table(store, gold, evaluator(store).id, Mode.OFFLINE)
    assert (len(table), table.traces, table.probs.shape) == (0, 0, (0, 3))


@pytest.mark.parametrize(
    ("golds", "ends"),
    [
        # Nine of ten traces with an error stop at it; traces without one do not count.
        ([["pos", "neg"]] * 9 + [["neg", "pos"]] + [["pos"]] * 5, True),
        ([["pos", "neg"]] * 8 + [["neg", "pos"]] * 2, False),
        # A second error at the end does not make the first one the end.
        ([["neg", "neg"]] * 10, False),
        ([["pos"]] * 3, False),
    ],
)
def test_whether_traces_stop_at_their_first_error(store, golds, ends):
    made = [Trace.of("q", ["s"] * len(labels), labels, id=str(i)) for i, labels in enumerate(golds)]
    add(store, made, dataset="ends")
    assert gold_of(store, "ends").ends_at_first_error() is ends
