"""Annotation events, and the annotations derived from them.

An annotation event is one action taken by a person on a trace of a campaign, such as setting a label, writing a
comment or revealing a step. The log of events is append-only. `fold` derives an annotation from the log: the
current state of a person's labels and notes. `assets/web/js/annotate/annotation.js` does the same in the browser,
and both are tested with the same sequences of events.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.trace import LABEL_NAMES, check_text
from stepsight.core.validation import Model, choice, validate
from stepsight.storage.database.labelling_schema import KEY_LENGTH, EventRow
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.labelling.plan import Kind

UNSURE = "unsure"
LABELS = (*LABEL_NAMES, UNSURE)
"""The labels that a person can give a step."""

EVIDENCE = "evidence"
"""The kind of the event that names the later step that changed the person's mind about a step."""
ON_STEPS = ("label", "comment", "correction", "error", EVIDENCE)
UNDOABLE = (*ON_STEPS, "flag")
SUGGEST = "suggest"
"""The kind of the event that records an evaluator's suggested labels; `new` holds a label, or None, per step.
No client sends one: see `storage.labelling.review`."""
DECIDE = "decide"
"""The kind of a decision, which belongs to no slot: see `storage.labelling.adjudication`."""
KINDS = (*UNDOABLE, "reveal", "skip", "submit", "reopen", "withdraw")
"""The actions possible in a slot. `new` holds: for `label`, one of `LABELS` or None; for `comment`, `correction`
and `flag`, a text or None; for `error`, one of the campaign's kinds of
error or None; for `evidence`, a 0-based step or None; for `reveal`, the number of steps
then visible; for `skip`, the reason; for the others, nothing. Events of the kind `decide` exist outside slots."""

LONGEST_TEXT = 10_000
_MOST_SECONDS = 7 * 24 * 3600
_KEY = re.compile(f"[!-~]{{1,{KEY_LENGTH}}}")


def check_key(key: str) -> str:
    """Return `key`, or raise `UserError` if it is not a valid request key.

    A request that is sent several times with the same key is stored only once.
    """
    if not _KEY.fullmatch(key):
        raise UserError(f"The key is {key!r:.80}.", f"Expected 1 to {KEY_LENGTH} plain characters, no spaces.")
    return key


Key = Annotated[str, AfterValidator(check_key)]
Count = Annotated[int, Field(strict=True, ge=0, lt=2**31)]

StepTexts = tuple[str | None, ...]
"""A label, comment or the like per step, None for a step without one."""
StepLinks = tuple[int | None, ...]
"""A 0-based step per step, or None."""


def read_events(session: Session, item_id: int, user_id: int) -> list[EventRow]:
    """Return a person's events on a trace of a campaign, in order. This includes events in a slot that somebody
    else has since taken over, because the person did that work and saw the trace."""
    events = select(EventRow).where(EventRow.item_id == item_id, EventRow.user_id == user_id)
    return list(_slot_events(session, events))


def read_events_of_items(
    session: Session, item_ids: Collection[int]
) -> Mapping[tuple[int, int], Sequence[EventRow]]:
    """Return all events on several traces of a campaign, in order, keyed by item id and user id."""
    events: defaultdict[tuple[int, int], list[EventRow]] = defaultdict(list)
    for event in _slot_events(session, select(EventRow).where(EventRow.item_id.in_(item_ids))):
        events[event.item_id, event.user_id].append(event)
    return events


def _slot_events(session: Session, events: Select[EventRow]) -> Iterator[EventRow]:
    # Events outside a slot are decisions, which are about the annotations of others.
    in_order = events.where(EventRow.slot_id.is_not(None)).order_by(EventRow.id)
    return map(check_event, session.scalars(in_order))


def find_event(session: Session, user_id: int, key: str) -> EventRow | None:
    """Return the event or decision that a person sent with the request key `key`, or None if there is none."""
    event = session.scalar(select(EventRow).where(EventRow.user_id == user_id, EventRow.key == key))
    return None if event is None else check_event(event)


def check_event(event: EventRow) -> EventRow:
    """Return `event`, or raise `DamagedError` if it has a value that is impossible for its kind."""
    for name in ("old", "new"):
        value = getattr(event, name)
        if value is not None and not is_value_of(event.kind, value):
            raise DamagedError(
                f"label_events.{name}: {value!r:.60} found in event {event.id}, of the kind {event.kind}."
            )
    return event


