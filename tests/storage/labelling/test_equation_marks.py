"""Campaigns that mark the equations that fail: their labels are not blind, and the log says so."""

from pathlib import Path

import pytest

from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import Campaign, find_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.people.blindness import is_something_hidden
from tests.storage.labelling.samples import TWO, campaign, person


@pytest.fixture
def marked(store: Store) -> Campaign:
    return campaign(store, [TWO], name="marked", shows_equations=True)


def test_no_campaign_marks_them_unless_it_is_told_to(store: Store) -> None:
    made = campaign(store)
    assert (made.shows_equations, made.blind) == (False, True)


def test_a_campaign_that_marks_them_is_not_blind(store: Store, marked: Campaign) -> None:
    assert (marked.shows, marked.blind) == ("nothing", False)
    assert not is_something_hidden(store)
    campaign(store, None, name="blind")
    assert is_something_hidden(store)


def test_a_log_keeps_it(sqlite_store: Store, tmp_path: Path) -> None:
    made = campaign(sqlite_store, [TWO], name="marked", shows_equations=True)
    path = tmp_path / "log.jsonl"
    export_labels(sqlite_store, made.name, path, "events")
    import_labels(sqlite_store, path, person(sqlite_store, "boss"), campaign="same")
    assert find_campaign(sqlite_store, "same").shows_equations
