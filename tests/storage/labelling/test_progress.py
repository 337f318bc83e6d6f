"""How far a campaign is, and how people do on the gold items before its own traces."""

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.labelling.progress import (
    AnnotatorProgress,
    CampaignProgress,
    annotator_progress,
    campaign_progress,
)
from tests.messages import refused
from tests.storage.labelling.samples import ONE, TWO, campaign, do, label_all, people, person, take
from tests.storage.samples import add


def test_it_counts_slots_and_traces(store):
    made = campaign(store, [ONE, TWO], overlap=2)
    one, other, third = people(store, 3)
    assert campaign_progress(store, made.id) == CampaignProgress(
        submitted=0, slots=4, mine=0, items_done=0, items=2
    )
    assert annotator_progress(store, made.id) == []
    label_all(store, take(store, made, one), one, ["pos"])
    assert campaign_progress(store, made.id, one.id) == CampaignProgress(
        submitted=1, slots=4, mine=1, items_done=0, items=2
    )
    label_all(store, take(store, made, other), other, ["pos"])
    assert campaign_progress(store, made.id, third.id) == CampaignProgress(
        submitted=2, slots=4, mine=0, items_done=1, items=2
    )
    # Skipped ones are replaced, so that still four are to be filled.
    do(store, take(store, made, one).slot_id, one, "skip", None, "No.")
    take(store, made, third)
    assert campaign_progress(store, made.id, one.id) == CampaignProgress(
        submitted=2, slots=4, mine=1, items_done=1, items=2
    )
    assert annotator_progress(store, made.id) == [
        AnnotatorProgress("annotator 1", submitted=1, leased=0, skipped=1),
        AnnotatorProgress("annotator 2", submitted=1, leased=0, skipped=0),
        AnnotatorProgress("annotator 3", submitted=0, leased=1, skipped=0),
    ]


def test_an_unknown_campaign_is_told(store):
    with pytest.raises(NotFoundError):
        campaign_progress(store, 99)


TASKS = [Trace.of(f"Task {i}", ["One.", "Two."], id=f"task {i}") for i in range(3)]
# Steps behind the first error say nothing, and neither does neu instead of pos.
KNOWN = [Trace.of(f"Known {i}", ["a", "b", "c"], ["pos", "neg", None], id=f"known {i}") for i in range(4)]
RIGHT, WRONG = ["neu", "neg", "neg"], ["pos", "unsure", "pos"]


def make(store, **changes):
    add(store, [*TASKS, *KNOWN], "sums")
    return campaign(store, None, conditions=TraceFilter(text="Task"), **{"qualification_items": 3} | changes)


def answer(store, made, user, *answers):
    for labels in answers:
        label_all(store, take(store, made, user), user, labels)


def result(store, made):
    return annotator_progress(store, made.id)[0].qualification


def test_gold_items_come_first_and_the_queue_follows(store):
    made = make(store)
    ann, bob = person(store, "ann"), person(store, "bob")
    tasks = []
    for labels in (RIGHT, WRONG, RIGHT):
        task = take(store, made, ann)
        tasks.append(task.trace.problem)
        label_all(store, task, ann, labels)
    assert all(problem.startswith("Known") for problem in tasks)
    assert result(store, made) == "2 of 3 right"
    assert take(store, made, ann).trace.problem == "Task 0"
    # Others have the same ones, which are no part of what is left to do.
    assert take(store, made, bob).trace.problem == tasks[0]
    answer(store, made, ann, *[["pos", "pos"]] * 3)
    found = campaign_progress(store, made.id)
    assert (found.items_done, found.items) == (3, 3)


def test_only_the_first_submission_counts_and_a_skipped_item_is_not_right(store):
    made = make(store)
    ann = person(store, "ann")
    first = take(store, made, ann)
    label_all(store, first, ann, WRONG)
    do(store, first.slot_id, ann, "reopen")
    label_all(store, first, ann, RIGHT)
    do(store, take(store, made, ann).slot_id, ann, "skip", None, "Hard.")
    assert result(store, made) == "2 of 3 done"
    answer(store, made, ann, RIGHT)
    assert result(store, made) == "1 of 3 right"


@pytest.mark.parametrize("items", [51, -1, 5])
def test_a_qualification_that_cannot_be_is_refused(sqlite_store, items):
    # Of the last there are too few gold items.
    with refused():
        make(sqlite_store, qualification_items=items)
