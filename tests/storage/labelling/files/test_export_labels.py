"""Labels in files: what each format says of them, and that a file is whole or not there."""

import csv
import json
import os
import stat
from datetime import UTC, datetime

import pytest

from stepsight.core.trace import Label, Trace
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.importers import KINDS, find_kind, parse_row
from stepsight.storage.labelling.adjudication import AnnotatedItem
from stepsight.storage.labelling.consensus import LabelledTrace
from stepsight.storage.labelling.files.label_formats import (
    FORMAT_NAMES,
    LabelExport,
    argilla_user,
    export_labels,
    prm800k_rows,
)
from stepsight.storage.labelling.submissions import LabelledItem, SubmittedAnnotation
from stepsight.storage.traces.queries import StoredTrace
from tests.messages import refused
from tests.storage.labelling.labelled_sums import AGREED, HOW, SAID, labelled
from tests.storage.labelling.samples import DATASET, ONE, THREE, TWO, Scene
from tests.storage.samples import add


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "labels.out"


def test_the_labels_of_all_or_of_each_as_our_json_lines(store, path):
    labelled(store)
    done = export_labels(store, "first", path, "jsonl")
    assert (done.rows, done.noun, done.left_out) == (3, "trace", {})
    written = rows(path)
    assert {row["id"]: tuple(row["labels"]) for row in written} == AGREED
    assert {row["id"]: tuple(row["how"]) for row in written} == HOW
    assert [answer["labels"] for answer in written[1]["answers"]] == list(SAID["three"])
    two = written[0]["answers"][0]
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
    # The last step of "three" is unlabelled, so that nobody can tell its first error, nor that it has none.
    assert {trace.problem: [step.valid for step in trace.steps] for trace in traces} == {
        TWO.problem: [True, False], THREE.problem: [True, True, None], ONE.problem: [True],
    }  # fmt: skip


def test_a_step_of_stepwise_supervision_is_valid_wrong_or_unlabelled(store, path):
    scene = Scene(store, [TWO, ONE, THREE])
    for labels in ("neu neg", "unsure", "pos unsure neg"):
        scene.label(labels)
    done = export_labels(store, "first", path, "stepwise")
    assert (done.rows, done.left_out) == (2, {"traces without a label": 1})
    assert [(row["prompt"], row["labels"]) for row in rows(path)] == [
        (TWO.problem, [True, False]), (THREE.problem, [True, None, False]),
    ]  # fmt: skip


