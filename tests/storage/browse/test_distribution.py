"""Distributions of validities, against a plain reading of the same judgments step by step."""

from collections import Counter

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import StepScores
from stepsight.core.trace import Label, Trace
from stepsight.core.validation import validate
from stepsight.storage.browse.browse import browse, list_matching, read_distribution
from stepsight.storage.browse.columns import BINS, SOLUTION_GOLD, STEP_GOLD
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.judgments.judgments import save_judgments
from tests.messages import refused
from tests.storage.browse.test_browse import drawn
from tests.storage.samples import SAMPLES, add, evaluator, find_judgment, judge, many

NONE = np.zeros((3, BINS), np.int64)


def gold_of(step):
    if step.valid is None:
        return None
    return "redundant" if step.label is Label.NEU else "right" if step.valid else "wrong"


def counted(counts):
    return [[counts[kind, place] for place in range(BINS)] for kind in STEP_GOLD]


def test_solutions_are_in_the_bins_of_their_redundancy(store):
    traces = add(store, drawn(60))
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, Mode.OFFLINE, seed) for seed, trace in enumerate(traces)])
    where = TraceFilter(evaluator=mini.id, errors="redundant")
    distribution = read_distribution(store, traces[0].dataset_id, where)
    rows = browse(store, traces[0].dataset_id, where, limit=100).rows
    labelled = [None not in trace.labels for trace in traces]
    expected = Counter(
        (place, min(int(np.float32(row.redundancy) * np.float32(BINS)), BINS - 1))
        for row, complete in zip(rows, labelled, strict=True)
        if (place := 0 if row.n_redundant else 1 if complete else None) is not None
    )
    assert {
        (int(kind), int(bin)): distribution.counts[kind, bin]
        for kind, bin in zip(*distribution.counts.nonzero(), strict=True)
    } == expected
    assert {kind for kind, _ in expected} == {0, 1}
    for (kind, bin), count in expected.items():
        name = f"{SOLUTION_GOLD[kind]}-{bin / BINS:.2f}"
        assert browse(store, traces[0].dataset_id, where.model_copy(update={"bin": name})).total == count


@pytest.mark.parametrize("mode", [Mode.ONLINE, Mode.OFFLINE])
def test_every_step_that_gold_and_evaluator_speak_of_is_in_its_bin(store, mode):
    traces = add(store, drawn(60))
    mini = evaluator(store)
    for seed, trace in enumerate(traces):
        kinds = ("hindsight", mode.value, "hindsight", "")
        if kind := kinds[seed % 4]:
            save_judgments(store, mini.id, [judge(trace, kind, seed)])
    expected: Counter[tuple[str, int]] = Counter()
    by_bin: dict[str, set[int]] = {}
    for trace in traces:
        judgment = find_judgment(store, trace, mini.id, mode)
        if judgment is None:
            continue
        scores = (
            judgment.result if isinstance(judgment.result, StepScores) else getattr(judgment.result, mode.value)
        )
        for step, validity in zip(trace.steps, scores.by_step(trace.owners).validity, strict=True):
            if kind := gold_of(step):
                place = min(int(np.float32(validity) * np.float32(BINS)), BINS - 1)
                expected[kind, place] += 1
                by_bin.setdefault(f"{kind}-{place / BINS:.2f}", set()).add(trace.trace_id)
    where = TraceFilter(evaluator=mini.id, mode=mode.value)
    dataset_id = traces[0].dataset_id
    distribution = read_distribution(store, dataset_id, where)
    assert distribution.counts.tolist() == counted(expected)
    assert distribution.threshold == 0.5
    assert {kind for kind, _ in expected} == set(STEP_GOLD)
    # Every bin leads to the traces that have such a step, and does not change the distribution beside them.
    for bin, ids in by_bin.items():
        one = where.model_copy(update={"bin": bin})
        assert set(list_matching(store, dataset_id, one)) == ids
        assert read_distribution(store, dataset_id, one).counts.tolist() == distribution.counts.tolist()
    assert browse(store, dataset_id, where.model_copy(update={"bin": "wrong-0.00", "gold": "clean"})).total == 0


def test_edges_begin_a_bin_and_one_is_in_the_last(sqlite_store):
    validities = [0.0, 0.05, 0.35, 0.3499, 0.5, 0.95, 1.0]
    labels = ["neg"] * len(validities)
    (trace,) = add(sqlite_store, [Trace.of("q", [str(v) for v in validities], labels, id="edges")])
    probs = np.array([[1 - v, 0, v] for v in validities], np.float32)
    probs[:, 2] = np.array(validities, np.float32)
    mini = evaluator(sqlite_store)
    save_judgments(sqlite_store, mini.id, [Judgment(trace, Mode.OFFLINE, StepScores(probs))])
    counts = read_distribution(sqlite_store, trace.dataset_id, TraceFilter(evaluator=mini.id)).counts
    assert {int(place): int(counts[0, place]) for place in np.flatnonzero(counts[0])} == {
        0: 1, 1: 1, 6: 1, 7: 1, 10: 1, 19: 2
    }  # fmt: skip
    assert not counts[1:].any()


def test_it_is_of_the_traces_in_view(sqlite_store):
    traces = add(sqlite_store, SAMPLES)
    mini, other = evaluator(sqlite_store), evaluator(sqlite_store, "other")
    save_judgments(sqlite_store, mini.id, [judge(trace, "offline") for trace in traces])
    dataset_id = traces[0].dataset_id

    def of(**conditions: object) -> list[int]:
        counts = read_distribution(sqlite_store, dataset_id, TraceFilter(evaluator=mini.id, **conditions)).counts  # type: ignore[arg-type]
        return counts.sum(axis=1).tolist()

    # ERROR has a right and a wrong step, CLEAN a right one, FIRST_ERROR a right, a wrong and an unlabelled one.
    assert of() == [2, 0, 3]
    assert of(gold="clean") == [0, 0, 1]
    assert of(text="no such") == [0, 0, 0]
    # It said nothing online, and the other one nothing at all.
    assert of(mode="online") == [0, 0, 0]
    nothing = read_distribution(sqlite_store, dataset_id, TraceFilter(evaluator=other.id))
    assert nothing.counts.tolist() == NONE.tolist()


def test_new_traces_and_judgments_are_counted(store):
    (trace, *_) = add(store, many(3))
    mini = evaluator(store)
    where = TraceFilter(evaluator=mini.id)
    assert read_distribution(store, trace.dataset_id, where).counts.sum() == 0
    save_judgments(store, mini.id, [judge(trace, "offline")])
    assert read_distribution(store, trace.dataset_id, where).counts.sum() == 1
    more = add(store, many(5))
    save_judgments(store, mini.id, [judge(trace, "offline") for trace in more])
    # Of five traces, every third has no gold.
    assert read_distribution(store, trace.dataset_id, where).counts.sum() == 4


@pytest.mark.parametrize("bin", ["wrong", "wrong-0.33", "wrong-1.00", "neg-0.35", "wrong-0.350", "-0.35"])
def test_a_bin_that_there_is_not(bin):
    with refused():
        validate(TraceFilter, {"bin": bin})
    assert TraceFilter(bin="right-0.95").bin_place == ("right", 19)


def test_a_bin_needs_an_evaluator(sqlite_store):
    (trace, *_) = add(sqlite_store, SAMPLES)
    with refused():
        browse(sqlite_store, trace.dataset_id, TraceFilter(bin="wrong-0.35"))
