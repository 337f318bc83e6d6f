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
from tests.storage.labelling.samples import ONE, TWO, Scene
from tests.storage.samples import add

TASKS = [Trace.of(f"Task {i}", ["One.", "Two."], id=f"task {i}") for i in range(3)]
# Steps behind the first error say nothing, and neither does neu instead of pos.
KNOWN = [Trace.of(f"Known {i}", ["a", "b", "c"], ["pos", "neg", None], id=f"known {i}") for i in range(4)]
RIGHT, WRONG = "neu neg neg", "pos unsure pos"


def test_it_counts_slots_and_traces(store):
    scene = Scene(store, [ONE, TWO], overlap=2)

    def progress(name: str) -> CampaignProgress:
        return campaign_progress(store, scene.campaign.id, scene.who(name).id)

    # Submitted slots, all slots, own ones, complete traces, and all.
    assert progress("ann") == CampaignProgress(0, 4, 0, 0, 2)
    assert annotator_progress(store, scene.campaign.id) == []
    scene.label()
    assert progress("ann") == CampaignProgress(1, 4, 1, 0, 2)
    scene.label(by="bob")
    assert progress("cy") == CampaignProgress(2, 4, 0, 1, 2)
    # Skipped ones are replaced, so that still four are to be filled.
    scene.take()
    scene.do("skip", None, "No.")
    scene.take("cy")
    assert progress("ann") == CampaignProgress(2, 4, 1, 1, 2)
    assert annotator_progress(store, scene.campaign.id) == [
        AnnotatorProgress("ann", submitted=1, leased=0, skipped=1),
        AnnotatorProgress("bob", submitted=1, leased=0, skipped=0),
        AnnotatorProgress("cy", submitted=0, leased=1, skipped=0),
    ]
    with pytest.raises(NotFoundError):
        campaign_progress(store, 99)


def qualifying(store, items=3):
    add(store, [*TASKS, *KNOWN], "sums")
    return Scene(store, None, conditions=TraceFilter(text="Task"), qualification_items=items)


def result(scene):
    return annotator_progress(scene.store, scene.campaign.id)[0].qualification


def test_gold_items_come_first_and_the_queue_follows(store):
    scene = qualifying(store)
    problems = [scene.label(labels).trace.problem for labels in (RIGHT, WRONG, RIGHT)]
    assert all(problem.startswith("Known") for problem in problems)
    assert result(scene) == "2 of 3 right"
    assert scene.take().trace.problem == "Task 0"
    # Others have the same ones, which are no part of what is left to do.
    assert scene.take("bob").trace.problem == problems[0]
    for _ in TASKS:
        scene.label()
    progress = campaign_progress(store, scene.campaign.id)
    assert (progress.items_done, progress.items) == (3, 3)


def test_only_the_first_submission_counts_and_a_skipped_item_is_not_right(store):
    scene = qualifying(store)
    scene.label(WRONG)
    scene.do("reopen")
    for step, label in enumerate(RIGHT.split()):
        scene.do("label", step, label)
    scene.do("submit")
    scene.take()
    scene.do("skip", None, "Hard.")
    assert result(scene) == "2 of 3 done"
    scene.label(RIGHT)
    assert result(scene) == "1 of 3 right"


@pytest.mark.parametrize("items", [51, -1, 5])
def test_a_qualification_that_cannot_be_is_refused(sqlite_store, items):
    # Of the last there are too few gold items.
    with refused():
        qualifying(sqlite_store, items)
