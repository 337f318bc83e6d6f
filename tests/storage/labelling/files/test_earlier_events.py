"""Logs of campaigns as StepSight wrote them before 1.0.0, the way in which labels of then are brought over."""

import json
from pathlib import Path

import pytest

from stepsight.storage.labelling.campaigns import find_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.imports import import_file

FOLDER = Path(__file__).parent / "earlier"
# Of each campaign: its events, and the labels that people submitted, by trace and person.
LOGS = {
    "by step": {("sum", "ann"): ["pos", "neg", "neg"], ("mended", "ann"): ["neg", "pos", "pos"]},
    "suggested": {("mended", "bob"): ["pos", "neg", "neg"]},
}


@pytest.mark.parametrize("name", LOGS)
def test_labels_of_an_earlier_version_come_in(store, tmp_path, name):
    import_file(store, "jsonl", FOLDER / "traces.jsonl", "sums")
    import_labels(store, FOLDER / f"{name.replace(' ', '-')}.events.jsonl", local_user(store))
    export_labels(store, name, tmp_path / "labels.jsonl", "jsonl")
    rows = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
    labels = {(row["id"], answer["annotator"]): answer["labels"] for row in rows for answer in row["answers"]}
    assert labels == LOGS[name]


def test_notes_and_decisions_of_an_earlier_version_come_in(store, tmp_path):
    import_file(store, "jsonl", FOLDER / "traces.jsonl", "sums")
    import_labels(store, FOLDER / "by-step.events.jsonl", local_user(store))
    export_labels(store, "by step", tmp_path / "labels.jsonl", "jsonl")
    first, mended = map(json.loads, (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines())
    (answer,) = first["answers"]
    assert (answer["errors"][1], answer["comments"][1]) == ("calculation", "It is 2, “not” 3.")
    assert (answer["corrections"][1], answer["flag"]) == ("So 1 + 1 = 2.", "Too easy.")
    assert mended["answers"][0]["evidence"] == [1, None, None]
    assert [(one["step"], one["label"]) for one in mended["decisions"]] == [(0, "neg"), (1, "pos")]


def test_settings_of_an_earlier_version_come_in_without_what_went(store):
    import_file(store, "jsonl", FOLDER / "traces.jsonl", "sums")
    for _ in range(2):
        done = import_labels(store, FOLDER / "suggested.events.jsonl", local_user(store))
    found = find_campaign(store, "suggested")
    assert (found.qualification_items, found.gold_rate, found.shows, found.suggests) == (1, 0.5, "scores", True)
    assert (found.ordering, found.conditions.stored()) == ("disagreement", {"gold": "missing", "evaluator": 1})
    assert done.added == 0
