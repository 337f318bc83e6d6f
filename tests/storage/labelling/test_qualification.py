"""The qualification of a campaign: gold items before the campaign's own traces."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import Campaign, find_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.plan import Ordering
from stepsight.storage.labelling.progress import annotator_progress, campaign_progress
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
    return campaign(store, None, conditions=TraceFilter(text="Task"), **{"qualification_items": 3} | changes)


def answer(store: Store, made: Campaign, user: User, *answers: list[str]) -> None:
    for labels in answers:
        label_all(store, take(store, made, user), user, labels)


def result(store: Store, made: Campaign) -> str | None:
    return annotator_progress(store, made.id)[0].qualification


def test_gold_items_come_first_and_the_queue_follows(store: Store) -> None:
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


def test_only_the_first_submission_counts_and_a_skipped_item_is_not_right(store: Store) -> None:
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


def test_a_log_keeps_the_qualification(sqlite_store: Store, tmp_path: Path) -> None:
    made = make(sqlite_store)
    ann = person(sqlite_store, "ann")
    take(sqlite_store, made, ann)
    export_labels(sqlite_store, made.name, tmp_path / "log.jsonl", "events")
    import_labels(sqlite_store, tmp_path / "log.jsonl", ann, campaign="same")
    copied = find_campaign(sqlite_store, "same")
    assert copied.qualification_items == 3
    assert take(sqlite_store, copied, ann).trace.problem.startswith("Known")


def test_a_log_of_an_earlier_version_comes_in_without_what_went(sqlite_store: Store, tmp_path: Path) -> None:
    made = make(sqlite_store)
    ann = person(sqlite_store, "ann")
    take(sqlite_store, made, ann)
    export_labels(sqlite_store, made.name, tmp_path / "log.jsonl", "events")
    head, *rows = map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines())
    head["campaign"] |= {"planted_share": 0.5, "qualification_right": 2, "ordering": "information"}
    for row in rows:
        row |= {"chance": 0.25} if "item" in row else {}
        for slot in row.get("slots", ()):
            slot["qualification"] = True
    (tmp_path / "earlier.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in (head, *rows)))
    import_labels(sqlite_store, tmp_path / "earlier.jsonl", ann, campaign="same")
    copied = find_campaign(sqlite_store, "same")
    assert (copied.qualification_items, copied.ordering) == (3, Ordering.DISAGREEMENT)
    again = import_labels(sqlite_store, tmp_path / "earlier.jsonl", ann, campaign="same")
    assert again.added == 0


@pytest.mark.parametrize("items", [51, -1, 5])
def test_a_qualification_that_cannot_be_is_refused(sqlite_store: Store, items: int) -> None:
    # Of the last there are too few gold items.
    with refused():
        make(sqlite_store, qualification_items=items)
