"""The labels that a person can give to a step, and the keyboard shortcuts for them, shared by pages and scripts."""

import json
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class LabelKey:
    """A label, its keyboard shortcut, and a few words on when to give it. The label "" removes a label."""

    label: str
    key: str
    title: str


_UNLABELLED = LabelKey("", "0", "no label")
_NEG = LabelKey("neg", "1", "wrong")
_NEU = LabelKey("neu", "2", "valid but redundant")
_POS = LabelKey("pos", "3", "correct and useful")

LABEL_KEYS = (_NEG, _NEU, _POS, LabelKey("unsure", "u", "you cannot tell"), _UNLABELLED)
"""The choices of annotators."""

DECISION_KEYS = (_NEG, _NEU, _POS, _UNLABELLED)
"""The choices of adjudicators."""


KIND_KEYS = "456789abdghilmopqrst"
"""The keyboard shortcuts for a campaign's kinds of error, in their order. None of them does anything else."""


def script_keys(keys: Iterable[LabelKey]) -> str:
    """Return (key, label) pairs as JSON, for the scripts of the pages."""
    return json.dumps([(one.key, one.label) for one in keys])
