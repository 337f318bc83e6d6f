"""How far a campaign is."""

import pytest

from stepsight.storage.database.store import NotFoundError
from stepsight.storage.labelling.progress import (
    AnnotatorProgress,
    CampaignProgress,
    annotator_progress,
    campaign_progress,
)
from tests.storage.labelling.samples import ONE, TWO, campaign, do, label_all, people, take


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
