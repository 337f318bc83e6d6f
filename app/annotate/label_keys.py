"""The labels that a person can give to a step and their keys, as used by pages, lists of shortcuts and scripts."""

import json
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class LabelKey:
    """A label, "" for no label, with its `key` and a few words on when to give it."""

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


def script_keys(keys: Iterable[LabelKey]) -> str:
    """Return pairs of a key and its label as JSON, for the pages' scripts."""
    return json.dumps([(one.key, one.label) for one in keys])
