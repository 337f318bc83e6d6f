"""Recording: what an event says, what is refused, that nothing is stored twice, and whose a slot is."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.exc import DBAPIError

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import EventRow, ItemRow, SlotRow
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError
from stepsight.storage.labelling.annotation import NewEvent
from stepsight.storage.labelling.campaigns import add_guideline, close_campaign
from stepsight.storage.labelling.record import add_slot, read_annotation, record
from tests.messages import refused
from tests.storage.labelling.samples import FOUR, ONE, THREE, TWO, Scene, act, campaign, person


def log(store):
    with store.read() as session:
        return list(session.scalars(select(EventRow).order_by(EventRow.id)))


def slots(store):
    """State and person of each slot."""
    with store.read() as session:
        return session.execute(select(SlotRow.state, SlotRow.user_id).order_by(SlotRow.id)).all()


@pytest.fixture
def scene(store):
    """A campaign over one trace of three steps, and ann, who has it."""
    made = Scene(store, [THREE])
    made.take()
    return made


def record_as(scene, given):
    return record(scene.store, scene.tasks["ann"].slot, scene.who("ann"), given)


def test_an_event_says_who_did_what_and_what_they_saw(store, scene):
    scene.do("label", 1, "neu", seconds=2.5, guideline=1)
    recorded = scene.do("label", 1, "neg")
    first, second = log(store)
    task = scene.tasks["ann"]
    assert (first.campaign_id, first.item_id) == (scene.campaign.id, task.item_id)
    assert (first.user_id, first.kind, first.step) == (scene.who("ann").id, "label", 1)
    assert (first.old, first.new, first.revealed) == (None, "neu", None)
    assert (first.seconds, first.digest, first.guideline, first.view) == (2.5, THREE.digest, 1, "whole")
    assert (second.id, second.moment, second.old, second.new) == (recorded.event_id, recorded.moment, "neu", "neg")
    assert now() - timedelta(minutes=1) < first.moment <= second.moment <= now()


def test_the_database_keeps_the_log(store, scene):
    scene.do("label", 0, "pos")
    for change in (update(EventRow).values(new="neg"), delete(EventRow)):
        with pytest.raises(DBAPIError, match="append-only"), store.write() as session:
            session.execute(change)
    assert log(store)[0].new == "pos"


def test_the_same_again_is_stored_once_also_at_the_same_moment(store, scene):
    given = act("label", 0, "pos", seconds=1.0)
    with ThreadPoolExecutor(6) as pool:
        recorded = list(pool.map(lambda _: record_as(scene, given), range(12)))
    recorded.append(record_as(scene, given.model_copy(update={"seconds": 9.0})))
    assert len({(event.event_id, event.moment) for event in recorded}) == 1
    assert sum(not event.repeated for event in recorded) == 1
    assert len(log(store)) == 1


def test_it_is_answered_as_before_whatever_happened_since(store, scene):
    given = [*(act("label", step, "pos") for step in range(3)), act("submit")]
    recorded = [record_as(scene, event) for event in given]
    close_campaign(store, scene.campaign.id)
    again = [record_as(scene, event) for event in given]
    assert [(event.event_id, event.repeated) for event in again] == [(event.event_id, True) for event in recorded]


@pytest.mark.parametrize(
    "change",
    [{"new": "neg"}, {"step": 1}, {"kind": "comment"}, {"kind": "", "cause": "undo"}, {"new": None}],
    ids=str,
)
def test_a_key_is_for_one_thing(scene, change):
    given = act("label", 0, "pos")
    record_as(scene, given)
    with refused(ConflictError):
        record_as(scene, given.model_copy(update=change))
    assert len(log(scene.store)) == 1


def test_a_key_is_for_one_slot_and_one_person(store):
    scene = Scene(store, [THREE], overlap=2)
    scene.take()
    given = act("label", 0, "pos")
    record_as(scene, given)
    theirs = scene.take("bob").slot
    with refused(ConflictError):
        record(store, theirs, scene.who("ann"), given)
    assert not record(store, theirs, scene.who("bob"), given).repeated


def test_undo_is_repeated_once_and_says_what_it_takes_back(store, scene):
    scene.do("label", 0, "pos")
    second = scene.do("label", 0, "neg")
    first = scene.undo(key="u", of=second.annotation.undo[-1])
    assert scene.undo(key="u").event_id == first.event_id
    assert scene.annotation().labels[0] == "pos"
    with refused(ConflictError):
        scene.undo(cause="redo", key="u")
    event = log(store)[-1]
    assert (event.kind, event.step, event.old, event.new) == ("label", 0, "neg", "pos")
    assert (event.cause, event.of) == ("undo", second.event_id)
    # Another one than the newest is meant.
    with refused(ConflictError):
        scene.undo(cause="redo", of="no-such")


STEPWISE = {"view": "stepwise"}
FIRST = [("label", 0, "pos")]
DONE = [("label", 0, "pos"), ("label", 1, "neu"), ("label", 2, "pos"), ("submit",)]
SEEN = [*FIRST, ("reveal", None, 2), ("label", 1, "neg"), ("reveal", None, 3)]
UNDO, REDO = ("", None, None, {"cause": "undo"}), ("", None, None, {"cause": "redo"})
CONFLICTS = (
    *("changed", "submitted", "reopened", "closed", "withdrawn", "skipped", "undo of a submission"),
    "another guideline",
)
# What is refused in a campaign with these settings after these events.
REFUSED = {
    "a step too far": ({}, [], ("label", 3, "pos")),
    "a comment too far": ({}, [], ("comment", 99, "Text.")),
    "reveal whole": ({}, [], ("reveal", None, 2)),
    "evidence whole": ({}, [], ("evidence", 0, 2)),
    "an error of another list": ({"error_kinds": ("sign", "unit")}, [], ("error", 0, "calculation")),
    "submit nothing": ({}, [], ("submit",)),
    "submit some": ({}, [("label", 0, "pos"), ("label", 2, "unsure")], ("submit",)),
    "submit up to the error": ({"after_error": False}, [("label", 1, "neg")], ("submit",)),
    # Not even how many steps there are.
    "label ahead": (STEPWISE, [], ("label", 1, "pos")),
    "label far ahead": (STEPWISE, [], ("label", 8, "pos")),
    "comment ahead": (STEPWISE, [], ("comment", 1, "Text.")),
    "correction ahead": (STEPWISE, [], ("correction", 1, "Text.")),
    "error ahead": (STEPWISE, [], ("error", 1, "circular")),
    "reveal unlabelled": (STEPWISE, [], ("reveal", None, 2)),
    "reveal two": (STEPWISE, FIRST, ("reveal", None, 3)),
    "submit unseen": (STEPWISE, FIRST, ("submit",)),
    "more in view": (STEPWISE, FIRST, ("label", 0, "neu", {"revealed": 2})),
    "reveal all": (STEPWISE, SEEN, ("reveal", None, 4)),
    "label behind the end": (STEPWISE, SEEN, ("label", 3, "pos")),
    "evidence ahead": (STEPWISE, SEEN[:-1], ("evidence", 0, 2)),
    "evidence before": (STEPWISE, SEEN, ("evidence", 2, 1)),
    "evidence itself": (STEPWISE, SEEN, ("evidence", 1, 1)),
    "submitted label": ({}, DONE, ("label", 0, "neg")),
    "submitted comment": ({}, DONE, ("comment", 0, "Text.")),
    "submitted submit": ({}, DONE, ("submit",)),
    "submitted skip": ({}, DONE, ("skip", None, "Why not.")),
    "reopened reopen": ({}, [*DONE, ("reopen",)], ("reopen",)),
    "final reopen": ({"after_submission": "gold"}, DONE, ("reopen",)),
    "closed label": ({}, [("close",)], ("label", 0, "pos")),
    "closed reopen": ({}, [*DONE, ("close",)], ("reopen",)),
    "withdrawn withdraw": ({}, [*DONE, ("close",), ("withdraw",)], ("withdraw",)),
    "withdrawn label": ({}, [*DONE, ("withdraw",)], ("label", 0, "pos")),
    "skipped label": ({}, [("skip", None, "I know the author.")], ("label", 0, "pos")),
    "changed label": ({}, [("change",)], ("label", 0, "pos")),
    "another guideline": ({}, [("amend",)], ("label", 1, "pos", {"guideline": 1})),
    "nothing to undo": ({}, [], UNDO),
    "nothing to redo": ({}, FIRST, REDO),
    "undo of a submission": ({}, DONE, UNDO),
    # Submitting and taking back cannot be undone.
    "undo of taking back": ({}, [*DONE, ("reopen",), UNDO, UNDO, UNDO], UNDO),
    "submit after undo": ({}, [*DONE, ("reopen",), UNDO], ("submit",)),
}


def perform(scene, kind, step=None, new=None, other=None):
    if kind == "close":
        close_campaign(scene.store, scene.campaign.id)
    elif kind == "amend":
        add_guideline(scene.store, scene.campaign.id, "Be strict.", person(scene.store, "boss"))
    elif kind == "change":
        scene.change_trace()
    else:
        scene.do(kind, step, new, **(other or {}))


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_trace_or_the_state_does_not_allow_is_refused_and_not_stored(store, name):
    changes, before, event = REFUSED[name]
    scene = Scene(store, [THREE], **changes)
    scene.take()
    for one in before:
        perform(scene, *one)
    stored = [event.id for event in log(store)], slots(store)
    kind = ConflictError if name.startswith((*CONFLICTS, "final")) else UserError
    with refused(kind) as caught:
        perform(scene, *event)
    assert type(caught.value) is kind
    assert ([event.id for event in log(store)], slots(store)) == stored


def test_of_too_many_events_on_a_trace_only_its_end_is_stored(scene, monkeypatch):
    monkeypatch.setattr("stepsight.storage.labelling.record.MOST_EVENTS", 3)
    for step in range(3):
        scene.do("label", step, "pos")
    with refused():
        scene.do("label", 0, "neg")
    scene.do("submit")
    assert scene.annotation().submitted


@pytest.mark.parametrize("view", ["whole", "stepwise"])
def test_an_error_may_end_it_if_the_campaign_says_so(store, view):
    scene = Scene(store, [THREE], view=view, after_error=False)
    scene.label("neg")
    assert scene.annotation().submitted


def test_step_by_step_the_log_says_how_many_steps_were_in_view(store):
    scene = Scene(store, [THREE], view="stepwise")
    scene.take()
    # Seen from two windows, a step is revealed once.
    for event in (*SEEN[:2], ("label", 1, "neg", {"revealed": 2}), ("reveal", None, 2), SEEN[-1]):
        perform(scene, *event)
    assert [(event.kind, event.old, event.revealed) for event in log(store)] == [
        ("label", None, 1), ("reveal", 1, 1), ("label", None, 2), ("reveal", 2, 2), ("reveal", 2, 2),
    ]  # fmt: skip


def test_a_submission_is_taken_back_and_undo_reaches_back_across_it(scene):
    scene.label("pos neu pos")
    scene.do("reopen")
    assert scene.annotation().submitted is False
    scene.do("comment", 1, "Why?")
    before = [scene.annotation()]
    for _ in range(3):
        scene.undo()
        before.append(scene.annotation())
    assert [(one.labels, one.comments[1]) for one in before] == [
        (("pos", "neu", "pos"), "Why?"), (("pos", "neu", "pos"), None), (("pos", "neu", None), None),
        (("pos", None, None), None),
    ]  # fmt: skip
    for expected in before[-2::-1]:
        assert scene.undo(cause="redo").annotation == expected
    scene.do("label", 2, "neg")
    scene.do("submit")
    assert scene.annotation().labels == ("pos", "neu", "neg")


def test_a_campaign_takes_its_own_kinds_of_error(store):
    scene = Scene(store, [TWO], error_kinds=("sign", "unit"))
    scene.take()
    scene.do("error", 0, "unit")
    assert scene.annotation().errors == ("unit", None)
    scene.undo()
    assert scene.annotation().errors == (None, None)


def test_another_guideline_has_to_be_read_first(store, scene):
    scene.do("label", 0, "pos", guideline=1)
    perform(scene, "amend")
    scene.do("label", 1, "pos", guideline=2)
    scene.do("label", 2, "pos")
    assert [event.guideline for event in log(store)] == [1, 2, 2]


def test_a_slot_of_somebody_else_or_of_nobody(store):
    scene = Scene(store, [ONE], overlap=2)
    taken, bob = scene.take().slot, scene.who("bob")
    with store.read() as session:
        free = session.scalars(select(SlotRow.public_id).where(SlotRow.user_id.is_(None))).one()
    for slot, kind in ((taken, ConflictError), (free, ForbiddenError), ("none", NotFoundError)):
        with refused(kind):
            record(store, slot, bob, act("label", 0, "pos"))
    assert log(store) == []
    # Nobody holds the second.
    assert read_annotation(store, free).labels == (None,)


def test_a_late_person_continues_unless_somebody_took_the_trace(store):
    scene = Scene(store, [ONE], overlap=2)
    scene.take("third")
    slot = scene.take().slot
    scene.do("label", 0, "pos")
    scene.expire()
    scene.do("label", 0, "neu")
    assert scene.next("bob") is None
    scene.expire()
    assert scene.take("bob").slot == slot
    with refused(ConflictError):
        scene.do("label", 0, "neg")
    # What the first one did stays, and is not the second one's.
    assert [event.new for event in log(store)] == ["pos", "neu"]
    assert scene.annotation("bob").labels == (None,)
    assert read_annotation(store, slot, scene.who("ann").id).labels == ("neu",)
    # Whoever gets a lost trace again continues, in another slot.
    scene.expire("third")
    assert scene.take().slot != slot
    assert scene.annotation().labels == ("neu",)


def test_every_act_renews_the_lease(store):
    scene = Scene(store, [THREE], lease=100)
    scene.take()
    with store.write() as session:
        session.execute(update(SlotRow).values(expires=now() + timedelta(seconds=5)))
    scene.do("label", 0, "pos")
    with store.read() as session:
        left = session.scalars(select(SlotRow.expires)).one() or now()
    assert timedelta(seconds=60) < left - now() <= timedelta(seconds=100)


@pytest.mark.parametrize("kind", ["skip", "withdraw"])
def test_a_trace_that_is_given_up_goes_to_somebody_else(store, kind):
    scene = Scene(store, [ONE])
    if kind == "withdraw":
        scene.label()
    mine = scene.tasks.get("ann") or scene.take()
    scene.do(kind, None, "I know the author." if kind == "skip" else None)
    assert slots(store) == [("skipped", scene.who("ann").id), ("free", None)]
    assert scene.next() is None
    theirs = scene.take("bob")
    assert (theirs.item_id, theirs.slot == mine.slot) == (mine.item_id, False)
    assert scene.next("third") is None


def test_public_ids_tell_neither_order_nor_gaps(store):
    campaign(store, [ONE, TWO], overlap=50)
    with store.write() as session:
        # As a hidden gold item's is made, long after the others.
        for item in (1, 2):
            add_slot(session, session.get_one(ItemRow, item))
    with store.read() as session:
        public = list(session.scalars(select(SlotRow.public_id).order_by(SlotRow.id)))
    assert len(set(public)) == 102
    assert all(len(one) == 16 and set(one) <= set("0123456789abcdef") for one in public)
    # Of 102 in a random order, hardly ever more than 80 or fewer than 20 are larger than the one before.
    assert 20 < sum(one < other for one, other in pairwise(public)) < 80


@pytest.mark.parametrize("link", ["1", "", "00000000", "x" * 300, "a\x00"])
def test_a_link_to_no_slot_says_where_to_go_on(scene, link):
    with refused(NotFoundError):
        read_annotation(scene.store, link)


def test_evidence_is_the_newest_step_in_view_unless_another_is_named(store):
    scene = Scene(store, [FOUR], view="stepwise")
    scene.take()
    for step in range(3):
        scene.do("label", step, "pos")
        scene.do("reveal", None, step + 2)
    scene.do("label", 0, "neg")
    assert scene.annotation().evidence == (3, None, None, None)
    scene.do("evidence", 0, 1)
    assert scene.annotation().evidence == (1, None, None, None)
    scene.do("evidence", 0, None)
    assert scene.undo().annotation.evidence == (1, None, None, None)


def test_an_event_of_no_kind_needs_a_cause():
    with refused():
        NewEvent(key="a")
