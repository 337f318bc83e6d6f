"""The qualification of a campaign: gold items before the campaign's own traces."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.labelling.campaigns import Campaign, find_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.progress import annotator_progress, campaign_progress
from stepsight.storage.labelling.qualification import Standing
from stepsight.storage.labelling.queue import assign_next, find_qualification, next_availability
from stepsight.storage.labelling.results.annotations import iterate_annotations
from stepsight.storage.labelling.results.ratings import read_ratings
from stepsight.storage.people.users import User
from tests.messages import refused
from tests.storage.labelling.samples import campaign, do, label_all, person, take
from tests.storage.samples import add

TASKS = [Trace.of(f"Task {i}", ["One.", "Two."], id=f"task {i}") for i in range(3)]
# Steps behind the first error say nothing, and neither does neu instead of pos.
KNOWN = [Trace.of(f"Known {i}", ["a", "b", "c"], ["pos", "neg", None], id=f"known {i}") for i in range(4)]
RIGHT, WRONG = ["neu", "neg", "neg"], ["pos", "unsure", "pos"]


def make(store: Store, **changes: Any) -> Campaign:
    add(store, [*TASKS, *KNOWN], "sums")
    asked = {"qualification_items": 3, "qualification_right": 2} | changes
    return campaign(store, None, where=TraceFilter(text="Task"), **asked)


def answer(store: Store, made: Campaign, user: User, *answers: list[str]) -> None:
    for labels in answers:
        label_all(store, take(store, made, user), user, labels)


def test_gold_items_come_first_and_with_enough_right_the_queue_follows(store: Store) -> None:
    made = make(store)
    ann, bob = person(store, "ann"), person(store, "bob")
    tasks = []
    for number, labels in enumerate((RIGHT, WRONG, RIGHT), start=1):
        task = take(store, made, ann)
        assert task.qualification == number
        tasks.append(task.trace.problem)
        label_all(store, task, ann, labels)
    assert all(problem.startswith("Known") for problem in tasks)
    found = find_qualification(store, made, ann)
    assert found is not None
    assert (found.right, found.standing, found.text) == (2, Standing.PASSED, "2 of 3 right, passed")
    assert campaign_progress(store, made.id, ann.id).mine == 0
    task = take(store, made, ann)
    assert (task.trace.problem, task.qualification) == ("Task 0", None)
    # Others have the same ones, which are no part of what is left to do.
    assert take(store, made, bob).trace.problem == tasks[0]
    answer(store, made, ann, *[["pos", "pos"]] * 3)
    found = campaign_progress(store, made.id)
    assert (found.items_done, found.items) == (3, 3)


def test_who_fails_gets_no_other_trace(store: Store) -> None:
    made = make(store)
    ann = person(store, "ann")
    first = take(store, made, ann)
    label_all(store, first, ann, WRONG)
    # Only the first submission counts.
    do(store, first.slot_id, ann, "reopen")
    label_all(store, first, ann, RIGHT)
    do(store, take(store, made, ann).slot_id, ann, "skip", None, "Hard.")
    assert annotator_progress(store, made.id)[0].qualification.text == "2 of 3 done"
    answer(store, made, ann, RIGHT)
    assert annotator_progress(store, made.id)[0].qualification.text == "1 of 3 right, failed"
    assert next_availability(store, made, ann) == "nothing"
    with refused(ForbiddenError):
        assign_next(store, made.id, ann)
    assert next_availability(store, made, person(store, "bob")) == "new"


def test_answers_of_a_qualification_count_nowhere_and_are_named_in_files(store: Store, tmp_path: Path) -> None:
    made = make(store, gold_rate=0.5, qualification_items=1, qualification_right=1)
    ann = person(store, "ann")
    answer(store, made, ann, RIGHT)
    while (task := assign_next(store, made.id, ann)) is not None:
        label_all(store, task, ann, ["pos"] * len(task.trace.steps))
    (qualifying,) = [one.external_id for one in iterate_annotations(store, made.id) if one.qualification]
    hidden = [one.external_id for one in read_ratings(store, made).hidden.traces]
    assert hidden
    assert qualifying not in hidden
    path = tmp_path / "labels.jsonl"
    export_labels(store, made.name, path, "jsonl", per_annotator=True)
    rows = list(map(json.loads, path.read_text().splitlines()))
    assert [row["id"] for row in rows if "qualification" in row["answers"][0]] == [qualifying]
    # The log says so of the slot, and is the same as what is in the store.
    export_labels(store, made.name, path, "events", force=True)
    items = [row for row in map(json.loads, path.read_text().splitlines()) if "slots" in row]
    assert [row["trace"] for row in items if any("qualification" in slot for slot in row["slots"])] == [qualifying]
    import_labels(store, path, ann)


def test_a_log_keeps_the_qualification(sqlite_store: Store, tmp_path: Path) -> None:
    made = make(sqlite_store)
    ann = person(sqlite_store, "ann")
    take(sqlite_store, made, ann)
    export_labels(sqlite_store, made.name, tmp_path / "log.jsonl", "events")
    import_labels(sqlite_store, tmp_path / "log.jsonl", ann, campaign="same")
    copied = find_campaign(sqlite_store, "same")
    assert (copied.qualification_items, copied.qualification_right) == (3, 2)
    assert take(sqlite_store, copied, ann).qualification == 1


@pytest.mark.parametrize(("items", "right"), [(3, 0), (3, 4), (0, 1), (51, 1), (-1, 0), (5, 1)])
def test_a_qualification_that_cannot_be_is_refused(sqlite_store: Store, items: int, right: int) -> None:
    # Of the last there are too few gold items.
    with refused():
        make(sqlite_store, qualification_items=items, qualification_right=right)
