"""Which steps are disagreed upon, how far a campaign is decided, and decisions, which nothing takes away."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import select, update

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import ConflictError, NotFoundError
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.labelling.results.adjudication import (
    decide,
    disagreed_steps,
    past_decisions,
    read_adjudication,
    read_decisions,
)
from stepsight.storage.labelling.results.annotations import iterate_annotations
from stepsight.storage.people.users import Role
from tests.messages import refused
from tests.storage.labelling.samples import TRACES, campaign, do, key, label_all, people, person, take


@pytest.fixture
def judge(store):
    return person(store, "judge", Role.ADJUDICATOR)


@pytest.fixture
def first(store):
    return campaign(store, overlap=2)


@pytest.fixture
def task(store, first):
    """Two people have labelled its two steps differently."""
    anna, ben = people(store, 2)
    found = take(store, first, anna)
    label_all(store, found, anna, ["pos", "neg"])
    label_all(store, take(store, first, ben), ben, ["neu", "pos"])
    return found


def test_the_last_one_is_in_force_and_all_are_kept(store, first, task, judge):
    decide(store, first.id, task.item_id, 0, "neu", "Nothing needs it.", judge, key())
    decide(store, first.id, task.item_id, 1, None, "Cannot be told.", judge, key())
    boss = person(store, "boss")
    last = decide(store, first.id, task.item_id, 0, "pos", "The end needs it.", boss, key())
    found = read_decisions(store, first.id)
    assert {place: (one.label, one.reason, one.user) for place, one in found.items()} == {
        (task.item_id, 0): ("pos", "The end needs it.", "boss"),
        (task.item_id, 1): (None, "Cannot be told.", "judge"),
    }
    assert found[task.item_id, 0] == last
    assert [one.label for one in past_decisions(store, task.item_id)] == ["neu", None, "pos"]
    # What the annotators said stays.
    assert [answer.labels for answer in iterate_annotations(store, first.id)] == [("pos", "neg"), ("neu", "pos")]


def test_one_that_was_not_seen_is_not_replaced(store, first, task, judge):
    where, boss = (store, first.id, task.item_id, 0), person(store, "boss")
    made = decide(*where, "neu", "So.", judge, key(), after=0)
    with refused(ConflictError):
        decide(*where, "pos", "No.", boss, key(), after=0)
    # One of another step stands against nothing.
    decide(store, first.id, task.item_id, 1, "neg", "So.", judge, key(), after=0)
    last = decide(*where, "pos", "No.", boss, key(), after=made.event_id)
    assert read_decisions(store, first.id)[task.item_id, 0] == last
    with refused(ConflictError):
        decide(*where, "neg", "Yes.", judge, key(), after=made.event_id)


def test_as_an_event(store, first, task, judge):
    decide(store, first.id, task.item_id, 0, "neu", " So. ", judge, "key-a")
    decide(store, first.id, task.item_id, 0, "pos", "No.", judge, "key-b")
    with store.read() as session:
        one, two = session.scalars(select(EventRow).where(EventRow.kind == "decide").order_by(EventRow.id))
    assert (one.old, one.new) == (None, {"label": "neu", "reason": "So.", "own": False})
    assert (two.old, two.new["label"]) == (one.new, "pos")
    assert (one.slot_id, one.step, one.guideline, one.view, one.cause) == (None, 0, 1, "whole", "")


def test_an_adjudicator_who_labelled_the_trace_is_marked(store, first, task):
    (anna,) = people(store, 1)
    assert decide(store, first.id, task.item_id, 0, "pos", "Mine.", replace(anna, role=Role.ADMIN), key()).own
    assert read_decisions(store, first.id)[task.item_id, 0].own


def test_the_majoritys_label_needs_no_reason(store, first, judge):
    made = campaign(store, None, name="three", overlap=3)
    for user, labels in zip(people(store, 3), (["pos", "neg"], ["pos", "unsure"], ["neg", "neu"]), strict=True):
        task = take(store, made, user)
        label_all(store, task, user, labels)
    where = (store, made.id, task.item_id)
    assert decide(*where, 0, "pos", "", judge, key()).reason == ""
    assert decide(*where, 0, "pos", "It is.", judge, key()).reason == "It is."
    # Another label, none at all, and a step on which nobody says the same as another.
    for step, label in ((0, "neg"), (0, None), (1, "neg"), (1, None)):
        with refused():
            decide(*where, step, label, "", judge, key())
    assert len(past_decisions(store, task.item_id)) == 2


def test_a_request_that_is_repeated(store, first, task, judge):
    made = decide(store, first.id, task.item_id, 0, "neu", "So.", judge, "same")
    assert decide(store, first.id, task.item_id, 0, "neu", "So.", judge, "same") == made
    assert len(past_decisions(store, task.item_id)) == 1
    for step, label, reason in ((0, "pos", "So."), (0, "neu", "Not so."), (1, "neu", "So.")):
        with refused(ConflictError):
            decide(store, first.id, task.item_id, step, label, reason, judge, "same")
    # A key that an annotator used in a slot is another person's; the same person's is refused.
    (anna,) = people(store, 1)
    with store.read() as session:
        used = session.scalar(select(EventRow.key).where(EventRow.user_id == anna.id).limit(1))
    assert used is not None
    with refused(ConflictError):
        decide(store, first.id, task.item_id, 0, "neu", "So.", anna, used)


def test_a_request_that_comes_twice_at_once(store, first, task, judge):
    with ThreadPoolExecutor(4) as pool:
        made = list(
            pool.map(lambda _: decide(store, first.id, task.item_id, 0, "neu", "So.", judge, "same"), range(4))
        )
    assert made == [made[0]] * 4
    assert len(past_decisions(store, task.item_id)) == 1


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"item_id": 99999}, NotFoundError),
        ({"item_id": 2**40}, NotFoundError),
        ({"campaign_id": 99999}, NotFoundError),
        ({"step": 2}, UserError),
        ({"step": -1}, UserError),
        ({"label": "unsure"}, UserError),
        ({"reason": " "}, UserError),
        ({"reason": "x" * 5000}, UserError),
        ({"key": ""}, UserError),
        ({"key": "a b"}, UserError),
    ],
)
def test_refusals(store, first, task, judge, changes, kind):
    given = {"campaign_id": first.id, "item_id": task.item_id, "step": 0, "label": "neu", "reason": "So."}
    with refused(kind):
        decide(store, **(given | {"user": judge, "key": key()} | changes))
    assert read_decisions(store, first.id) == {}


def test_a_trace_that_nobody_submitted_cannot_be_decided(store, first, task, judge):
    (anna,) = people(store, 1)
    begun = take(store, first, anna)
    with refused():
        decide(store, first.id, begun.item_id, 0, "pos", "So.", judge, key())


def test_a_trace_that_has_changed(store, first, task, judge):
    with store.write() as session:
        session.execute(update(TraceRow).where(TraceRow.id == task.trace.trace_id).values(digest="0" * 64))
    with refused(ConflictError):
        decide(store, first.id, task.item_id, 0, "pos", "So.", judge, key())


def test_a_closed_campaign(store, first, task, judge):
    close_campaign(store, first.id)
    assert decide(store, first.id, task.item_id, 0, "pos", "So.", judge, key()).label == "pos"


@pytest.mark.parametrize(
    ("said", "disagreed"),
    [
        (["pos", "pos"], False),
        (["pos", "neg"], True),
        (["neu", "pos", "pos"], True),
        # Nothing said is no opinion.
        (["pos", None], False),
        ([None, None], False),
        # Unsure asks for somebody else, even where nobody contradicts.
        (["unsure", "unsure"], True),
        (["unsure"], True),
        (["pos"], False),
    ],
)
def test_a_step(said, disagreed):
    assert disagreed_steps([[label] for label in said]) == ((0,) if disagreed else ())


def test_no_annotations_have_no_disagreement():
    assert disagreed_steps([]) == ()


def test_a_campaign(store):
    (anna, ben), boss = people(store, 2), person(store, "judge", Role.ADJUDICATOR)
    first = campaign(store, overlap=2)
    assert read_adjudication(store, first.id).next_open() is None
    two = take(store, first, anna)
    label_all(store, two, anna, ["pos", "neg"])
    label_all(store, take(store, first, ben), ben, ["neu", "neg"])
    three = take(store, first, anna)
    label_all(store, three, anna, ["pos", "neu", "pos"])
    slot = take(store, first, ben)
    label_all(store, slot, ben, ["pos", "unsure", "neg"])
    # Of the last trace both say the same.
    for who in (anna, ben):
        label_all(store, take(store, first, who), who, ["pos"])
    found = read_adjudication(store, first.id)
    assert [(one.item_id, one.steps) for one in found.disagreements] == [
        (two.item_id, (0,)),
        (three.item_id, (1, 2)),
    ]
    assert [answer.user for answer in found.disagreements[0].annotations] == ["annotator 1", "annotator 2"]
    assert (found.steps, found.decided) == (3, 0)
    decide(store, first.id, three.item_id, 1, "neu", "As the guideline says.", boss, key())
    found = read_adjudication(store, first.id)
    assert (found.steps, found.decided) == (3, 1)
    assert found.disagreements[1].undecided(found.decisions) == (2,)
    # From the item given onwards, then from the start.
    order = [found.next_open(after) for after in (None, two.item_id, three.item_id)]
    assert [one and one.item_id for one in order] == [two.item_id, three.item_id, two.item_id]
    # Somebody who changes their mind takes a disagreement away.
    do(store, slot.slot_id, ben, "reopen")
    found = read_adjudication(store, first.id)
    assert [(one.item_id, one.steps) for one in found.disagreements] == [(two.item_id, (0,))]
    assert (found.steps, found.decided) == (1, 0)


def test_hidden_gold_items_are_not_decided(store):
    (anna,) = people(store, 1)
    tasks = [Trace.of(f"Task {number}", ["One."], id=f"task {number}") for number in range(8)]
    first = campaign(store, [*tasks, *TRACES], conditions=TraceFilter(text="Task"), gold_rate=0.5)
    while (task := assign_next(store, first.id, anna)) is not None:
        label_all(store, task, anna, ["unsure"] * len(task.trace.steps))
    chosen = [answer.chosen for answer in iterate_annotations(store, first.id)]
    assert chosen.count("ordered") == 8
    assert "gold" in chosen
    found = read_adjudication(store, first.id)
    assert [one.annotations[0].chosen for one in found.disagreements] == ["ordered"] * 8
