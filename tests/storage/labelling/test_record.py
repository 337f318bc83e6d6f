"""Recording: what an event says, what is refused, that nothing is stored twice, and whose a slot is."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import DBAPIError

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import EventRow, SlotRow
from stepsight.storage.database.schema import TraceRow, now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError, Store
from stepsight.storage.labelling.annotation import NewEvent
from stepsight.storage.labelling.assignments import (
    add_slot,
    find_slot,
    load_slot,
)
from stepsight.storage.labelling.campaigns import Campaign, add_guideline, close_campaign
from stepsight.storage.labelling.queue import Assignment, assign_next
from stepsight.storage.labelling.record import read_annotation, record
from stepsight.storage.people.users import User
from tests.messages import refused
from tests.storage.labelling.samples import (
    ONE,
    THREE,
    TWO,
    act,
    campaign,
    do,
    expire,
    key,
    label_all,
    people,
    person,
    redo,
    take,
    undo,
)


def log(store):
    with store.read() as session:
        return list(session.scalars(select(EventRow).order_by(EventRow.id)))


def state(store, slot_id):
    with store.read() as session:
        found = session.execute(select(SlotRow.state, SlotRow.user_id).where(SlotRow.id == slot_id)).one()
    return found.state, found.user_id


class Scene:
    """A campaign over one trace of three steps, and somebody who has it."""

    def __init__(self, store: Store, **changes: Any) -> None:
        self.store = store
        self.campaign: Campaign = campaign(store, [THREE], **changes)
        self.user: User = person(store, "ann")
        self.task: Assignment = take(store, self.campaign, self.user)
        self.slot = self.task.slot_id

    def do(self, kind: str, *about: Any, **other: Any) -> Any:
        return do(self.store, self.slot, self.user, kind, *about, **other)

    def refused(self, kind: type[UserError], given: NewEvent) -> None:
        before = [event.id for event in log(self.store)], state(self.store, self.slot)
        with refused(kind):
            record(self.store, self.slot, self.user, given)
        assert ([event.id for event in log(self.store)], state(self.store, self.slot)) == before


@pytest.fixture
def scene(store):
    return Scene(store)


@pytest.fixture
def stepwise(store):
    return Scene(store, view="stepwise")


def test_an_event_says_who_did_what_and_what_they_saw(store, scene):
    scene.do("label", 1, "neu", seconds=2.5, guideline=1)
    found = scene.do("label", 1, "neg")
    first, second = log(store)
    assert (first.campaign_id, first.item_id, first.slot_id) == (scene.campaign.id, scene.task.item_id, scene.slot)
    assert (first.user_id, first.kind, first.step, first.old, first.new) == (scene.user.id, "label", 1, None, "neu")
    assert (first.seconds, first.digest, first.guideline, first.view) == (2.5, THREE.digest, 1, "whole")
    assert first.revealed is None
    assert (second.id, second.moment, second.old, second.new) == (found.event_id, found.moment, "neu", "neg")
    assert now() - timedelta(minutes=1) < first.moment <= second.moment <= now()


def test_the_database_keeps_the_log(store, scene):
    scene.do("label", 0, "pos")
    for change in (update(EventRow).values(new="neg"), delete(EventRow)):
        with pytest.raises(DBAPIError, match="append-only"), store.write() as session:
            session.execute(change)
    assert log(store)[0].new == "pos"


def test_the_same_again_is_stored_once(store, scene):
    given = act("label", 0, "pos", seconds=1.0)
    first = record(store, scene.slot, scene.user, given)
    again = record(store, scene.slot, scene.user, given.model_copy(update={"seconds": 9.0}))
    assert not first.repeated
    assert (again.event_id, again.moment, again.repeated) == (first.event_id, first.moment, True)
    assert len(log(store)) == 1


def test_at_the_same_moment_too(store, scene):
    given = act("label", 0, "pos")
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: record(store, scene.slot, scene.user, given), range(12)))
    assert len({one.event_id for one in found}) == 1
    assert sum(not one.repeated for one in found) == 1
    assert len(log(store)) == 1


def test_it_is_answered_as_before_whatever_happened_since(store, scene):
    labels = [act("label", step, "pos") for step in range(3)]
    for given in labels:
        record(store, scene.slot, scene.user, given)
    submit = act("submit")
    first = record(store, scene.slot, scene.user, submit)
    close_campaign(store, scene.campaign.id)
    for given in (*labels, submit):
        assert record(store, scene.slot, scene.user, given).repeated
    assert record(store, scene.slot, scene.user, submit).event_id == first.event_id


@pytest.mark.parametrize(
    "change",
    [{"new": "neg"}, {"step": 1}, {"kind": "comment"}, {"kind": "", "cause": "undo"}, {"new": None}],
    ids=str,
)
def test_a_key_is_for_one_thing(scene, change):
    given = act("label", 0, "pos")
    record(scene.store, scene.slot, scene.user, given)
    scene.refused(ConflictError, given.model_copy(update=change))


def test_a_key_is_for_one_slot_and_one_person(store):
    scene, other = Scene(store, overlap=2), person(store, "bob")
    given = act("label", 0, "pos")
    record(store, scene.slot, scene.user, given)
    theirs = take(store, scene.campaign, other)
    with refused(ConflictError):
        record(store, theirs.slot_id, scene.user, given)
    assert not record(store, theirs.slot_id, other, given).repeated


def test_undo_is_repeated_once_too(store, scene):
    scene.do("label", 0, "pos")
    scene.do("label", 0, "neg")
    first = undo(store, scene.slot, scene.user, "u")
    assert undo(store, scene.slot, scene.user, "u").event_id == first.event_id
    assert read_annotation(store, scene.slot).labels[0] == "pos"
    with refused(ConflictError):
        redo(store, scene.slot, scene.user, "u")


@pytest.mark.parametrize(
    ("kind", "about"),
    [("label", (3, "pos")), ("comment", (99, "Text.")), ("reveal", (None, 2)), ("submit", ())],
    ids=str,
)
def test_events_that_the_trace_does_not_allow_are_refused(scene, kind, about):
    scene.refused(UserError, act(kind, *about))


def test_of_too_many_events_on_a_trace_only_its_end_is_stored(scene, monkeypatch):
    monkeypatch.setattr("stepsight.storage.labelling.record.MOST_EVENTS", 3)
    for step in range(3):
        scene.do("label", step, "pos")
    scene.refused(UserError, act("label", 0, "neg"))
    scene.do("submit")
    assert state(scene.store, scene.slot)[0] == "submitted"


def test_an_answer_is_complete_when_every_step_is_labelled(scene):
    scene.do("label", 0, "pos")
    scene.do("label", 2, "unsure")
    scene.refused(UserError, act("submit"))
    scene.do("label", 1, "neg")
    scene.do("submit")
    assert state(scene.store, scene.slot)[0] == "submitted"


def test_an_answer_ends_at_the_first_error_if_the_campaign_says_so(store):
    scene = Scene(store, after_error=False)
    scene.do("label", 1, "neg")
    scene.refused(UserError, act("submit"))
    scene.do("label", 0, "pos")
    scene.do("submit")
    assert state(store, scene.slot)[0] == "submitted"


def test_step_by_step_nothing_is_said_of_what_is_not_revealed(stepwise):
    for kind, new in (("label", "pos"), ("comment", "Text."), ("correction", "Text."), ("error", "circular")):
        stepwise.refused(UserError, act(kind, 1, new))
    # Not even how many there are.
    stepwise.refused(UserError, act("label", 8, "pos"))
    stepwise.refused(UserError, act("reveal", None, 2))
    stepwise.do("label", 0, "pos")
    stepwise.refused(UserError, act("reveal", None, 3))
    stepwise.refused(UserError, act("submit"))
    stepwise.refused(UserError, act("label", 0, "neu", revealed=2))
    stepwise.do("reveal", None, 2)
    stepwise.do("label", 1, "neg", revealed=2)
    # Seen from two windows, the step is revealed once.
    stepwise.do("reveal", None, 2)
    stepwise.do("reveal", None, 3)
    stepwise.refused(UserError, act("reveal", None, 4))
    stepwise.refused(UserError, act("label", 3, "pos"))
    assert [(event.kind, event.old, event.revealed) for event in log(stepwise.store)] == [
        ("label", None, 1), ("reveal", 1, 1), ("label", None, 2), ("reveal", 2, 2), ("reveal", 2, 2),
    ]  # fmt: skip


def test_step_by_step_an_error_may_end_it(store):
    scene = Scene(store, view="stepwise", after_error=False)
    scene.do("label", 0, "neg")
    scene.do("submit")
    assert read_annotation(store, scene.slot).submitted


def test_once_submitted_it_stays_until_it_is_taken_back(scene):
    label_all(scene.store, scene.task, scene.user, ["pos", "neu", "pos"])
    for given in (act("label", 0, "neg"), act("submit"), act("skip", None, "Why not."), act("comment", 0, "Text.")):
        scene.refused(ConflictError, given)
    scene.refused(ConflictError, NewEvent(key="u", cause="undo"))
    scene.do("reopen")
    assert state(scene.store, scene.slot)[0] == "leased"
    scene.refused(ConflictError, act("reopen"))
    undo(scene.store, scene.slot, scene.user, "u2")
    scene.refused(UserError, act("submit"))
    scene.do("label", 2, "neg")
    scene.do("submit")
    assert read_annotation(scene.store, scene.slot).labels == ("pos", "neu", "neg")


def test_a_closed_campaign_takes_nothing_but_a_withdrawal(scene):
    label_all(scene.store, scene.task, scene.user, ["pos", "neu", "pos"])
    close_campaign(scene.store, scene.campaign.id)
    scene.refused(ConflictError, act("reopen"))
    scene.do("withdraw")
    assert state(scene.store, scene.slot)[0] == "skipped"
    scene.refused(ConflictError, act("withdraw"))


def test_another_guideline_has_to_be_read_first(store, scene):
    scene.do("label", 0, "pos", guideline=1)
    add_guideline(store, scene.campaign.id, "Be strict.", person(store, "boss"))
    scene.refused(ConflictError, act("label", 1, "pos", guideline=1))
    scene.do("label", 1, "pos", guideline=2)
    scene.do("label", 2, "pos")
    assert [event.guideline for event in log(store)] == [1, 2, 2]


def test_a_trace_that_changed_is_not_labelled_on(store, scene):
    with store.write() as session:
        session.execute(update(TraceRow).values(digest="changed"))
    scene.refused(ConflictError, act("label", 0, "pos"))


def test_a_slot_of_somebody_else_or_of_nobody(store):
    made = campaign(store, [ONE], overlap=2)
    one, other = people(store, 2)
    task = take(store, made, one)
    with refused(ConflictError):
        do(store, task.slot_id, other, "label", 0, "pos")
    with store.read() as session:
        free = session.scalars(select(SlotRow.id).where(SlotRow.state == "free")).one()
    with refused(ForbiddenError):
        do(store, free, other, "label", 0, "pos")
    for wrong in (0, 99, 2**40):
        with refused(NotFoundError):
            do(store, wrong, other, "label", 0, "pos")
    assert log(store) == []


def test_a_late_person_continues_unless_somebody_took_the_trace(store):
    made = campaign(store, [ONE])
    one, other = people(store, 2)
    task = take(store, made, one)
    do(store, task.slot_id, one, "label", 0, "pos")
    expire(store, task.slot_id)
    do(store, task.slot_id, one, "label", 0, "neu")
    assert assign_next(store, made.id, other) is None
    expire(store, task.slot_id)
    assert take(store, made, other).slot_id == task.slot_id
    with refused(ConflictError):
        do(store, task.slot_id, one, "label", 0, "neg")
    # What the first one did stays, and is not the second one's.
    assert [event.new for event in log(store)] == ["pos", "neu"]
    assert read_annotation(store, task.slot_id).labels == (None,)
    assert read_annotation(store, task.slot_id, one.id).labels == ("neu",)


def test_every_act_renews_the_lease(store):
    scene = Scene(store, lease=100)
    with store.write() as session:
        session.execute(update(SlotRow).values(expires=now() + timedelta(seconds=5)))
    scene.do("label", 0, "pos")
    with store.read() as session:
        left = session.scalars(select(SlotRow.expires)).one()
    assert left is not None
    assert timedelta(seconds=60) < left - now() <= timedelta(seconds=100)


@pytest.mark.parametrize("kind", ["skip", "withdraw"])
def test_a_trace_that_is_given_up_goes_to_somebody_else(store, kind):
    made = campaign(store, [ONE])
    one, other = people(store, 2)
    task = take(store, made, one)
    if kind == "withdraw":
        label_all(store, task, one, ["pos"])
        do(store, task.slot_id, one, "withdraw")
    else:
        do(store, task.slot_id, one, "skip", None, "I know the author.")
    assert state(store, task.slot_id) == ("skipped", one.id)
    with refused(ConflictError):
        do(store, task.slot_id, one, "label", 0, "pos")
    assert assign_next(store, made.id, one) is None
    theirs = take(store, made, other)
    assert (theirs.item_id, theirs.slot_id == task.slot_id) == (task.item_id, False)
    assert assign_next(store, made.id, person(store, "third")) is None


def test_nothing_to_undo_or_redo(scene):
    scene.refused(UserError, NewEvent(key="a", cause="undo"))
    scene.refused(UserError, NewEvent(key="b", cause="redo"))
    label_all(scene.store, scene.task, scene.user, ["pos", "pos", "pos"])
    scene.do("reopen")
    for number in range(3):
        undo(scene.store, scene.slot, scene.user, f"u{number}")
    # Submitting and taking back cannot be undone.
    scene.refused(UserError, NewEvent(key="c", cause="undo"))


def test_undo_says_what_it_takes_back(scene):
    first = scene.do("label", 0, "pos")
    second = scene.do("label", 0, "neg")
    scene.refused(ConflictError, NewEvent(key="a", cause="undo", of=first.annotation.undo[-1]))
    scene.do("", cause="undo", of=second.annotation.undo[-1])
    event = log(scene.store)[-1]
    assert (event.kind, event.step, event.old, event.new) == ("label", 0, "neg", "pos")
    assert (event.cause, event.of) == ("undo", second.event_id)


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


def first(store):
    with store.read() as session:
        return load_slot(session, session.scalars(select(SlotRow.id).order_by(SlotRow.id)).first() or 0)


@pytest.fixture
def slot(store):
    campaign(store, [TWO], lease=100, view="stepwise", after_error=False)
    return first(store)


def test_public_ids_tell_neither_order_nor_gaps(store):
    made = campaign(store, [ONE, TWO], overlap=50)
    with store.write() as session:
        # As a hidden gold item's is made, long after the others.
        late = [add_slot(session, made.id, item) for item in (1, 2)]
    with store.read() as session:
        ids = session.execute(select(SlotRow.id, SlotRow.public_id).order_by(SlotRow.id)).all()
    public = [row.public_id for row in ids]
    assert len(set(public)) == len(ids) == 102
    assert all(len(one) == 16 and set(one) <= set("0123456789abcdef") for one in public)
    # Of 102 in a random order, hardly ever more than 80 or fewer than 20 are larger than the one before.
    assert 20 < sum(one < other for one, other in pairwise(public)) < 80
    assert [find_slot(store, row.public_id) for row in ids[-2:]] == late


@pytest.mark.parametrize("link", ["1", "", "00000000", "x" * 300])
def test_a_link_to_no_slot_says_where_to_go_on(store, slot, link):
    assert slot.id == 1
    with refused(NotFoundError):
        find_slot(store, link)


def test_slots_that_are_added_at_once_get_numbers_of_their_own(store, slot):
    def add(_: int) -> int:
        with store.write() as session:
            return add_slot(session, slot.campaign_id, slot.item_id)

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(add, range(12)))) == 12
    with store.read() as session:
        assert session.scalar(select(func.max(SlotRow.number))) == 12
