"""New events: what is refused whatever the trace."""

from stepsight.core.validation import validate
from stepsight.storage.labelling.annotation import LABELS, NewEvent
from stepsight.storage.labelling.error_kinds import ERROR_KINDS
from tests.cases import each
from tests.messages import refused


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
