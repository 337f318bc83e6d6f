"""Answers: what of the log counts in the end, and the steps that people name as those that changed a label."""

import json

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.labelling.campaigns import add_guideline
from stepsight.storage.labelling.files.label_formats import export_labels
from stepsight.storage.labelling.submissions import iterate_annotations
from tests.storage.labelling.samples import THREE, TRACES, Scene, change_minds
from tests.storage.samples import add


def test_an_answer_says_all_that_was_said(store):
    scene = Scene(store, [THREE])
    task, ann = scene.take(), scene.who("ann")
    for step, label, seconds in ((0, "neu", 2.0), (0, "pos", 0.5), (1, "neg", 1.0), (2, "unsure", None)):
        scene.do("label", step, label, seconds=seconds)
    for kind, step, text in (
        ("error", 1, "circular"),
        # Of a step that is not wrong it says nothing.
        ("error", 0, "confidence"),
        ("comment", 2, "Is it?"),
        ("comment", 0, "Mistaken."),
        ("comment", 0, None),
        ("correction", 1, "So 4."),
        ("flag", None, "Two problems."),
    ):
        scene.do(kind, step, text)
    add_guideline(store, scene.campaign.id, "Be strict.", ann)
    assert scene.answers() == []
    submitted = scene.do("submit", seconds=1.5)
    (answer,) = scene.answers()
    assert answer.labels == answer.first == ("pos", "neg", "unsure")
    assert (answer.errors, answer.comments) == ((None, "circular", None), (None, None, "Is it?"))
    assert answer.corrections == (None, "So 4.", None)
    assert (answer.flag, answer.guideline) == ("Two problems.", 2)
    # 2 + 0.5 + 1 + 1.5
    assert (answer.seconds, answer.moment) == (5.0, submitted.moment)
    assert (answer.user_id, answer.user, answer.item.id) == (ann.id, "ann", task.item_id)
    assert (answer.item.external_id, answer.item.dataset, answer.item.digest) == ("three", "sums", THREE.digest)
    assert (answer.item.trace_id, answer.item.chosen, answer.view) == (task.trace.trace_id, "ordered", "whole")


def test_they_come_by_place_and_slot_and_hidden_gold_items_last(store):
    known = [Trace.of(f"Known {i}", ["a"], ["pos"], id=f"k{i}") for i in range(9)]
    add(store, [*TRACES, *known], "sums")
    scene = Scene(store, None, conditions=TraceFilter(text="What"), gold_rate=0.5, seed=1, overlap=2)
    for name in ("bob", "ann"):
        for _ in range(4):
            scene.label(by=name)
    answers = scene.answers()
    chosen = [answer.item.chosen for answer in answers]
    assert chosen == sorted(chosen, key=lambda how: how == "gold")
    of_queue = [(answer.item.external_id, answer.user) for answer in answers if answer.item.chosen != "gold"]
    in_order = [(trace.id, name) for trace in TRACES for name in ("bob", "ann")]
    assert of_queue == [answer for answer in in_order if answer in of_queue]
    assert 1 < len(of_queue) < 8
    assert list(iterate_annotations(store, 99)) == []


def test_a_reopened_withdrawn_or_skipped_annotation_is_not_counted(store):
    scene = Scene(store)
    first, second = scene.label(), scene.label()

    def counted(task: object, kind: str) -> list[str]:
        scene.tasks["ann"] = task
        scene.do(kind)
        return [answer.item.external_id for answer in scene.answers()]

    scene.take()
    scene.do("skip", None, "No.")
    assert counted(first, "reopen") == ["three"]
    assert counted(second, "withdraw") == []
    assert counted(first, "submit") == ["two"]


def test_work_before_a_takeover_is_not_the_new_holders(store):
    scene = Scene(store, [THREE])
    scene.take()
    scene.do("label", 0, "neg")
    scene.do("comment", 0, "Wrong.")
    scene.expire()
    scene.label(by="bob")
    (answer,) = scene.answers()
    assert (answer.user, answer.labels, answer.comments) == ("bob", ("pos",) * 3, (None,) * 3)


def test_steps_after_the_first_error_are_cut_where_they_are_not_labelled(store):
    scene = Scene(store, [THREE], after_error=False)
    scene.take()
    scene.do("label", 2, "pos")
    scene.label("pos neg")
    assert scene.annotation().labels == ("pos", "neg", "pos")
    assert [answer.labels for answer in scene.answers()] == [("pos", "neg", None)]


def test_an_answer_outlives_a_change_of_its_trace(store):
    scene = Scene(store, [THREE])
    scene.label("pos neu neg")
    scene.change_trace(n_steps=1, n_substeps=1)
    (answer,) = scene.answers()
    assert (answer.labels, answer.item.digest) == (("pos", "neu", "neg"), THREE.digest)


@pytest.fixture
def changed(store):
    return change_minds(store)


def test_a_changed_label_has_the_newest_step_as_evidence_unless_it_is_taken_back(store, changed, tmp_path):
    (answer,) = changed.answers()
    assert (answer.labels, answer.first) == (("neg", "neg", "pos", "pos"), ("pos",) * 4)
    assert answer.evidence == (2, None, None, None)
    export_labels(store, "first", tmp_path / "labels", "jsonl")
    assert json.loads((tmp_path / "labels").read_text())["answers"][0]["evidence"] == [2, None, None, None]
