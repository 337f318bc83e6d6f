"""New events: what is refused whatever the trace."""

from typing import Any

import pytest

from stepsight.core.errors import UserError
from stepsight.core.validation import validate
from stepsight.storage.importers.prmbench import _CLASSES
from stepsight.storage.labelling.annotation import LABELS, NewEvent
from stepsight.storage.labelling.error_kinds import ERROR_KINDS, PRMBENCH_KINDS
from tests.cases import each


def sent(kind: str | None = None, key: Any = "k", step: Any = None, new: Any = None, **other: Any) -> NewEvent:
    """An event as a client sends it."""
    kinds = {} if kind is None else {"kind": kind}
    return validate(NewEvent, kinds | {"key": key, "step": step, "new": new} | other)


def test_possible_events_are_accepted() -> None:
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


def test_prmbench_s_kinds_of_error_are_those_of_its_files() -> None:
    assert set(PRMBENCH_KINDS) == set(_CLASSES) - {"multi_solutions"}


@each(
    "event, message",
    [
        ({"kind": "praise"}, "kind is 'praise', expected one of label, comment"),
        ({"kind": "decide"}, "kind is 'decide'"),
        ({}, "the key kind is missing"),
        ({"kind": "label", "step": 0, "new": "good"}, "the value of label is 'good', expected one of neg, neu"),
        ({"kind": "label", "step": 0, "new": 1}, "the value of label is 1"),
        ({"kind": "label", "step": 0, "new": ["pos"]}, "the value of label is"),
        ({"kind": "label", "new": "pos"}, "The step of label is None. Count steps from 0"),
        ({"kind": "label", "step": -1}, "step is -1"),
        ({"kind": "label", "step": 2**31}, "step is 2147483648"),
        ({"kind": "label", "step": True}, "step is True"),
        ({"kind": "label", "step": "0"}, "step is '0', expected a whole number"),
        ({"kind": "label", "step": 0.0}, "step is 0.0"),
        ({"kind": "error", "step": 0, "new": " "}, "the kind of error is empty"),
        ({"kind": "error", "step": 0, "new": "a\nb"}, "The kind of error is 'a\\\\nb'"),
        ({"kind": "error", "step": 0, "new": "x" * 41}, "The kind of error is 'xxx"),
        ({"kind": "comment", "step": 0, "new": "  "}, "the comment is empty"),
        ({"kind": "comment", "step": 0, "new": "x" * 10_001}, "the comment has 10,001 characters"),
        ({"kind": "comment", "step": 0, "new": "a\x00"}, "NUL byte"),
        ({"kind": "comment", "step": 0, "new": "\ud800"}, "half of a surrogate pair"),
        ({"kind": "comment", "step": 0, "new": 5}, "the value of comment is 5, expected text"),
        ({"kind": "flag", "step": 0, "new": "Bad."}, "The step of flag is 0. It is about no step"),
        ({"kind": "skip"}, "the value of skip is empty, expected text"),
        ({"kind": "skip", "new": ""}, "the reason for skipping is empty"),
        ({"kind": "reveal"}, "the value of reveal is empty, expected a whole number"),
        ({"kind": "reveal", "new": -1}, "the value of reveal is -1"),
        ({"kind": "submit", "new": "pos"}, "submit came with 'pos'. It takes nothing"),
        ({"kind": "submit", "step": 0}, "The step of submit is 0"),
        ({"kind": "submit", "key": ""}, "The key is ''"),
        ({"kind": "submit", "key": "k" * 65}, "The key is"),
        ({"kind": "submit", "key": "a b"}, "The key is 'a b'"),
        ({"kind": "submit", "key": "k\n"}, "The key is"),
        ({"kind": "submit", "key": None}, "key is None"),
        ({"kind": "submit", "cause": "again"}, "cause is 'again', expected one of undo, redo"),
        ({"kind": "submit", "of": "k1"}, "Only undo and redo"),
        ({"cause": "undo", "of": -1}, "of is -1"),
        ({"cause": "undo", "of": "a b"}, "The key is 'a b'"),
        ({"kind": "submit", "seconds": -1}, "seconds is -1"),
        ({"kind": "submit", "seconds": float("nan")}, "seconds is nan"),
        ({"kind": "submit", "seconds": 1e9}, "seconds is 1000000000.0, expected 604800 or less"),
        ({"kind": "submit", "seconds": 10**400}, "seconds is 1000"),
        ({"kind": "submit", "seconds": "1"}, "seconds is '1', expected a number"),
        ({"kind": "submit", "revealed": -1}, "revealed is -1"),
        ({"kind": "submit", "guideline": "1"}, "guideline is '1'"),
        ({"kind": "submit", "guidline": 1}, "unknown key guidline. Did you mean guideline"),
    ],
)
def test_impossible_events_are_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        sent(**event)
