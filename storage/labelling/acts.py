"""An act: one thing that a person does while labelling a trace, and the checks of it that need nothing else."""

import re
from dataclasses import dataclass
from typing import Any

from core.errors import UserError
from core.label import LABEL_NAMES
from core.trace import check_text
from storage.labelling.tables import KEY_LENGTH

UNSURE = "unsure"
LABELS = (*LABEL_NAMES, UNSURE)
"""What a person can say of a step."""

ERROR_KINDS = (
    "redundency",
    "circular",
    "counterfactual",
    "step_contradiction",
    "domain_inconsistency",
    "confidence",
    "missing_condition",
    "deception",
)
"""What can be wrong with a step: PRMBench's classes in its spelling, without the one that has no error."""

ON_STEPS = ("label", "comment", "correction", "error")
UNDOABLE = (*ON_STEPS, "flag")
KINDS = (*UNDOABLE, "reveal", "skip", "submit", "reopen", "withdraw")
"""What a person can do in a slot. `new` holds, for `label`, one of `LABELS` or None; for `comment`, `correction`
and `flag`, a text or None; for `error`, one of `ERROR_KINDS` or None; for `reveal`, how many steps are seen then;
for `skip`, the reason; for the others, None. Outside of slots there are also events of the kind `decide`."""

LONGEST_TEXT = 10_000
_MOST_SECONDS = 7 * 24 * 3600
_KEY = re.compile(f"[!-~]{{1,{KEY_LENGTH}}}")


@dataclass(frozen=True)
class Act:
    """What a person did. `step` is 0-based. `key` is the client's own for this act: sent again, it is stored once.

    With `cause` `undo` or `redo` the newest act is taken back or repeated: the event `of`, where that is given, and
    `kind`, `step` and `new` then follow from it. `seconds` is how long the person took, as the page measured it,
    `revealed` how many steps the page showed, `guideline` the version it showed; each is checked where it is given.
    """

    kind: str
    key: str
    step: int | None = None
    new: Any = None
    cause: str = ""
    of: int | None = None
    seconds: float | None = None
    revealed: int | None = None
    guideline: int | None = None


def check_act(act: Act) -> None:
    """Raises `UserError` where no trace could take this act."""
    if not isinstance(act.key, str) or not _KEY.fullmatch(act.key):
        raise UserError(f"The key is {act.key!r:.80}.", f"Expected 1 to {KEY_LENGTH} plain characters, no spaces.")
    if act.cause not in ("", "undo", "redo"):
        raise UserError(f"The cause is {act.cause!r:.40}.", "Expected undo or redo, or none.")
    for name in ("of", "revealed", "guideline"):
        if getattr(act, name) is not None:
            _check_whole(getattr(act, name), name)
    check_seconds(act.seconds)
    if not act.cause:
        _check_kind(act)


def _check_kind(act: Act) -> None:
    if act.kind not in KINDS:
        raise UserError(f"The kind is {act.kind!r:.40}.", f"Expected {', '.join(KINDS)}.")
    if act.of is not None:
        raise UserError("Only undo and redo are of another event.")
    if act.kind in ON_STEPS:
        _check_whole(act.step, "step")
    elif act.step is not None:
        raise UserError(f"The step of {act.kind} is {act.step!r:.40}.", "It is about no step: leave it out.")
    _check_new(act)


def _check_new(act: Act) -> None:
    if act.kind == "reveal":
        _check_whole(act.new, "reveal")
    elif act.kind == "skip":
        _check_written(act.new, "the reason for skipping")
    elif act.new is None:
        return
    elif act.kind == "label":
        _check_word(act.new, LABELS, "label")
    elif act.kind == "error":
        _check_word(act.new, ERROR_KINDS, "kind of error")
    elif act.kind in UNDOABLE:
        _check_written(act.new, f"the {act.kind}")
    else:
        raise UserError(f"{act.kind} came with {act.new!r:.40}.", "It takes nothing.")


def _check_whole(found: object, what: str) -> None:
    # True is a number in Python, and no number of steps.
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 2**31:
        raise UserError(f"The {what} is {found!r:.40}.", "Expected a whole number from 0.")


def _check_word(found: object, words: tuple[str, ...], what: str) -> None:
    if found not in words:
        raise UserError(f"The {what} is {found!r:.40}.", f"Expected {', '.join(words)}, or null for none.")


def _check_written(found: object, what: str) -> None:
    text = check_text(found, what)
    if len(text) > LONGEST_TEXT:
        raise UserError(f"{what} has {len(text):,} characters.", f"Use at most {LONGEST_TEXT:,}.")


def check_seconds(found: object) -> None:
    """Raises `UserError` where this is not how long somebody can have taken; None is nobody's measure."""
    if found is None:
        return
    if not isinstance(found, int | float) or isinstance(found, bool):
        raise UserError(f"The seconds are {found!r:.40}.", "Expected a number.")
    # Written so that NaN is refused as well.
    if not 0 <= found <= _MOST_SECONDS:
        raise UserError(f"The seconds are {found!r:.40}.", f"Expected 0 to {_MOST_SECONDS:,}.")
