"""Reading the log of what people did."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.label import LABEL_NAMES
from stepsight.core.trace import check_text
from stepsight.storage.database.labelling_schema import KEY_LENGTH, EventRow

_SAME = ("id", "item_id", "slot_id", "user_id", "kind", "step", "old", "new", "cause", "of", "key", "moment",
         "seconds", "guideline", "view", "revealed", "visible")  # fmt: skip


@dataclass(frozen=True)
class AnnotationEvent:
    """A row of the log; see `storage.database.labelling_schema.EventRow`."""

    id: int
    item_id: int
    slot_id: int | None
    user_id: int
    kind: str
    step: int | None
    old: Any
    new: Any
    cause: str
    of: int | None
    key: str
    moment: datetime
    seconds: float | None
    guideline: int
    view: str
    revealed: int | None
    visible: Mapping[str, bool]


def read_events(session: Session, item_id: int, user_id: int) -> list[AnnotationEvent]:
    """What a person did with a trace of a campaign, in order.

    Also under an earlier slot of it that somebody else took over: it was this person's work, and seen by them.
    """
    mine = _events().where(EventRow.item_id == item_id, EventRow.user_id == user_id)
    return [AnnotationEvent(**row) for row in session.execute(mine).mappings()]


def read_events_of_items(
    session: Session, item_ids: Collection[int]
) -> Mapping[tuple[int, int], Sequence[AnnotationEvent]]:
    """`read_events` of everybody who did something with these traces, by item and person."""
    found: defaultdict[tuple[int, int], list[AnnotationEvent]] = defaultdict(list)
    for row in session.execute(_events().where(EventRow.item_id.in_(item_ids))).mappings():
        found[row["item_id"], row["user_id"]].append(AnnotationEvent(**row))
    return found


def find_event(session: Session, user_id: int, key: str) -> AnnotationEvent | None:
    """The event that a person's client sent under that key, also a decision."""
    columns = [getattr(EventRow, name) for name in _SAME]
    wanted = select(*columns).where(EventRow.user_id == user_id, EventRow.key == key)
    row = session.execute(wanted).mappings().one_or_none()
    return None if row is None else AnnotationEvent(**row)


def _events() -> Select[Any]:
    # What is done outside a slot is about the answers of others.
    columns = [getattr(EventRow, name) for name in _SAME]
    return select(*columns).where(EventRow.slot_id.is_not(None)).order_by(EventRow.id)


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
class NewEvent:
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


def check_new_event(act: NewEvent) -> None:
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


def _check_kind(act: NewEvent) -> None:
    if act.kind not in KINDS:
        raise UserError(f"The kind is {act.kind!r:.40}.", f"Expected {', '.join(KINDS)}.")
    if act.of is not None:
        raise UserError("Only undo and redo are of another event.")
    if act.kind in ON_STEPS:
        _check_whole(act.step, "step")
    elif act.step is not None:
        raise UserError(f"The step of {act.kind} is {act.step!r:.40}.", "It is about no step: leave it out.")
    _check_new(act)


def _check_new(act: NewEvent) -> None:
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


StepTexts = tuple[str | None, ...]


@dataclass(frozen=True)
class Annotation:
    """What follows from a person's events. The tuples hold an entry per step, None where there is nothing.

    `revealed` is how many steps the person has seen, `submitted` whether the answer stands. `undo` and `redo` hold
    the ids of events, the last one the next to be taken back or repeated. `first` are the labels as they were when
    the next step was revealed, those of steps after which nothing was revealed as they were first submitted.
    """

    labels: StepTexts
    comments: StepTexts
    corrections: StepTexts
    errors: StepTexts
    flag: str | None
    revealed: int
    submitted: bool
    undo: tuple[int, ...]
    redo: tuple[int, ...]
    first: StepTexts

    def value(self, kind: str, step: int | None) -> str | None:
        """What an undoable act of that kind would replace."""
        if step is None:
            return self.flag
        columns = {
            "label": self.labels,
            "comment": self.comments,
            "correction": self.corrections,
            "error": self.errors,
        }
        return columns[kind][step]


def fold(events: Sequence[AnnotationEvent], n_steps: int, stepwise: bool) -> Annotation:
    """Where the person stands after these events, with a trace of so many steps; they are in order.

    A trace that lost steps since counts as long as the events say.
    """
    steps = max([n_steps, *(event.step + 1 for event in events if event.step is not None)])
    state = _State(steps, 1 if stepwise else steps)
    for event in events:
        state.take(event)
    return state.annotation()


class _State:
    def __init__(self, n_steps: int, revealed: int) -> None:
        self.values: dict[str, list[str | None]] = {kind: [None] * n_steps for kind in ON_STEPS}
        self.first: dict[int, str | None] = {}
        self.flag: str | None = None
        self.revealed = revealed
        self.submitted = False
        self.undo: list[int] = []
        self.redo: list[int] = []

    def take(self, event: AnnotationEvent) -> None:
        if event.kind in UNDOABLE:
            self._stack(event)
            if event.step is None:
                self.flag = event.new
            else:
                self.values[event.kind][event.step] = event.new
        elif event.kind == "reveal":
            self._reveal(event.new)
        elif event.kind == "submit":
            self.submitted = True
            # The answer is shown beside the whole trace.
            self._reveal(len(self.values["label"]))
            self._keep_first(len(self.values["label"]))
        elif event.kind in ("reopen", "withdraw", "skip"):
            self.submitted = False

    def _stack(self, event: AnnotationEvent) -> None:
        if event.of is not None:
            away, to = (self.undo, self.redo) if event.cause == "undo" else (self.redo, self.undo)
            away.remove(event.of)
            to.append(event.of)
        elif event.old != event.new:
            self.undo.append(event.id)
            self.redo.clear()

    def _reveal(self, count: int) -> None:
        if count > self.revealed:
            self._keep_first(self.revealed)
            self.revealed = count

    def _keep_first(self, end: int) -> None:
        for step in range(end):
            self.first.setdefault(step, self.values["label"][step])

    def annotation(self) -> Annotation:
        labels = tuple(self.values["label"])
        return Annotation(
            labels=labels,
            comments=tuple(self.values["comment"]),
            corrections=tuple(self.values["correction"]),
            errors=tuple(self.values["error"]),
            flag=self.flag,
            revealed=self.revealed,
            submitted=self.submitted,
            undo=tuple(self.undo),
            redo=tuple(self.redo),
            first=tuple(self.first.get(step, label) for step, label in enumerate(labels)),
        )


LONGEST = 4000


def check_reason(text: object, missing: str, hint: str = "Say in a few words why.") -> str:
    """The text without outer white space. Raises `UserError` with `missing` where there is none, or it is too long
    or cannot be stored."""
    if not isinstance(text, str) or not text.strip():
        raise UserError(missing, hint)
    check_text(text, "the text")
    if len(text) > LONGEST:
        raise UserError(f"The text has {len(text):,} characters.", f"Use at most {LONGEST:,}.")
    return text.strip()
