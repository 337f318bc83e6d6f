"""How far a campaign is."""

import pytest

from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.labelling.progress import PersonProgress, Progress, people_progress, progress
from tests.storage.labelling.samples import ONE, TWO, campaign, do, label_all, people, take


def test_it_counts_slots_and_traces(store: Store) -> None:
    made = campaign(store, [ONE, TWO], overlap=2)
    one, other, third = people(store, 3)
    assert progress(store, made.id) == Progress(submitted=0, slots=4, mine=0, items_done=0, items=2)
    assert people_progress(store, made.id) == []
    label_all(store, take(store, made, one), one, ["pos"])
    assert progress(store, made.id, one.id) == Progress(submitted=1, slots=4, mine=1, items_done=0, items=2)
    label_all(store, take(store, made, other), other, ["pos"])
    assert progress(store, made.id, third.id) == Progress(submitted=2, slots=4, mine=0, items_done=1, items=2)
    # Skipped ones are replaced, so that still four are to be filled.
    do(store, take(store, made, one).slot_id, one, "skip", None, "No.")
    take(store, made, third)
    assert progress(store, made.id, one.id) == Progress(submitted=2, slots=4, mine=1, items_done=1, items=2)
    assert people_progress(store, made.id) == [
        PersonProgress("annotator 1", submitted=1, leased=0, skipped=1),
        PersonProgress("annotator 2", submitted=1, leased=0, skipped=0),
        PersonProgress("annotator 3", submitted=0, leased=1, skipped=0),
    ]


def test_an_unknown_campaign_is_told(store: Store) -> None:
    with pytest.raises(NotFoundError):
        progress(store, 99)
