"""Campaigns that mark the equations that fail: their labels are not blind, and the log says so."""

import json
from pathlib import Path

import pytest

from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import Campaign, find_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.queue import open_slot
from stepsight.storage.labelling.results.annotations import iterate_annotations
from stepsight.storage.labelling.results.ratings import read_ratings
from stepsight.storage.people.exposures import is_something_hidden, is_unblinded
from tests.storage.labelling.samples import NOTHING, TWO, campaign, label_all, people, person, take, together
from tests.storage.labelling.test_suggestions import events
from tests.storage.samples import evaluator


@pytest.fixture
def marked(store: Store) -> Campaign:
    return campaign(store, [TWO], name="marked", shows_equations=True)


def test_no_campaign_marks_them_unless_it_is_told_to(store: Store) -> None:
    made = campaign(store)
    assert (made.shows_equations, made.blind, made.shown) == (False, True, frozenset())


def test_a_campaign_that_marks_them_is_not_blind(store: Store, marked: Campaign) -> None:
    assert (marked.shows, marked.blind, marked.shown) == ("nothing", False, {"equations"})
    assert not is_something_hidden(store)
    campaign(store, None, name="blind")
    assert is_something_hidden(store)


def test_its_events_and_annotations_say_so_and_do_not_count_as_blind(store: Store, marked: Campaign) -> None:
    (ann,) = people(store, 1)
    label_all(store, take(store, marked, ann), ann, ["pos", "neg"])
    assert {event.kind: event.visible for event in events(store)} == {
        kind: NOTHING | {"equations": True} for kind in ("label", "submit")
    }
    (annotation,) = iterate_annotations(store, marked.id)
    assert annotation.exposed == {"equations"}
    assert together(store, marked.id) == []
    (kept,) = together(store, marked.id, exposed=True)
    assert kept.labels == ("pos", "neg")
    ratings = read_ratings(store, marked)
    assert (ratings.annotations, ratings.exposed) == (1, 1)


@pytest.mark.parametrize("what", ["equations", "scores"])
def test_marks_seen_in_one_campaign_are_an_exposure_in_another(store: Store, what: str) -> None:
    shown = {"shows": "scores", "evaluator": evaluator(store).id} if what == "scores" else {"shows_equations": True}
    first = campaign(store, [TWO], name="shows", **shown)
    second = campaign(store, None, name="blind")
    ann, ben = people(store, 2)
    take(store, first, ann)
    for who, labels in ((ann, ["pos", "neg"]), (ben, ["pos", "pos"])):
        label_all(store, take(store, campaign_of(store, second, who.name), who), who, labels)
    seen = {event.user_id: event.visible for event in events(store)}
    assert seen == {ann.id: NOTHING | {what: True}, ben.id: NOTHING}


def campaign_of(store: Store, made: Campaign, name: str) -> Campaign:
    """The blind campaign; for each person after the first another one of the same traces."""
    return made if name == "annotator 1" else campaign(store, None, name=f"blind to {name}")


def test_it_is_noted_when_a_slot_is_opened_again(store: Store, marked: Campaign) -> None:
    (ann,) = people(store, 1)
    slot = take(store, marked, ann).slot_id
    open_slot(store, slot, ann)
    other = campaign(store, None, name="blind")
    label_all(store, take(store, other, ann), ann, ["pos", "neg"])
    assert events(store)[-1].visible == NOTHING | {"equations": True}


def test_after_submission_everything_is_shown_unless_a_blind_campaign_has_the_trace(
    store: Store, marked: Campaign
) -> None:
    (ann,) = people(store, 1)
    task = take(store, marked, ann)
    label_all(store, task, ann, ["pos", "neg"])
    assert is_unblinded(store, ann.id, task.trace.trace_id)
    campaign(store, None, name="marks too", shows_equations=True)
    assert is_unblinded(store, ann.id, task.trace.trace_id)
    campaign(store, None, name="blind")
    assert not is_unblinded(store, ann.id, task.trace.trace_id)


def test_files_say_which_labels_were_made_with_marks_in_view(
    store: Store, marked: Campaign, tmp_path: Path
) -> None:
    (ann,) = people(store, 1)
    label_all(store, take(store, marked, ann), ann, ["pos", "neg"])
    path = tmp_path / "labels.jsonl"
    assert export_labels(store, "marked", path, "jsonl").left_out.popitem()[1] == 1
    export_labels(store, "marked", path, "jsonl", exposed=True, force=True)
    (row,) = map(json.loads, path.read_text().splitlines())
    assert [answer["exposed"] for answer in row["answers"]] == [["equations"]]


def test_a_log_keeps_it(sqlite_store: Store, tmp_path: Path) -> None:
    made = campaign(sqlite_store, [TWO], name="marked", shows_equations=True)
    path = tmp_path / "log.jsonl"
    export_labels(sqlite_store, made.name, path, "events")
    import_labels(sqlite_store, path, person(sqlite_store, "boss"), campaign="same")
    assert find_campaign(sqlite_store, "same").shows_equations
