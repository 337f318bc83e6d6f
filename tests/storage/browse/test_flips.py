"""Traces by what later steps did to their verdicts, on both databases."""

import numpy as np
import pytest
from sqlalchemy import text

from stepsight.core.evidence import Flip, largest_revision, revisions
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Step, Trace
from stepsight.storage.browse.outcomes import find_flips, hindsight_evaluators
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import Neighbours, iterate_traces
from tests.storage.samples import add, evaluator, judge


def turned(trace, online, offline):
    """A judgment that changes from one validity to the other with the last sub-step, which stays at its own."""
    early = np.array([[1 - v, 0, v] for v in online], np.float32)
    late = np.array([[1 - v, 0, v] for v in offline], np.float32)
    rows = [early[: j + 1] for j in range(len(early) - 1)]
    return Judgment(trace, Mode.HINDSIGHT, Hindsight((*rows, late)))


def trace(id, *valid):
    return Trace(id, "q", tuple(Step((f"step {i}",), valid=gold) for i, gold in enumerate(valid)))


# Online and offline validity of the steps; the last sees nothing after it.
CASES = [
    # Fell by 0.3, and is wrong.
    (trace("small", False, True), [0.6, 0.9], [0.3, 0.9]),
    # Fell by 0.6, and is wrong.
    (trace("large", False, True), [0.8, 0.9], [0.2, 0.9]),
    # Rose by 0.5, and is valid; fell by 0.4, and is valid.
    (trace("both", True, True, True), [0.3, 0.8, 0.9], [0.8, 0.4, 0.9]),
    # Fell by 0.7; gold says nothing of it.
    (trace("silent", None, False), [0.9, 0.1], [0.2, 0.1]),
    # Fell by 0.3, but stays valid.
    (trace("stays", True, True), [0.9, 0.9], [0.6, 0.9]),
    # Nothing moved.
    (trace("still", True, True), [0.9, 0.9], [0.9, 0.9]),
]


@pytest.fixture
def kept(store):
    stored = add(store, [found for found, _, _ in CASES])
    row = evaluator(store)
    save_judgments(store, row.id, (turned(t, *case[1:]) for t, case in zip(stored, CASES, strict=True)))
    return store, stored, row


def names(stored, ids):
    known = {one.trace_id: one.id for one in stored}
    return [known[id] for id in ids]


def test_traces_are_listed_by_kind_and_change(kept):
    store, stored, row = kept
    found = find_flips(store, stored[0].dataset_id, row.id, 0.5)
    # 0.6, 0.5, 0.3.
    assert names(stored, found.of(Flip.RIGHTED)) == ["large", "both", "small"]
    assert names(stored, found.of(Flip.MISLED)) == ["both"]
    assert names(stored, found.of(Flip.UNJUDGED)) == ["silent"]
    assert names(stored, found.of(None)) == ["stays", "still"]


def test_thresholds_decide(kept):
    store, stored, row = kept
    # At 0.7 "large" falls (0.8 to 0.2), "both" rises (0.3 to 0.8) and falls (0.8 to 0.4), "stays" falls (0.9 to
    # 0.6), and "silent" as well (0.9 to 0.2).
    found = find_flips(store, stored[0].dataset_id, row.id, 0.7)
    assert names(stored, found.of(Flip.RIGHTED)) == ["large", "both"]
    assert names(stored, found.of(Flip.MISLED)) == ["both", "stays"]
    assert names(stored, found.of(None)) == ["small", "still"]


def test_the_lists_agree_with_each_trace_by_itself(kept):
    store, stored, row = kept
    found = find_flips(store, stored[0].dataset_id, row.id, 0.5)
    for one, (_, online, offline) in zip(stored, CASES, strict=True):
        hindsight = turned(one, online, offline).hindsight
        alone = revisions(hindsight, one, 0.5)
        for turn in Flip:
            assert (one.trace_id in found.of(turn)) == (largest_revision(alone, turn) is not None)


def test_a_step_is_judged_by_its_least_valid_sub_step(store):
    two = Trace("two", "q", (Step(("a", "b"), valid=False), Step(("c",), valid=True)))
    (stored,) = add(store, [two])
    row = evaluator(store)
    # 0.9 and 0.7 become 0.9 and 0.3: the step goes from 0.7 to 0.3.
    save_judgments(store, row.id, [turned(stored, [0.9, 0.7, 0.8], [0.9, 0.3, 0.8])])
    found = find_flips(store, stored.dataset_id, row.id, 0.5)
    assert found.of(Flip.RIGHTED).tolist() == [stored.trace_id]


def test_neighbours_follow_the_order_of_the_kind(kept):
    store, stored, row = kept
    found = find_flips(store, stored[0].dataset_id, row.id, 0.5)
    small, large, both = (stored[i].trace_id for i in range(3))
    assert found.neighbours(Flip.RIGHTED, large) == Neighbours(None, both)
    assert found.neighbours(Flip.RIGHTED, both) == Neighbours(large, small)
    assert found.neighbours(Flip.RIGHTED, small) == Neighbours(both, None)
    assert found.neighbours(Flip.MISLED, small) == Neighbours(None, None)


def test_kept_flips_follow_the_store(kept):
    store, stored, row = kept
    dataset = stored[0].dataset_id
    assert names(stored, find_flips(store, dataset, row.id, 0.5).of(Flip.MISLED)) == ["both"]
    save_judgments(store, row.id, [turned(stored[5], [0.9, 0.9], [0.1, 0.9])])
    assert names(stored, find_flips(store, dataset, row.id, 0.5).of(Flip.MISLED)) == ["still", "both"]
    with store.write() as session:
        session.execute(text("DELETE FROM traces WHERE id = :id"), {"id": stored[5].trace_id})
    assert names(stored, find_flips(store, dataset, row.id, 0.5).of(Flip.MISLED)) == ["both"]


def test_only_hindsight_judgments_count(store):
    stored = add(store)
    row, other = evaluator(store), evaluator(store, "other")
    save_judgments(store, row.id, [judge(stored[0], "offline"), judge(stored[0], "online")])
    assert hindsight_evaluators(store) == {}
    found = find_flips(store, stored[0].dataset_id, row.id, 0.5)
    assert [len(found.of(turn)) for turn in (*Flip, None)] == [0, 0, 0, 0]
    save_judgments(store, other.id, [judge(stored[0], "hindsight")])
    assert hindsight_evaluators(store) == {stored[0].dataset_id: (other.id,)}


def test_an_unknown_dataset_has_none(store):
    found = find_flips(store, 999, 999, 0.5)
    assert len(found.of(None)) == 0
    assert list(iterate_traces(store, 999)) == []