def test_a_table_with_a_row_per_step_and_nothing_to_calculate(store, path):
    labelled(store)
    export_labels(store, "first", path, "csv", per_annotator=True)
    with open(path, encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    # 3 annotators, each 2 + 3 + 1 steps.
    assert len(table) == 18
    first = table[0]
    assert (first["id"], first["step"], first["label"], first["annotator"]) == ("two", "1", "pos", "annotator 1")
    assert first["comment"] == "'=1+1 begins like a formula, “quoted”"
    assert table[1]["text"] == "So 3.\nDone."
    last = [row["label"] for row in table if (row["id"], row["step"]) == ("three", "3")]
    assert last == ["unsure", "unsure", "pos"]


def test_a_record_of_argilla_is_a_step_and_a_consensus_is_a_suggestion(store, tmp_path):
    scene = Scene(store, overlap=2)
    scene.label("pos neg")
    scene.label("unsure neg", by="bob")
    export_labels(store, "first", tmp_path / "each", "argilla", per_annotator=True)
    first, second = json.loads((tmp_path / "each").read_text())
    assert second["fields"] == {"problem": "What is 1 + 1?", "before": "It is a sum.", "step": "So 3.\nDone."}
    about = {"dataset": DATASET, "trace": "two", "steps": 2, "step": 2, "annotators": ["ann", "bob"]}
    assert second["metadata"] == about
    assert first["responses"]["label"] == [
        {"value": "pos", "user_id": argilla_user("ann")},
        {"value": "unsure", "user_id": argilla_user("bob")},
    ]
    # One says pos and one is unsure, which is a tie; both say neg of the other step.
    export_labels(store, "first", tmp_path / "together", "argilla")
    records = json.loads((tmp_path / "together").read_text())
    agreed = {"label": {"value": "neg", "score": None, "agent": "consensus"}}
    assert [(record["suggestions"], record["responses"]) for record in records] == [({}, {}), (agreed, {})]


def test_hidden_gold_items_are_told_apart_or_left_out(store, path):
    add(store, [Trace.of("What is 9 + 9?", ["18."], ["pos"], id="hidden")], "known")
    scene = Scene(store, [TWO], gold_rate=0.5, gold_dataset="known")
    while scene.next() is not None:
        scene.label()
    hidden = {"hidden gold items": 1}
    for format, each, count, left_out in (
        ("prm800k", True, 1, hidden),
        ("jsonl", True, 2, {}),
        ("jsonl", False, 1, hidden),
    ):
        done = export_labels(store, "first", path, format, per_annotator=each, force=True)
        assert (done.rows, done.left_out) == (count, left_out)
        if count == 2:
            assert [row["chosen"] for row in rows(path)] == ["ordered", "gold"]


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
    done = LabelExport("labels.jsonl", 1200, "trace", {"traces without a label": 3})
    assert str(done) == "labels.jsonl: 1,200 traces.\n  not in it: 3 traces without a label"


NONE = (None,) * 3


def answer(user="ada", flag=None):
    return SubmittedAnnotation(
        labels=NONE, comments=NONE, corrections=NONE, errors=NONE, flag=flag, revealed=3, submitted=True, undo=(),
        redo=(), first=NONE, suggested=NONE, evidence=NONE, stepwise=False, user_id=1, user=user, view="whole",
        item=LabelledItem(1, 1, "7", "sums", "ordered", ""), guideline=1,
        moment=datetime(2026, 3, 1, 9, 30, tzinfo=UTC), seconds=1.5,
    )  # fmt: skip


def prm800k(*labels, answers=()):
    """What all annotators agree on of three steps, as a record of PRM800K."""
    trace = Trace.of("What?", ["First.", ["Second.", "Still."], "Third."], ["neg", None, None], id="7")
    about = {"trace_id": 1, "dataset_id": 1, "dataset": "sums", "position": 0}
    stored = StoredTrace(trace.id, trace.problem, trace.steps, trace.meta, **about)
    item = AnnotatedItem(tuple(answers) or (answer(),), {})
    (row,) = prm800k_rows([LabelledTrace(stored, item, labels, ("majority",) * 3)], "")
    return row


@pytest.mark.parametrize(
    ("labels", "expected", "reason"),
    [
        (("pos", "neu", "pos"), [1, 0, 1], "solution"),
        # As in PRM800K the labels end at the error; the solution goes on in pre_generated_steps.
        (("pos", "neg", None), [1, -1], "found_error"),
        (("neg", None, None), [-1], "found_error"),
        # Which has no labels after an error, but has them before.
        (("pos", "neg", "pos"), [1, -1, 1], "found_error"),
        ((None, "neg", "neg"), [None, -1, -1], "found_error"),
        (("pos", None, "pos"), [1, None, 1], "give_up"),
        ((None, None, None), [None, None, None], "give_up"),
    ],
)
def test_ratings_of_prm800k_and_why_they_end(labels, expected, reason):
    row = prm800k(*labels)
    steps, texts = row["label"]["steps"], ["First.", "Second.\nStill.", "Third."]
    assert [step["completions"][0]["rating"] for step in steps] == expected
    # The solution does not go on from its first error.
    error = labels.index("neg") if "neg" in labels else None
    assert [step["chosen_completion"] for step in steps] == [None if i == error else 0 for i in range(len(steps))]
    assert (row["label"]["finish_reason"], row["question"]["pre_generated_steps"]) == (reason, texts)
    trace = KINDS["prm800k"].read(row)
    assert [step.text for step in trace.steps] == texts[: len(expected)]
    by_rating = {1: Label.POS, 0: Label.NEU, -1: Label.NEG, None: None}
    assert list(trace.labels) == [by_rating[rating] for rating in expected]


def test_annotators_and_times_of_prm800k_and_when_a_problem_is_bad():
    bad, fine = answer(flag="No annotation."), answer("ben")
    row = prm800k("pos", "pos", "pos", answers=[bad, fine])
    assert (row["labeler"], row["timestamp"]) == ("consensus", "2026-03-01T09:30:00+00:00")
    # Twice 1.5 seconds; most have to say that it is bad.
    assert (row["label"]["total_time"], row["label"]["finish_reason"]) == (3000, "solution")
    assert prm800k("pos", "pos", "pos", answers=[bad, bad, fine])["label"]["finish_reason"] == "bad_problem"
