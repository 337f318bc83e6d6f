"""The log of annotation events: what cannot be one, reading it, and the annotation that follows from it."""

import pytest

from stepsight.core.validation import validate
from stepsight.storage.labelling.annotation import (
    LABELS,
    LONGEST,
    NewEvent,
    check_reason,
    find_event,
    fold,
    read_events,
    read_events_of_items,
)
from stepsight.storage.labelling.plan import ERROR_KINDS
from stepsight.storage.labelling.results.adjudication import decide
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.folds import CASES, Log, as_json, states
from tests.storage.labelling.samples import ONE, campaign, do, label_all, people, take


def test_a_log_is_one_persons_and_in_order(store):
    made = campaign(store, [ONE], overlap=2)
    one, other = people(store, 2)
    tasks = [take(store, made, user) for user in (one, other)]
    for label in ("pos", "neg"):
        for task, user in zip(tasks, (one, other), strict=True):
            do(store, task.slot_id, user, "label", 0, label)
    with store.read() as session:
        mine = read_events(session, tasks[0].item_id, one.id)
        logs = read_events_of_items(session, [tasks[0].item_id])
    assert [(event.user_id, event.new) for event in mine] == [(one.id, "pos"), (one.id, "neg")]
    assert set(logs) == {(tasks[0].item_id, one.id), (tasks[0].item_id, other.id)}
    assert logs[tasks[0].item_id, one.id] == mine


def test_decisions_are_found_by_key_and_are_no_part_of_an_answer(store):
    made = campaign(store, [ONE])
    (user,) = people(store, 1)
    task = take(store, made, user)
    label_all(store, task, user, ["pos"])
    decide(store, made.id, task.item_id, 0, "neg", "It is wrong.", user, "decision-1")
    with store.read() as session:
        found = find_event(session, user.id, "decision-1")
        assert [event.kind for event in read_events(session, task.item_id, user.id)] == ["label", "submit"]
        assert find_event(session, user.id, "decision-2") is None
        assert find_event(session, 99, "decision-1") is None
    assert found is not None
    assert (found.kind, found.slot_id, found.step) == ("decide", None, 0)


@each("case", CASES)
def test_the_annotation_after_all_events(case):
    *_, log = states(case)
    annotation = as_json(log.annotation)
    assert {name: annotation[name] for name in case["annotation"]} == case["annotation"]


def test_undo_and_redo_have_no_limit():
    log = Log()
    labels = ["pos", "neu", "neg", None] * 10
    for label in labels:
        log.do("label", 0, label)
    # After n of them are undone, the label is the one before.
    for before in [None, *labels[:-1]][::-1]:
        log.do("undo")
        assert log.annotation.labels[0] == before
    for label in labels:
        log.do("redo")
        assert log.annotation.labels[0] == label
    assert (len(log.annotation.undo), log.annotation.redo) == (40, ())


def test_step_by_step_the_first_label_is_the_one_before_the_next_step_was_seen():
    log = Log(stepwise=True)
    log.do("label", 0, "neu")
    log.do("label", 0, "pos")
    log.do("reveal", None, 2)
    log.do("label", 0, "neg")
    log.do("reveal", None, 2)
    log.do("label", 1, "neg")
    log.do("reveal", None, 3)
    log.do("label", 2, "unsure")
    log.do("label", 2, "neg")
    assert (log.annotation.labels, log.annotation.first) == (("neg", "neg", "neg"), ("pos", "neg", "neg"))
    log.do("submit")
    log.do("reopen")
    log.do("label", 2, "pos")
    # After the last step nothing is revealed; what counts is how it was first submitted.
    assert (log.annotation.labels, log.annotation.first) == (("neg", "neg", "pos"), ("pos", "neg", "neg"))


def test_submission_reveals_all_steps():
    log = Log(stepwise=True)
    log.do("label", 0, "neg")
    log.do("submit")
    log.do("reopen")
    log.do("label", 0, "pos")
    assert log.annotation.first == ("neg", None, None)


