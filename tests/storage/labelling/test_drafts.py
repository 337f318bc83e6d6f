"""Where a person stands, as the store tells it."""

import pytest
from sqlalchemy import select

from stepsight.storage.database.labelling_schema import SlotRow
from stepsight.storage.database.store import ConflictError, NotFoundError
from stepsight.storage.labelling.record import read_annotation
from tests.messages import refused
from tests.storage.labelling.samples import TWO, campaign, do, key, label_all, people, redo, take, undo


def test_a_free_slot_has_no_labels(store):
    made = campaign(store, [TWO], overlap=2)
    take(store, made, people(store, 1)[0])
    with store.read() as session:
        free = session.scalars(select(SlotRow.id).where(SlotRow.state == "free")).one()
    assert read_annotation(store, free).labels == (None, None)
    with pytest.raises(NotFoundError):
        read_annotation(store, 99)


def test_undo_and_redo_reach_back_across_submissions(store):
    made = campaign(store, [TWO])
    (user,) = people(store, 1)
    task = take(store, made, user)
    slot = task.slot_id
    label_all(store, task, user, ["pos", "neg"])
    with refused(ConflictError):
        undo(store, slot, user, key())
    do(store, slot, user, "reopen")
    do(store, slot, user, "comment", 1, "Why?")
    before = [read_annotation(store, slot)]
    for _ in range(3):
        undo(store, slot, user, key())
        before.append(read_annotation(store, slot))
    assert [draft.labels for draft in before] == [("pos", "neg"), ("pos", "neg"), ("pos", None), (None, None)]
    assert [draft.comments[1] for draft in before] == ["Why?", None, None, None]
    for expected in before[-2::-1]:
        redo(store, slot, user, key())
        found = read_annotation(store, slot)
        assert (found.labels, found.comments, found.undo, found.redo) == (
            expected.labels, expected.comments, expected.undo, expected.redo,
        )  # fmt: skip
