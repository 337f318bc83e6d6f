"""The steps that people name: the one that repairs a wrong step, and the one that changed a label."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from stepsight.storage.database.labelling_schema import CampaignRow, EventRow
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.labelling.annotation import NewEvent
from stepsight.storage.labelling.campaigns import find_campaign, get_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.record import read_annotation, record
from stepsight.storage.labelling.results.annotations import UNASKED, iterate_annotations
from stepsight.storage.labelling.results.consensus import LabelledTraces
from stepsight.storage.labelling.results.decisions import decide, read_decisions
from stepsight.storage.labelling.results.disagreements import read_adjudication
from stepsight.storage.labelling.results.ratings import read_ratings
from stepsight.storage.people.users import Role, local_user
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.samples import (
    DATASET,
    FOUR,
    campaign,
    change_minds,
    do,
    key,
    label_all,
    people,
    person,
    take,
)
from tests.storage.samples import add


@pytest.fixture
def other(tmp_path: Path, sqlite_template: Path) -> Iterator[Store]:
    """A second store that has the same trace."""
    path = tmp_path / "other.db"
    path.write_bytes(sqlite_template.read_bytes())
    with open_store(str(path)) as opened:
        add(opened, [FOUR], DATASET)
        yield opened


def test_a_changed_label_has_the_newest_step_as_evidence_unless_it_is_taken_back(store: Store) -> None:
    campaign_id, slot = change_minds(store)
    do(store, slot, person(store, "ann"), "submit")
    (found,) = iterate_annotations(store, campaign_id)
    assert (found.labels, found.first) == (("neg", "neg", "pos", "pos"), ("pos", "pos", "pos", "pos"))
    assert (found.evidence, found.repaired, found.notices) == ({0: 2}, {0: 2}, {2: 0})


def test_borders_of_sections_are_stored_and_go_round(store: Store, other: Store, tmp_path: Path) -> None:
    (ann,) = people(store, 1)
    made = campaign(store, [FOUR])
    slot = take(store, made, ann).slot_id
    do(store, slot, ann, "borders", None, [0, 2])
    do(store, slot, ann, "borders", None, [0, 1, 3])
    annotation = record(store, slot, ann, NewEvent(key=key(), cause="undo")).annotation
    assert annotation.borders == (0, 2)
    label_all(store, take(store, made, ann), ann, ["pos", "neg", "pos", "pos"])
    export_labels(store, made.name, tmp_path / "table", "csv", per_annotator=True)
    rows = list(csv.DictReader((tmp_path / "table").read_text("utf-8-sig").splitlines()))
    assert [row["section"] for row in rows] == ["1", "1", "2", "2"]
    for format in ("events", "jsonl"):
        export_labels(store, made.name, tmp_path / format, format)
    (row,) = map(json.loads, (tmp_path / "jsonl").read_text().splitlines())
    assert row["answers"][0]["borders"] == [0, 2]
    import_labels(other, tmp_path / "events", local_user(other))
    (found,) = iterate_annotations(other, find_campaign(other, made.name).id)
    assert found.borders == (0, 2)


def test_borders_that_cannot_be_and_those_at_hidden_steps_are_refused(sqlite_store: Store) -> None:
    (ann,) = people(sqlite_store, 1)
    slot = take(sqlite_store, campaign(sqlite_store, [FOUR]), ann).slot_id
    for borders in ([], [1, 2], [0, 2, 2], [0, 4], [0, -1], [0, True], "0"):
        with refused():
            do(sqlite_store, slot, ann, "borders", None, borders)
    slot = take(sqlite_store, campaign(sqlite_store, None, name="steps", view="stepwise"), ann).slot_id
    with refused():
        do(sqlite_store, slot, ann, "borders", None, [0, 1])


def test_a_log_of_a_campaign_that_asked_nobody_has_no_evidence_but_what_is_named(
    store: Store, other: Store, tmp_path: Path
) -> None:
    campaign_id, slot = change_minds(store)
    do(store, slot, person(store, "ann"), "submit")
    with store.write() as session:
        # As an earlier version left it. Nobody named a step for step 1, and the one of step 2 was taken back.
        session.execute(update(CampaignRow).values(asks_evidence=False))
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


def test_the_repair_that_most_name_is_the_consensus_and_an_adjudicator_settles_a_tie(
    store: Store, other: Store, tmp_path: Path
) -> None:
    made = campaign(store, [FOUR], overlap=3)
    ann, ben, cat = people(store, 3)
    # Of the three, the last calls step 1 right; of the others, one sees no repair.
    for user, first, repair in ((ann, "neg", 2), (ben, "neg", None), (cat, "pos", None)):
        slot = take(store, made, user).slot_id
        for step, label in enumerate([first, "neu", "pos", "pos"]):
            do(store, slot, user, "label", step, label)
        if repair is not None:
            do(store, slot, user, "repaired", 0, repair)
        do(store, slot, user, "submit")
    (shown,) = read_adjudication(store, made.id).disagreements
    (agreed,) = LabelledTraces(store, made)
    assert (shown.steps, agreed.labels, agreed.repaired) == ((0,), ("neg", "neu", "pos", "pos"), {})
    judge = person(store, "judge", Role.ADJUDICATOR)
    for label, repaired in (("pos", 2), ("neg", 0), ("neg", 4), ("neg", 2)):
        # The last is a tie, so it needs a reason.
        reason = "" if (label, repaired) == ("neg", 2) else "So."
        with refused():
            decide(store, made.id, shown.item_id, 0, label, reason, judge, key(), repaired=repaired)
    decide(store, made.id, shown.item_id, 0, "neg", "So.", judge, key(), repaired=2)
    (settled,) = LabelledTraces(store, made)
    assert (settled.repaired, [step.repaired for step in settled.relabelled().steps]) == (
        {0: 2},
        [2, None, None, None],
    )
    assert read_adjudication(store, made.id).decided == 1
    (converted,) = LabelledTraces(store, made, convention="unless-repaired")
    assert (converted.labels, converted.how) == (
        ("neg", "neg", "pos", "pos"), ("adjudicated", "convention", "majority", "majority")
    )  # fmt: skip
    export_labels(store, "first", tmp_path / "labels", "jsonl", convention="first-error")
    row = json.loads((tmp_path / "labels").read_text())
    assert (row["labels"], row["repaired"]) == (["neg", None, None, None], [3, None, None, None])
    assert [answer["labels"][1] for answer in row["answers"]] == ["neu"] * 3
    with refused():
        export_labels(store, "first", tmp_path / "log", "events", convention="first-error")
    export_labels(store, "first", tmp_path / "log", "events")
    import_labels(other, tmp_path / "log", local_user(other))
    assert [one.repaired for one in read_decisions(other, find_campaign(other, "first").id).values()] == [2]


@each(
    "kind, step, new",
    [
        ("repaired", 0, 4),
        ("repaired", 1, 1),
        ("repaired", 1, 0),
        ("repaired", 2, 3),
        ("evidence", 0, 4),
        ("evidence", 2, 1),
        ("evidence", 1, 1),
        ("evidence", 0, "2"),
        ("repaired", 0, -1),
        ("notices", 1, 2),
        ("notices", 1, 1),
        ("notices", 1, 9),
    ],
)
def test_a_link_to_a_wrong_place_is_not_stored(sqlite_store: Store, kind: str, step: int, new: Any) -> None:
    # Each case follows on the one before, since none is stored.
    made = person(sqlite_store, "ann")
    with sqlite_store.read() as session:
        slot = session.scalar(select(EventRow.slot_id).limit(1))
    slot = change_minds(sqlite_store)[1] if slot is None else slot
    before = read_annotation(sqlite_store, slot)
    with refused():
        do(sqlite_store, slot, made, kind, step, new)
    assert read_annotation(sqlite_store, slot) == before


def test_a_step_that_is_not_revealed_repairs_nothing_and_a_whole_trace_has_no_evidence(store: Store) -> None:
    for name, view in (("first", "stepwise"), ("second", "whole")):
        made = campaign(store, [FOUR] if name == "first" else None, name=name, view=view)
        ann = person(store, "ann")
        slot = take(store, made, ann).slot_id
        do(store, slot, ann, "label", 0, "neg")
        with refused():
            do(store, slot, ann, "repaired" if view == "stepwise" else "evidence", 0, 2)


def test_links_are_the_same_after_a_round_trip(store: Store, other: Store, tmp_path: Path) -> None:
    _, slot = change_minds(store)
    do(store, slot, person(store, "ann"), "submit")
    for format in ("jsonl", "events"):
        path = tmp_path / format
        export_labels(store, "first", path, format)
    answer = json.loads((tmp_path / "jsonl").read_text())["answers"][0]
    assert (answer["evidence"], answer["repaired"]) == ([2, None, None, None], [2, None, None, None])
    row = json.loads((tmp_path / "jsonl").read_text())
    assert (answer["notices"], row["notices"]) == ([None, None, 0, None], [None, None, 1, None])
    import_labels(other, tmp_path / "events", local_user(other))
    export_labels(other, "first", tmp_path / "again", "jsonl")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "jsonl").read_bytes()
