"""The log of annotation events: what cannot be one, reading it, and the annotation that follows from it."""

import json
from dataclasses import asdict

import pytest

from stepsight.core.validation import validate
from stepsight.storage.labelling.adjudication import decide
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
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.folds import CASES, Log, states
from tests.storage.labelling.samples import ONE, Scene


def sent(kind=None, key="k", step=None, new=None, **other):
    """An event as a client sends it."""
    kinds = {} if kind is None else {"kind": kind}
    return validate(NewEvent, kinds | {"key": key, "step": step, "new": new} | other)


def test_possible_events_are_accepted():
    for kind, step, values in (
        ("label", 0, (*LABELS, None)),
        ("error", 3, (*ERROR_KINDS, None)),
        ("comment", 1, ("A text.", None)),
        ("correction", 1, ("A text.", None)),
        ("flag", None, ("Two problems in one.", None)),
        ("reveal", None, (2,)),
        ("skip", None, ("I know the author.",)),
        *((kind, None, (None,)) for kind in ("submit", "reopen", "withdraw")),
    ):
        for new in values:
            sent(kind, "k", step, new)
    sent(cause="undo")
    assert sent("label", "K" * 64, 0, "pos", seconds=0.25, revealed=1, guideline=1).seconds == 0.25


@each(
    "event",
    [
        {"kind": "praise"},
        {"kind": "decide"},
        {"kind": "suggest", "new": ["pos"]},
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
        {"kind": "evidence", "step": 0, "new": "2"},
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


def test_outer_white_space_of_a_reason_goes():
    assert check_reason(" so.\n", "none") == "so."


@pytest.mark.parametrize("text", ["", " \n", None, 3, "x" * (LONGEST + 1), "a\x00"])
def test_reasons_that_say_nothing_or_cannot_be_stored_are_refused(text):
    with refused():
        check_reason(text, "No reason.")


def test_a_log_is_one_persons_in_order_and_without_decisions(store):
    scene = Scene(store, [ONE], overlap=2)
    item, ann = scene.take().item_id, scene.who("ann")
    scene.take("bob")
    for label in ("pos", "neg"):
        for name in ("ann", "bob"):
            scene.do("label", 0, label, by=name)
    scene.do("submit")
    decide(store, scene.campaign.id, item, 0, "pos", "It is right.", ann, "decision-1")
    with store.read() as session:
        mine = read_events(session, item, ann.id)
        logs = read_events_of_items(session, [item])
        decision = find_event(session, ann.id, "decision-1")
        assert (find_event(session, ann.id, "decision-2"), find_event(session, 99, "decision-1")) == (None, None)
    assert [(event.user_id, event.kind, event.new) for event in mine] == [
        (ann.id, "label", "pos"), (ann.id, "label", "neg"), (ann.id, "submit", None),
    ]  # fmt: skip
    assert (logs.keys(), logs[item, ann.id]) == ({(item, ann.id), (item, scene.who("bob").id)}, mine)
    assert decision is not None
    assert (decision.kind, decision.slot_id, decision.step) == ("decide", None, 0)


@each("case", CASES)
def test_the_annotation_after_all_events(case):
    *_, log = states(case)
    annotation = json.loads(json.dumps(asdict(log.annotation)))
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
    for kind, step, new in (
        ("label", 0, "neu"),
        ("label", 0, "pos"),
        ("reveal", None, 2),
        ("label", 0, "neg"),
        ("reveal", None, 2),
        ("label", 1, "neg"),
        ("reveal", None, 3),
        ("label", 2, "unsure"),
        ("label", 2, "neg"),
    ):
        log.do(kind, step, new)
    assert (log.annotation.labels, log.annotation.first) == (("neg", "neg", "neg"), ("pos", "neg", "neg"))
    for kind, step, new in (("submit", None, None), ("reopen", None, None), ("label", 2, "pos")):
        log.do(kind, step, new)
    # After the last step nothing is revealed; what counts is how it was first submitted.
    assert (log.annotation.labels, log.annotation.first) == (("neg", "neg", "pos"), ("pos", "neg", "neg"))


def test_submission_reveals_all_steps():
    log = Log(stepwise=True)
    for kind, step, new in (
        ("label", 0, "neg"),
        ("submit", None, None),
        ("reopen", None, None),
        ("label", 0, "pos"),
    ):
        log.do(kind, step, new)
    assert log.annotation.first == ("neg", None, None)


def test_a_trace_that_lost_steps_is_as_long_as_its_events_say():
    log = Log(n_steps=3)
    log.do("label", 2, "pos")
    assert fold(log.events, 1, stepwise=False).labels == (None, None, "pos")
