"""The steps that people name as those that changed a label."""

import json

import pytest
from sqlalchemy import select

from stepsight.storage.database.labelling_schema import CampaignRow, EventRow
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.campaigns import find_campaign, get_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.results.annotations import UNASKED, iterate_annotations
from stepsight.storage.labelling.results.ratings import read_ratings
from stepsight.storage.people.users import local_user
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.samples import (
    DATASET,
    FOUR,
    campaign,
    change_minds,
    do,
    person,
    take,
)
from tests.storage.samples import add


@pytest.fixture
def other(tmp_path, sqlite_template):
    """A second store that has the same trace."""
    path = tmp_path / "other.db"
    path.write_bytes(sqlite_template.read_bytes())
    with open_store(str(path)) as opened:
        add(opened, [FOUR], DATASET)
        yield opened


def test_a_changed_label_has_the_newest_step_as_evidence_unless_it_is_taken_back(store):
    campaign_id, slot = change_minds(store)
    do(store, slot, person(store, "ann"), "submit")
    (found,) = iterate_annotations(store, campaign_id)
    assert (found.labels, found.first) == (("neg", "neg", "pos", "pos"), ("pos", "pos", "pos", "pos"))
    assert found.evidence == {0: 2}


def test_a_log_of_a_campaign_that_asked_nobody_has_no_evidence_but_what_is_named(store, other, tmp_path):
    campaign_id, slot = change_minds(store)
    do(store, slot, person(store, "ann"), "submit")
    with store.write() as session:
        # As an earlier version left it. Nobody named a step for step 1, and the one of step 2 was taken back.
        row = session.get_one(CampaignRow, campaign_id)
        row.settings = row.settings | {"asks_evidence": False}
    (found,) = iterate_annotations(store, campaign_id)
    assert (found.evidence, found.unasked) == ({}, 2)
    (rated,) = read_ratings(store, get_campaign(store, campaign_id)).queue.traces
    assert rated.unasked == 2
    assert export_labels(store, "first", tmp_path / "csv", "csv", per_annotator=True).left_out == {UNASKED: 2}
    for format in ("events", "jsonl"):
        left_out = export_labels(store, "first", tmp_path / format, format).left_out
        assert left_out == ({} if format == "events" else {UNASKED: 2})
    import_labels(other, tmp_path / "events", local_user(other))
    (again,) = iterate_annotations(other, find_campaign(other, "first").id)
    assert (again.evidence, again.unasked) == ({}, 2)


@each("step, new", [(0, 4), (2, 1), (1, 1), (0, "2")])
def test_evidence_at_a_wrong_place_is_not_stored(sqlite_store, step, new):
    # Each case follows on the one before, since none is stored.
    made = person(sqlite_store, "ann")
    with sqlite_store.read() as session:
        slot = session.scalar(select(EventRow.slot_id).limit(1))
    slot = change_minds(sqlite_store)[1] if slot is None else slot
    before = read_annotation(sqlite_store, slot)
    with refused():
        do(sqlite_store, slot, made, "evidence", step, new)
    assert read_annotation(sqlite_store, slot) == before


def test_a_whole_trace_has_no_evidence(store):
    ann = person(store, "ann")
    slot = take(store, campaign(store, [FOUR]), ann).slot_id
    do(store, slot, ann, "label", 0, "neg")
    with refused():
        do(store, slot, ann, "evidence", 0, 2)


def test_kinds_of_events_that_went_are_passed_over_in_a_log(store, other, tmp_path):
    """As the version before 1.0.0 wrote them."""
    _, slot = change_minds(store)
    do(store, slot, person(store, "ann"), "submit")
    export_labels(store, "first", tmp_path / "log", "events")
    head, *lines = (tmp_path / "log").read_text().splitlines()
    last = json.loads(lines[-1])
    gone = [
        last | {"event": kind, "step": step, "new": new, "key": kind}
        for kind, step, new in (
            ("repaired", 0, 2),
            ("notices", 2, 0),
            ("borders", None, [0, 2]),
            ("outcome", None, "failed"),
        )
    ]
    (tmp_path / "old").write_text("\n".join([head, *lines[:-1], *map(json.dumps, gone), lines[-1]]))
    for added in (True, False):
        assert bool(import_labels(other, tmp_path / "old", local_user(other)).added) is added
    export_labels(other, "first", tmp_path / "again", "events")
    assert (tmp_path / "again").read_text() == (tmp_path / "log").read_text()


def test_links_are_the_same_after_a_round_trip(store, other, tmp_path):
    _, slot = change_minds(store)
    do(store, slot, person(store, "ann"), "submit")
    for format in ("jsonl", "events"):
        path = tmp_path / format
        export_labels(store, "first", path, format)
    answer = json.loads((tmp_path / "jsonl").read_text())["answers"][0]
    assert answer["evidence"] == [2, None, None, None]
    import_labels(other, tmp_path / "events", local_user(other))
    export_labels(other, "first", tmp_path / "again", "jsonl")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "jsonl").read_bytes()