def test_a_trace_that_lost_steps_is_as_long_as_its_events_say():
    log = Log(n_steps=3)
    log.do("label", 2, "pos")
    assert fold(log.events, 1, stepwise=False, asks=False).labels == (None, None, "pos")


def test_outer_white_space_goes():
    assert check_reason(" so.\n", "none") == "so."


@pytest.mark.parametrize("text", ["", " \n", None, 3])
def test_nothing_is_refused(text):
    with refused():
        check_reason(text, "No reason.")


@pytest.mark.parametrize("text", ["x" * (LONGEST + 1), "a\x00"])
def test_reasons_that_cannot_be_stored_are_refused(text):
    with refused():
        check_reason(text, "none")


def sent(kind=None, key="k", step=None, new=None, **other):
    """An event as a client sends it."""
    kinds = {} if kind is None else {"kind": kind}
    return validate(NewEvent, kinds | {"key": key, "step": step, "new": new} | other)


def test_possible_events_are_accepted():
    for label in (*LABELS, None):
        sent("label", "k", 0, label)
    for error in (*ERROR_KINDS, None):
        sent("error", "k", 3, error)
    for kind in ("comment", "correction"):
        for text in ("A text.", None):
            sent(kind, "k", 1, text)
    sent("flag", "k", None, "Two problems in one.")
    sent("reveal", "k", None, 2)
    sent("skip", "k", None, "I know the author.")
    for kind in ("flag", "submit", "reopen", "withdraw"):
        sent(kind)
    sent(cause="undo")
    assert sent("label", "K" * 64, 0, "pos", seconds=0.25, revealed=1, guideline=1).seconds == 0.25


@each(
    "event",
    [
        {"kind": "praise"},
        {"kind": "decide"},
        {},
        {"kind": "label", "step": 0, "new": "good"},
        {"kind": "label", "step": 0, "new": 1},
        {"kind": "label", "step": 0, "new": ["pos"]},
        {"kind": "label", "new": "pos"},
        {"kind": "label", "step": -1},
        {"kind": "label", "step": 2**31},
        {"kind": "label", "step": True},
        {"kind": "label", "step": "0"},
        {"kind": "label", "step": 0.0},
        {"kind": "error", "step": 0, "new": " "},
        {"kind": "error", "step": 0, "new": "a\nb"},
        {"kind": "error", "step": 0, "new": "x" * 41},
        {"kind": "comment", "step": 0, "new": "  "},
        {"kind": "comment", "step": 0, "new": "x" * 10_001},
        {"kind": "comment", "step": 0, "new": "a\x00"},
        {"kind": "comment", "step": 0, "new": "\ud800"},
        {"kind": "comment", "step": 0, "new": 5},
        {"kind": "flag", "step": 0, "new": "Bad."},
        {"kind": "skip"},
        {"kind": "skip", "new": ""},
        {"kind": "reveal"},
        {"kind": "reveal", "new": -1},
        {"kind": "submit", "new": "pos"},
        {"kind": "submit", "step": 0},
        {"kind": "submit", "key": ""},
        {"kind": "submit", "key": "k" * 65},
        {"kind": "submit", "key": "a b"},
        {"kind": "submit", "key": "k\n"},
        {"kind": "submit", "key": None},
        {"kind": "submit", "cause": "again"},
        {"kind": "submit", "of": "k1"},
        {"cause": "undo", "of": -1},
        {"cause": "undo", "of": "a b"},
        {"kind": "submit", "seconds": -1},
        {"kind": "submit", "seconds": float("nan")},
        {"kind": "submit", "seconds": 1e9},
        {"kind": "submit", "seconds": 10**400},
        {"kind": "submit", "seconds": "1"},
        {"kind": "submit", "revealed": -1},
        {"kind": "submit", "guideline": "1"},
        {"kind": "submit", "guidline": 1},
    ],
)
def test_impossible_events_are_refused(event):
    with refused():
        sent(**event)
