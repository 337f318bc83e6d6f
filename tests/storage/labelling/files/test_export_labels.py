import csv
import json
import os
import stat

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.importers import find_kind, parse_row
from stepsight.storage.labelling.files.export_labels import FORMAT_NAMES, LabelExport, export_labels
from stepsight.storage.labelling.queue import assign_next
from tests.messages import refused
from tests.storage.labelling.labelled_sums import AGREED, HOW, SAID, labelled
from tests.storage.labelling.samples import ONE, THREE, TWO, campaign, label_all, people, take
from tests.storage.samples import add


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "labels.out"


def test_the_labels_of_all_or_of_each_as_our_json_lines(store, path):
    labelled(store)
    done = export_labels(store, "first", path, "jsonl")
    assert (done.rows, done.what, done.left_out) == (3, "traces", {})
    found = rows(path)
    assert {row["id"]: tuple(row["labels"]) for row in found} == AGREED
    assert {row["id"]: tuple(row["how"]) for row in found} == HOW
    assert [answer["labels"] for answer in found[1]["answers"]] == list(SAID["three"])
    two = found[0]["answers"][0]
    assert two["annotator"] == "annotator 1"
    assert two["comments"] == ["=1+1 begins like a formula, “quoted”", None]
    assert (two["corrections"], two["errors"]) == ([None, "So 2.\nDone."], [None, "counterfactual"])
    # 1.5 + 0.25 + 2.0 seconds; an undo and a redo took none.
    assert (two["flag"], two["seconds"]) == ("The question is odd.", 3.75)
    assert export_labels(store, "first", path, "jsonl", per_annotator=True, force=True).rows == 9
    assert [row["answers"][0]["annotator"] for row in rows(path)[:3]] == [f"annotator {i}" for i in (1, 2, 3)]
    assert "how" not in rows(path)[0]


@pytest.mark.parametrize("kind", ["prm800k", "stepwise", "jsonl"])
def test_our_own_importers_read_what_is_written(store, path, kind):
    labelled(store)
    export_labels(store, "first", path, kind)
    traces = [parse_row(find_kind(kind), row, f"row {n}") for n, row in enumerate(rows(path), start=1)]
    valid = {trace.problem: [step.valid for step in trace.steps] for trace in traces}
    two, three, one = "What is 1 + 1?", "What is 2 + 2?", "What is 3 + 3?"
    # The last step of "three" is unlabelled, so that nobody can tell its first error, nor that it has none.
    expected = {two: [True, False], three: [True, True, None], one: [True]}
    assert valid == expected


def test_a_step_of_stepwise_supervision_is_valid_wrong_or_unlabelled(store, path):
    made = campaign(store, [TWO, ONE, THREE])
    (user,) = people(store, 1)
    for labels in (["neu", "neg"], ["unsure"], ["pos", "unsure", "neg"]):
        label_all(store, take(store, made, user), user, labels)
    done = export_labels(store, "first", path, "stepwise")
    assert (done.rows, done.left_out) == (2, {"traces without a label": 1})
    assert [(row["prompt"], row["labels"]) for row in rows(path)] == [
        (TWO.problem, [True, False]), (THREE.problem, [True, None, False]),
    ]  # fmt: skip


def test_a_table_with_a_row_per_step_and_nothing_to_calculate(store, path):
    labelled(store)
    export_labels(store, "first", path, "csv", per_annotator=True)
    with open(path, encoding="utf-8-sig", newline="") as file:
        found = list(csv.DictReader(file))
    # 3 annotators, each 2 + 3 + 1 steps.
    assert len(found) == 18
    first = found[0]
    assert (first["id"], first["step"], first["label"], first["annotator"]) == ("two", "1", "pos", "annotator 1")
    assert first["comment"] == "'=1+1 begins like a formula, “quoted”"
    assert found[1]["text"] == "So 3.\nDone."
    assert [row["label"] for row in found if (row["id"], row["step"]) == ("three", "3")] == [
        "unsure",
        "unsure",
        "pos",
    ]


def test_hidden_gold_items_are_told_apart_or_left_out(store, path):
    add(store, [Trace.of("What is 9 + 9?", ["18."], ["pos"], id="hidden")], "known")
    made = campaign(store, [TWO], gold_rate=0.5, gold_dataset="known")
    (user,) = people(store, 1)
    while (task := assign_next(store, made.id, user)) is not None:
        label_all(store, task, user, ["pos"] * len(task.trace.steps))
    done = export_labels(store, "first", path, "prm800k", per_annotator=True)
    assert (done.rows, done.left_out) == (1, {"hidden gold items": 1})
    done = export_labels(store, "first", path, "jsonl", per_annotator=True, force=True)
    assert (done.rows, [row["chosen"] for row in rows(path)]) == (2, ["ordered", "gold"])
    done = export_labels(store, "first", path, "jsonl", force=True)
    assert (done.rows, done.left_out) == (1, {"hidden gold items": 1})


def test_a_file_appears_whole_or_not_at_all(sqlite_store, path):
    labelled(sqlite_store)
    path.write_text("mine")
    for format in FORMAT_NAMES:
        with refused():
            export_labels(sqlite_store, "first", path, format)
    assert (path.read_text(), os.listdir(path.parent).count("labels.out")) == ("mine", 1)
    assert export_labels(sqlite_store, "first", path, "events", force=True).rows > 30
    assert stat.S_ISREG(path.stat().st_mode)
    with refused(NotFoundError):
        export_labels(sqlite_store, "none", path, "jsonl", force=True)
    with refused():
        export_labels(sqlite_store, "first", path, "xml", force=True)


def test_a_summary_says_what_is_not_in_the_file():
    done = LabelExport("labels.jsonl", 1200, "traces", {"traces without a label": 3})
    assert str(done) == "labels.jsonl: 1,200 traces.\n  not in it: 3 traces without a label"