def is_value_of(kind: str, value: Any) -> bool:
    """True if an event of this kind can have this value. The check is kept fast, because logs are long."""
    if kind == "label":
        return isinstance(value, str) and value in LABELS
    if kind in ("error", "comment", "correction", "flag", "skip"):
        return isinstance(value, str)
    if kind in ("reveal", EVIDENCE):
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if kind == SUGGEST:
        return isinstance(value, list) and all(label is None or label in LABELS for label in value)
    if kind != DECIDE or not isinstance(value, dict) or not isinstance(value.get("reason", ""), str):
        return False
    label = value.get("label")
    return label is None or (isinstance(label, str) and label in LABEL_NAMES)


class NewEvent(Model):
    """An event to be recorded.

    `key` is chosen by the client, and an event sent again with the same key is stored only once. `step` is 0-based.
    If `cause` is `undo` or `redo`, the event undoes or redoes the newest possible event, from which `kind`, `step`
    and `new` are taken. If `of` is given, it must be the key of that event. `seconds` is the time that the person
    took, as measured by the page. `revealed` (the number of steps) and `guideline` (its version) say what the page
    showed, and are checked if given. Raises `UserError` if the event cannot be valid for any trace.
    """

    key: Key
    kind: Annotated[str, choice(KINDS)] = ""
    step: Count | None = None
    new: Any = None
    cause: Annotated[str, choice(("undo", "redo"))] = ""
    of: Key | None = None
    seconds: Annotated[float, Field(ge=0, le=_MOST_SECONDS)] | None = None
    revealed: Count | None = None
    guideline: Count | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.cause:
            if not self.kind:
                raise UserError("the key kind is missing.", f"Expected {', '.join(KINDS)}.")
            if self.of is not None:
                raise UserError("Only undo and redo refer to another event.")
            self.check_value()
        return self

    def check_value(self) -> None:
        """Raise `UserError` if the step or the value of the event is impossible for its kind."""
        if (self.step is None) == (self.kind in ON_STEPS):
            raise UserError(f"The step of {self.kind} is {self.step!r}.", _STEP_HINTS[self.kind in ON_STEPS])
        if self.kind in _VALUES:
            validate(_VALUES[self.kind], self.new, f"the value of {self.kind}")
        elif self.new is not None:
            raise UserError(f"{self.kind} has the value {self.new!r:.40}.", "It takes none.")


def _text(what: str) -> Any:
    def check(text: str) -> str:
        if len(check_text(text, what)) > LONGEST_TEXT:
            raise UserError(f"{what} has {len(text):,} characters.", f"Use at most {LONGEST_TEXT:,}.")
        return text

    return Annotated[str, AfterValidator(check)]


_STEP_HINTS = {True: "Count steps from 0.", False: "It is about no step: leave it out."}
_VALUES: dict[str, Any] = {
    "label": Annotated[str, choice(LABELS)] | None,
    "error": Kind | None,
    "comment": _text("the comment") | None,
    "correction": _text("the correction") | None,
    "flag": _text("the flag") | None,
    EVIDENCE: Count | None,
    "reveal": Count,
    "skip": _text("the reason for skipping"),
}


_BY_STEP = ("labels", "comments", "corrections", "errors", "suggested", "evidence")


@dataclass(frozen=True)
class Annotation:
    """One person's labels and notes on one trace, derived from events. The tuples of texts have one value per step.

    `revealed` is the number of steps that the person has seen. `submitted` is True while the annotation is
    submitted. `undo` and `redo` are stacks of event keys that end with the next event to undo or redo. `first`
    holds each label as it was when the next step was revealed or, failing that, when the annotation was first
    submitted. `suggested` holds an evaluator's suggested labels that the person has not changed.

    `evidence` holds the step that changed the person's mind about a step: one that they name or, in a `stepwise`
    campaign, the newest one in view when they changed its label.
    """

    labels: StepTexts
    comments: StepTexts
    corrections: StepTexts
    errors: StepTexts
    flag: str | None
    revealed: int
    submitted: bool
    undo: tuple[str, ...]
    redo: tuple[str, ...]
    first: StepTexts
    suggested: StepTexts
    evidence: StepLinks
    stepwise: bool

    def value(self, kind: str, step: int | None) -> str | int | None:
        """Return the current value that an undoable event of kind `kind` would replace."""
        if step is None:
            return self.flag
        if kind == EVIDENCE:
            return self.evidence[step]
        columns = {"label": self.labels, "comment": self.comments, "correction": self.corrections}
        return columns.get(kind, self.errors)[step]

    def as_json(self) -> dict[str, Any]:
        """Return the annotation as the JSON object that is sent to the labelling page. Of the steps that are not
        revealed yet it has one, if there are any, because their number is hidden too."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "first"}
        return values | {name: values[name][: self.revealed + 1] for name in _BY_STEP}


def needed_steps(labels: Sequence[str | None], after_error: bool) -> int:
    """Return how many steps must be labelled: all if `after_error` is set, and otherwise those up to the first
    `neg`."""
    return len(labels) if after_error or "neg" not in labels else labels.index("neg") + 1


def needed_labels(labels: Sequence[str | None], after_error: bool) -> StepTexts:
    """Return the labels of the steps that must be labelled (`needed_steps`), and None for the others."""
    end = needed_steps(labels, after_error)
    return tuple(label if step < end else None for step, label in enumerate(labels))


def fold(events: Sequence[EventRow], n_steps: int, *, stepwise: bool) -> Annotation:
    """Derive the annotation from a person's events on a trace with `n_steps` steps. The events must be in order."""
    return Fold(events, n_steps, stepwise=stepwise).annotation()


