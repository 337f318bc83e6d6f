"""Which steps are disagreed upon, and how far a campaign is decided."""

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.labelling.results.annotations import iterate_annotations
from stepsight.storage.labelling.results.decisions import decide
from stepsight.storage.labelling.results.disagreements import disagreed_steps, read_adjudication
from stepsight.storage.people.users import Role
from tests.storage.labelling.samples import TRACES, campaign, do, key, label_all, people, person, take


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
