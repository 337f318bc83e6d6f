"""Labels that a person can give a step, and the key of each: on the pages, in their lists of keys and in their
scripts."""

import json
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class LabelKey:
    """A label, "" for none, with the `key` that gives it and a few words on when to give it."""

    label: str
    key: str
    title: str


_UNLABELLED = LabelKey("", "0", "no label")
_NEG = LabelKey("neg", "1", "wrong")
_NEU = LabelKey("neu", "2", "valid but redundant")
_POS = LabelKey("pos", "3", "correct and useful")

LABEL_KEYS = (_NEG, _NEU, _POS, LabelKey("unsure", "u", "you cannot tell"), _UNLABELLED)
"""What annotators choose from."""

DECISION_KEYS = (_NEG, _NEU, _POS, _UNLABELLED)
"""What adjudicators choose from."""


def script_keys(keys: Iterable[LabelKey]) -> str:
    """The keys as the scripts of the pages read them: pairs of a key and its label, in JSON."""
    return json.dumps([(one.key, one.label) for one in keys])
