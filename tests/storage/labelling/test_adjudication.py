"""Which steps are disagreed upon, how far a campaign is decided, and decisions, which nothing takes away."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import ConflictError, NotFoundError
from stepsight.storage.labelling.adjudication import (
    AnnotatedItem,
    decide,
    past_decisions,
    read_adjudication,
    read_decisions,
)
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.people.users import Role
from tests.messages import refused
from tests.storage.labelling.samples import TRACES, Scene, key, person


@pytest.fixture
def judge(store):
    return person(store, "judge", Role.ADJUDICATOR)


@pytest.fixture
def scene(store):
    """Two people have labelled the two steps of its first trace differently."""
    made = Scene(store, overlap=2)
    made.label("pos neg")
    made.label("neu pos", by="bob")
    return made


def place(scene):
    """The store, and the ids of the campaign and of the item labelled first."""
    return scene.store, scene.campaign.id, scene.answers()[0].item.id


def test_the_last_one_is_in_force_and_all_are_kept(store, scene, judge):
    where = place(scene)
    decide(*where, 0, "neu", "Nothing needs it.", judge, key())
    decide(*where, 1, None, "Cannot be told.", judge, key())
    last = decide(*where, 0, "pos", "The end needs it.", scene.who("boss"), key())
    decisions = read_decisions(store, scene.campaign.id)
    assert {(step, one.label, one.reason, one.user) for (_, step), one in decisions.items()} == {
        (0, "pos", "The end needs it.", "boss"),
        (1, None, "Cannot be told.", "judge"),
    }
    assert decisions[where[2], 0] == last
    assert [one.label for one in past_decisions(store, where[2])] == ["neu", None, "pos"]
    # What the annotators said stays.
    assert [answer.labels for answer in scene.answers()] == [("pos", "neg"), ("neu", "pos")]


def test_one_that_was_not_seen_is_not_replaced(store, scene, judge):
    where, boss = place(scene), scene.who("boss")
    made = decide(*where, 0, "neu", "So.", judge, key(), after=0)
    with refused(ConflictError):
        decide(*where, 0, "pos", "No.", boss, key(), after=0)
    # One of another step stands against nothing.
    decide(*where, 1, "neg", "So.", judge, key(), after=0)
    last = decide(*where, 0, "pos", "No.", boss, key(), after=made.event_id)
    assert read_decisions(store, scene.campaign.id)[where[2], 0] == last
    with refused(ConflictError):
        decide(*where, 0, "neg", "Yes.", judge, key(), after=made.event_id)


def test_as_an_event(store, scene, judge):
    where = place(scene)
    decide(*where, 0, "neu", " So. ", judge, "key-a")
    decide(*where, 0, "pos", "No.", judge, "key-b")
    with store.read() as session:
        one, two = session.scalars(select(EventRow).where(EventRow.kind == "decide").order_by(EventRow.id))
    assert (one.old, one.new) == (None, {"label": "neu", "reason": "So.", "own": False})
    assert (two.old, two.new["label"]) == (one.new, "pos")
    assert (one.slot_id, one.step, one.guideline, one.view, one.cause) == (None, 0, 1, "whole", "")


def test_an_adjudicator_who_labelled_the_trace_is_marked(store, scene):
    own = decide(*place(scene), 0, "pos", "Mine.", replace(scene.who("ann"), role=Role.ADMIN), key())
    assert own.own
    assert read_decisions(store, scene.campaign.id)[own.item_id, 0] == own


def test_the_majoritys_label_needs_no_reason(store, judge):
    scene = Scene(store, overlap=3)
    for name, labels in (("ann", "pos neg"), ("bob", "pos unsure"), ("cy", "neg neu")):
        scene.label(labels, by=name)
    where = place(scene)
    assert decide(*where, 0, "pos", "", judge, key()).reason == ""
    assert decide(*where, 0, "pos", "It is.", judge, key()).reason == "It is."
    # Another label, none at all, and a step on which nobody says the same as another.
    for step, label in ((0, "neg"), (0, None), (1, "neg"), (1, None)):
        with refused():
            decide(*where, step, label, "", judge, key())
    assert len(past_decisions(store, where[2])) == 2


def test_a_request_that_is_repeated(store, scene, judge):
    where = place(scene)
    first, second = (decide(*where, 0, "neu", "So.", judge, "same") for _ in range(2))
    assert first == second
    assert len(past_decisions(store, where[2])) == 1
    for step, label, reason in ((0, "pos", "So."), (0, "neu", "Not so."), (1, "neu", "So.")):
        with refused(ConflictError):
            decide(*where, step, label, reason, judge, "same")
    # A key that an annotator used in a slot is another person's; the same person's is refused.
    ann = scene.who("ann")
    with store.read() as session:
        used = session.scalars(select(EventRow.key).where(EventRow.user_id == ann.id).limit(1)).one()
    with refused(ConflictError):
        decide(*where, 0, "neu", "So.", ann, used)


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
def test_refusals(scene, judge, changes, kind):
    store, campaign_id, item_id = place(scene)
    given = {"campaign_id": campaign_id, "item_id": item_id, "step": 0, "label": "neu", "reason": "So."}
    with refused(kind):
        decide(store, **(given | {"user": judge, "key": key()} | changes))
    assert read_decisions(store, campaign_id) == {}


def test_a_trace_that_has_changed_or_that_nobody_submitted_cannot_be_decided(store, scene, judge):
    begun = scene.take()
    with refused():
        decide(store, scene.campaign.id, begun.item_id, 0, "pos", "So.", judge, key())
    scene.change_trace("two")
    with refused(ConflictError):
        decide(*place(scene), 0, "pos", "So.", judge, key())


def test_a_closed_campaign_can_be_decided(store, scene, judge):
    close_campaign(store, scene.campaign.id)
    assert decide(*place(scene), 0, "pos", "So.", judge, key()).label == "pos"


@pytest.mark.parametrize(
    ("labels", "disagreed"),
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
def test_a_step_is_disagreed_upon(labels, disagreed):
    annotations: Any = tuple(SimpleNamespace(labels=(label,)) for label in labels)
    assert AnnotatedItem(annotations, {}).disagreed == ((0,) if disagreed else ())


def test_how_far_a_campaign_is_decided(store, scene, judge):
    two = place(scene)[2]
    three = scene.label("pos neu pos").item_id
    scene.label("pos unsure neg", by="bob")
    slot = scene.tasks["bob"]
    # Of the last trace both say the same.
    scene.label("pos")
    scene.label("pos", by="bob")

    def state() -> tuple[list[tuple[int, tuple[int, ...]]], int, int]:
        adjudication = read_adjudication(store, scene.campaign.id)
        items = [(item.item.id, item.disagreed) for item in adjudication.items]
        return items, adjudication.steps, adjudication.decided

    assert state() == ([(two, (0, 1)), (three, (1, 2))], 4, 0)
    decide(store, scene.campaign.id, three, 1, "neu", "As the guideline says.", judge, key())
    assert state() == ([(two, (0, 1)), (three, (1, 2))], 4, 1)
    adjudication = read_adjudication(store, scene.campaign.id)
    assert [one.user for one in adjudication.items[0].annotations] == ["ann", "bob"]
    assert adjudication.items[1].undecided == (2,)
    assert (adjudication.find(three), adjudication.find(99)) == (adjudication.items[1], None)
    # From the item given onwards, then from the start.
    order = [adjudication.next_open(after) for after in (None, two, three)]
    assert [item and item.item.id for item in order] == [two, three, two]
    # Somebody who changes their mind takes a disagreement away.
    scene.tasks["bob"] = slot
    scene.do("reopen", by="bob")
    assert state() == ([(two, (0, 1))], 2, 0)


def test_hidden_gold_items_are_not_decided(store):
    tasks = [Trace.of(f"Task {number}", ["One."], id=f"task {number}") for number in range(8)]
    scene = Scene(store, [*tasks, *TRACES], conditions=TraceFilter(text="Task"), gold_rate=0.5)
    while (task := scene.next()) is not None:
        scene.label(" ".join(["unsure"] * len(task.trace.steps)))
    chosen = [answer.item.chosen for answer in scene.answers()]
    assert (chosen.count("ordered"), "gold" in chosen) == (8, True)
    items = read_adjudication(store, scene.campaign.id).items
    assert [item.item.chosen for item in items] == ["ordered"] * 8