class Fold:
    """Derives an annotation from a log of events. Further events can be added. If the trace has lost steps since it
    was labelled, it is treated as having all the steps that the events refer to."""

    def __init__(self, events: Sequence[EventRow], n_steps: int, *, stepwise: bool) -> None:
        n_steps = max([n_steps, *(event.step + 1 for event in events if event.step is not None)])
        self._values: dict[str, list[Any]] = {kind: [None] * n_steps for kind in ON_STEPS}
        self._stepwise = stepwise
        self._first: dict[int, str | None] = {}
        self._suggested: list[str | None] = [None] * n_steps
        self._flag: str | None = None
        self._revealed = 1 if stepwise else n_steps
        self._submitted = False
        self._undo: list[int] = []
        self._redo: list[int] = []
        self._keys: dict[int, str] = {}
        for event in events:
            self.add(event)

    def add(self, event: EventRow) -> None:
        """Add one more event."""
        if event.kind in UNDOABLE:
            self._stack(event)
            if event.step is None:
                self._flag = event.new
            else:
                if event.kind == "label":
                    self._suggested[event.step] = None
                    self._ask_for_evidence(event.step, event.new)
                self._values[event.kind][event.step] = event.new
        elif event.kind == SUGGEST:
            for step, label in enumerate(event.new[: len(self._suggested)]):
                self._suggested[step] = self._values["label"][step] = label
        elif event.kind == "reveal":
            self._reveal(event.new)
        elif event.kind == "submit":
            self._submitted = True
            # A submitted annotation is shown with the whole trace.
            n_steps = len(self._values["label"])
            self._reveal(n_steps)
            self._keep_first(n_steps)
        elif event.kind in ("reopen", "withdraw", "skip"):
            self._submitted = False

    def _ask_for_evidence(self, step: int, label: str | None) -> None:
        """If a label changes while a later step is in view, record the newest step in view as evidence, or none if
        all steps have been in view."""
        newest, before = self._revealed - 1, self._values["label"][step]
        if step < newest and before not in (None, label):
            self._values[EVIDENCE][step] = newest if self._stepwise and label is not None else None

    def _stack(self, event: EventRow) -> None:
        if event.of is not None:
            source, target = (self._undo, self._redo) if event.cause == "undo" else (self._redo, self._undo)
            source.remove(event.of)
            target.append(event.of)
        elif event.old != event.new:
            self._undo.append(event.id)
            self._keys[event.id] = event.key
            self._redo.clear()

    def _reveal(self, count: int) -> None:
        if count > self._revealed:
            self._keep_first(self._revealed)
            self._revealed = count

    def _keep_first(self, end: int) -> None:
        for step in range(end):
            self._first.setdefault(step, self._values["label"][step])

    def annotation(self) -> Annotation:
        """Return the annotation derived from the events so far."""
        labels = tuple(self._values["label"])
        return Annotation(
            labels=labels,
            comments=tuple(self._values["comment"]),
            corrections=tuple(self._values["correction"]),
            errors=tuple(self._values["error"]),
            flag=self._flag,
            revealed=self._revealed,
            submitted=self._submitted,
            undo=tuple(self._keys[event] for event in self._undo),
            redo=tuple(self._keys[event] for event in self._redo),
            first=tuple(self._first.get(step, label) for step, label in enumerate(labels)),
            suggested=tuple(self._suggested),
            evidence=tuple(self._values[EVIDENCE]),
            stepwise=self._stepwise,
        )


LONGEST = 4000


def check_reason(text: object, missing: str, hint: str = "Give a short reason.") -> str:
    """Return `text` without leading and trailing white space. Raises `UserError` with the message `missing` if the
    text is empty, and also raises it if the text is too long or cannot be stored."""
    if not isinstance(text, str) or not text.strip():
        raise UserError(missing, hint)
    check_text(text, "the text")
    if len(text) > LONGEST:
        raise UserError(f"The text has {len(text):,} characters.", f"Use at most {LONGEST:,}.")
    return text.strip()
