"""Answers: what of the log counts in the end."""

from typing import Any

from sqlalchemy import update

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.labelling.campaigns import add_guideline
from stepsight.storage.labelling.results.annotations import iterate_annotations
from tests.storage.labelling.samples import (
    THREE,
    TRACES,
    campaign,
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
