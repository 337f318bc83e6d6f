"""Answers: what of the log counts in the end, and the steps that people name as those that changed a label."""

import json
from typing import Any

import pytest
from sqlalchemy import select, update

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import CampaignRow, EventRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.campaigns import add_guideline, find_campaign, get_campaign
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
    THREE,
    TRACES,
    campaign,
    change_minds,
    do,
    expire,
    key,
    label_all,
    people,
    person,
    take,
    undo,
)
from tests.storage.samples import add


def answers(store, of):
    return list(iterate_annotations(store, of.id))


def test_an_answer_says_all_that_was_said(store):
    made, user = campaign(store, [THREE]), person(store, "ann")
    task = take(store, made, user)
    do(store, task.slot_id, user, "label", 0, "neu", seconds=2.0)
    do(store, task.slot_id, user, "label", 0, "pos", seconds=0.5)
    do(store, task.slot_id, user, "label", 1, "neg", seconds=1.0)
    do(store, task.slot_id, user, "label", 2, "unsure")
    do(store, task.slot_id, user, "error", 1, "circular")
    do(store, task.slot_id, user, "comment", 2, "Is it?")
    do(store, task.slot_id, user, "comment", 0, "Mistaken.")
    do(store, task.slot_id, user, "comment", 0, None)
    do(store, task.slot_id, user, "correction", 1, "So 4.")
    do(store, task.slot_id, user, "flag", None, "Two problems.")
    add_guideline(store, made.id, "Be strict.", user)
    assert answers(store, made) == []
    submitted = do(store, task.slot_id, user, "submit", seconds=1.5)
    (found,) = answers(store, made)
    assert found.labels == found.first == ("pos", "neg", "unsure")
    assert (found.errors, found.comments, found.corrections) == ({1: "circular"}, {2: "Is it?"}, {1: "So 4."})
    assert (found.flag, found.guideline) == ("Two problems.", 2)
    # 2 + 0.5 + 1 + 1.5
    assert (found.seconds, found.submitted) == (5.0, submitted.moment)
    assert (found.user_id, found.user, found.slot_id, found.item_id) == (user.id, "ann", task.slot_id, task.item_id)
    assert (found.external_id, found.dataset, found.digest) == ("three", "sums", THREE.digest)
    assert (found.trace_id, found.chosen, found.view) == (task.trace.trace_id, "ordered", "whole")


def test_they_come_by_place_and_slot(store):
    made = campaign(store, overlap=2)
    one, other = people(store, 2)
    for user in (other, one):
        while (task := take(store, made, user)).trace.problem != TRACES[2].problem:
            label_all(store, task, user, ["pos"] * len(task.trace.steps))
    found = [(answer.external_id, answer.user) for answer in answers(store, made)]
    assert found == [(id, user) for id in ("two", "three") for user in ("annotator 2", "annotator 1")]
    with store.read() as session:
        assert list(iterate_annotations(store, made.id, session)) == answers(store, made)
    assert list(iterate_annotations(store, 99)) == []


def test_a_reopened_withdrawn_or_skipped_annotation_is_not_counted(store):
    made, user = campaign(store), person(store, "ann")
    tasks = []
    for _ in range(2):
        tasks.append(take(store, made, user))
        label_all(store, tasks[-1], user, ["pos"] * len(tasks[-1].trace.steps))
    do(store, take(store, made, user).slot_id, user, "skip", None, "No.")
    assert [answer.external_id for answer in answers(store, made)] == ["two", "three"]
    do(store, tasks[0].slot_id, user, "reopen")
    assert [answer.external_id for answer in answers(store, made)] == ["three"]
    do(store, tasks[1].slot_id, user, "withdraw")
    assert answers(store, made) == []
    do(store, tasks[0].slot_id, user, "submit")
    assert [answer.external_id for answer in answers(store, made)] == ["two"]


def test_work_before_a_takeover_is_not_the_new_holders(store):
    made = campaign(store, [THREE])
    one, other = people(store, 2)
    left = take(store, made, one)
    do(store, left.slot_id, one, "label", 0, "neg")
    do(store, left.slot_id, one, "comment", 0, "Wrong.")
    expire(store, left.slot_id)
    label_all(store, take(store, made, other), other, ["pos", "pos", "pos"])
    (found,) = answers(store, made)
    assert (found.user, found.labels, found.comments) == ("annotator 2", ("pos", "pos", "pos"), {})


def test_steps_after_the_first_error_are_cut_where_they_are_not_labelled(store):
    made, user = campaign(store, [THREE], after_error=False), person(store, "ann")
    task = take(store, made, user)
    label_all(store, task, user, ["pos", "pos", "pos"])
    do(store, task.slot_id, user, "reopen")
    do(store, task.slot_id, user, "label", 1, "neg")
    do(store, task.slot_id, user, "error", 0, "confidence")
    do(store, task.slot_id, user, "submit")
    (found,) = answers(store, made)
    # The kind of error of a step that is not wrong says nothing.
    assert (found.labels, found.errors) == (("pos", "neg", None), {})


def test_step_by_step_the_first_opinion_is_kept(store):
    made, user = campaign(store, [THREE], view="stepwise"), person(store, "ann")
    task = take(store, made, user)
    do(store, task.slot_id, user, "label", 0, "pos")
    do(store, task.slot_id, user, "reveal", None, 2)
    do(store, task.slot_id, user, "label", 1, "pos")
    do(store, task.slot_id, user, "label", 0, "neg")
    do(store, task.slot_id, user, "reveal", None, 3)
    do(store, task.slot_id, user, "label", 1, "neu")
    undo(store, task.slot_id, user, key())
    do(store, task.slot_id, user, "label", 1, "neg")
    do(store, task.slot_id, user, "label", 2, "pos")
    do(store, task.slot_id, user, "submit")
    (found,) = answers(store, made)
    assert (found.first, found.labels) == (("pos", "pos", "pos"), ("neg", "neg", "pos"))


def test_hidden_gold_items_come_last_and_say_so(store):
    known: Any = [Trace.of(f"Known {i}", ["a"], ["pos"], id=f"k{i}") for i in range(9)]
    add(store, [*TRACES, *known], "sums")
    made = campaign(store, None, conditions=TraceFilter(text="What"), gold_rate=0.5, seed=1)
    user = person(store, "ann")
    for _ in range(4):
        task = take(store, made, user)
        label_all(store, task, user, ["pos"] * len(task.trace.steps))
    chosen = [answer.chosen for answer in answers(store, made)]
    assert "gold" in chosen
    assert chosen == sorted(chosen, key=lambda how: how == "gold")


def test_an_answer_outlives_a_change_of_its_trace(store):
    made, user = campaign(store, [THREE]), person(store, "ann")
    label_all(store, take(store, made, user), user, ["pos", "neu", "neg"])
    with store.write() as session:
        session.execute(update(TraceRow).values(digest="changed", n_steps=1, n_substeps=1))
    (found,) = answers(store, made)
    assert (found.labels, found.digest) == (("pos", "neu", "neg"), THREE.digest)


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
