"""Adjudication: the steps on which the annotators of a campaign disagree, and the adjudicators' decisions on them.

Annotators disagree on a step if two of them gave it different labels, or if somebody was unsure about it. Leaving a
step unlabelled does not count as an opinion. A person who stopped at an error that another person did not see
disagrees on that step, but not on later ones. Hidden gold items are not adjudicated, because they serve to measure
annotators.

A decision is logged as an event of the kind `decide` that belongs to no slot. The event's `new` holds the
`label`, the `reason` and `own`, which is True if the adjudicator had labelled the trace. The event's `old` holds
these values of the previous decision. The last decision on a step is in force. The annotations themselves do not
change.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.trace import LABEL_NAMES
from stepsight.storage.database.labelling_schema import (
    EventRow,
    GuidelineRow,
    ItemRow,
    SlotRow,
)
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import TraceRow, in_range
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.labelling.annotation import DECIDE, UNSURE, check_event, check_key, check_reason
from stepsight.storage.labelling.campaigns import load_settings
from stepsight.storage.labelling.ordering import GOLD
from stepsight.storage.labelling.results.annotations import (
    SubmittedAnnotation,
    iterate_annotations,
    read_annotations,
    vote,
)
from stepsight.storage.people.users import User

_NO_REASON = "The decision has no reason."


@dataclass(frozen=True)
class Decision:
    """An adjudicator's decision on a step.

    `step` is 0-based. `label` is None if the step is to stay unlabelled. `reason` may be "" only if the label is
    the majority's. `own` is True if the adjudicator had labelled the trace as well. `event_id` is the id of the
    decision in the log.
    """

    item_id: int
    step: int
    label: str | None
    reason: str
    user: str
    moment: datetime
    own: bool = False
    event_id: int = 0


def decide(
    store: Store,
    campaign_id: int,
    item_id: int,
    step: int,
    label: str | None,
    reason: str,
    user: User,
    key: str,
    after: int | None = None,
) -> Decision:
    """Record a decision. If the same `key` is sent again with the same content, return the first decision.

    `after` is the `event_id` of the decision to replace, or 0 if the step must be undecided. If it is None, any
    earlier decision is replaced. Decisions can still be made in a closed campaign.

    Raises `NotFoundError` if the campaign has no such item. Raises `ConflictError` if the trace has changed since
    it was labelled, if a decision other than `after` is in force, or if the key was used with different content.
    Raises `UserError` if the trace has no such step, if nobody has submitted the trace, if the label is unknown,
    or if it is not the majority's and no reason is given.
    """
    new: dict[str, Any] = {
        "label": _check_label(label),
        "reason": check_reason(reason, _NO_REASON) if reason else "",
    }
    check_key(key)
    with store.write() as session:
        item = _find_item(session, campaign_id, item_id)
        earlier = session.scalar(select(EventRow).where(EventRow.user_id == user.id, EventRow.key == key))
        if earlier is not None:
            return _repeat(earlier, item.id, step, new, user)
        _check_item(session, item, step)
        own = _has_labelled(session, item.id, user)
        before = _last(session, item.id, step)
        _check_before(before, after)
        if not reason and (label is None or label != _majority(session, item, step)):
            raise UserError(_NO_REASON, "Say in a few words why: it is not what most annotators said.")
        event = EventRow(
            campaign_id=campaign_id,
            item_id=item.id,
            user_id=user.id,
            kind=DECIDE,
            step=step,
            old=None if before is None else before.new,
            new=new | {"own": own},
            key=key,
            digest=item.digest,
            **_circumstances(session, campaign_id),
        )
        session.add(event)
        session.flush()
        return _decision(event, user.name)


def read_decisions(store: Store, campaign_id: int) -> dict[tuple[int, int], Decision]:
    """Return the decisions in force in a campaign, keyed by item id and step."""
    decisions = _read(store, EventRow.campaign_id == campaign_id)
    return {(decision.item_id, decision.step): decision for decision in decisions}


def past_decisions(store: Store, item_id: int) -> list[Decision]:
    """Return all decisions on an item, oldest first."""
    return _read(store, EventRow.item_id == in_range(item_id))


def _read(store: Store, condition: ColumnElement[bool]) -> list[Decision]:
    events = (
        select(EventRow, UserRow.name)
        .join(UserRow, UserRow.id == EventRow.user_id)
        .where(condition, EventRow.kind == DECIDE)
        .order_by(EventRow.id)
    )
    with store.read() as session:
        return [_decision(event, name) for event, name in session.execute(events)]


def _decision(event: EventRow, user: str) -> Decision:
    check_event(event)
    new: Mapping[str, Any] = event.new or {}
    return Decision(
        item_id=event.item_id,
        step=event.step or 0,
        label=new.get("label"),
        reason=new.get("reason", ""),
        user=user,
        moment=event.moment,
        own=bool(new.get("own")),
        event_id=event.id,
    )


def _repeat(event: EventRow, item_id: int, step: int, new: dict[str, Any], user: User) -> Decision:
    names = ("label", "reason")
    content = [(event.new or {}).get(name) for name in names] if event.kind == DECIDE else None
    if (event.item_id, event.step, content) != (item_id, step, [new.get(name) for name in names]):
        raise ConflictError("This key was used for something else.", "Reload the page, then decide again.")
    return _decision(event, user.name)


def _find_item(session: Session, campaign_id: int, item_id: int) -> ItemRow:
    """Return the item and lock it until the transaction ends, so that decisions on it are made one at a time."""
    item = session.get(ItemRow, in_range(item_id), with_for_update=True)
    if item is None or item.campaign_id != campaign_id:
        raise NotFoundError(f"The campaign has no item {item_id}.")
    return item


def _check_item(session: Session, item: ItemRow, step: int) -> None:
    """Raise an error unless the trace is unchanged, contains the step, and was submitted by somebody."""
    digest, n_steps = session.execute(
        select(TraceRow.digest, TraceRow.n_steps).where(TraceRow.id == item.trace_id)
    ).one()
    if digest != item.digest:
        raise ConflictError("The trace has changed since it was labelled.", "Label it again in a new campaign.")
    if not 0 <= step < n_steps:
        raise UserError(f"There is no step {step + 1}: the trace has {n_steps}.")
    submitted = select(func.count()).where(SlotRow.item_id == item.id, SlotRow.state == "submitted")
    if not session.scalar(submitted):
        raise UserError("Nobody has submitted labels of this trace.", "Decide once somebody has.")


def _majority(session: Session, item: ItemRow, step: int) -> str | None:
    """Return the label that most annotators gave to a step, or None if no single label has the most votes."""
    return vote([one.labels[step] for one in read_annotations(session, item.campaign_id, item.id)])[0]


def _has_labelled(session: Session, item_id: int, user: User) -> bool:
    submitted = select(SlotRow.id).where(
        SlotRow.item_id == item_id, SlotRow.user_id == user.id, SlotRow.state == "submitted"
    )
    return session.scalar(submitted) is not None


def _last(session: Session, item_id: int, step: int) -> EventRow | None:
    events = select(EventRow).where(EventRow.item_id == item_id, EventRow.step == step, EventRow.kind == DECIDE)
    return session.scalar(events.order_by(EventRow.id.desc()).limit(1))


def _check_before(before: EventRow | None, after: int | None) -> None:
    last = 0 if before is None else before.id
    if after is not None and last != after:
        raise ConflictError(
            "This step has been decided in the meantime, as the page now shows.", "Decide it again if you disagree."
        )


def _circumstances(session: Session, campaign_id: int) -> dict[str, Any]:
    newest = select(func.max(GuidelineRow.version)).where(GuidelineRow.campaign_id == campaign_id)
    view = load_settings(session, campaign_id).view.value
    return {"guideline": session.scalar(newest) or 0, "view": view}


def _check_label(label: str | None) -> str | None:
    if label is not None and label not in LABEL_NAMES:
        raise UserError(f"The label is {label!r:.40}, expected neg, neu, pos or null (unlabelled).")
    return label


@dataclass(frozen=True)
class Disagreement:
    """A trace of a campaign, the 0-based steps on which its annotators disagree, and their annotations."""

    item_id: int
    trace_id: int
    digest: str
    steps: tuple[int, ...]
    annotations: tuple[SubmittedAnnotation, ...]

    def undecided(self, decisions: dict[tuple[int, int], Decision]) -> tuple[int, ...]:
        """Return the steps on which no decision has been made."""
        return tuple(step for step in self.steps if (self.item_id, step) not in decisions)


@dataclass(frozen=True)
class Adjudication:
    """The state of a campaign's adjudication. `disagreements` are in the order of the queue. `decisions` holds the
    decisions in force, keyed by item id and step."""

    disagreements: tuple[Disagreement, ...]
    decisions: dict[tuple[int, int], Decision]

    @property
    def steps(self) -> int:
        return sum(len(one.steps) for one in self.disagreements)

    @property
    def decided(self) -> int:
        return self.steps - sum(len(one.undecided(self.decisions)) for one in self.disagreements)

    def find(self, item_id: int) -> Disagreement | None:
        return next((one for one in self.disagreements if one.item_id == item_id), None)

    def next_open(self, after: int | None = None) -> Disagreement | None:
        """Return the first disagreement with an undecided step after the item `after`, continuing from the start at
        the end."""
        places = [one.item_id for one in self.disagreements]
        start = places.index(after) + 1 if after in places else 0
        turned = self.disagreements[start:] + self.disagreements[:start]
        return next((one for one in turned if one.undecided(self.decisions)), None)


def disagreed_steps(labels: Sequence[Sequence[str | None]]) -> tuple[int, ...]:
    """Return the 0-based steps on which annotators disagree.

    `labels` has one sequence of labels per annotator, all of the same length.
    """
    return tuple(i for i, of_step in enumerate(zip(*labels, strict=True)) if _disagreed(of_step))


def _disagreed(labels: Iterable[str | None]) -> bool:
    return UNSURE in labels or len(set(labels) & set(LABEL_NAMES)) > 1


def read_adjudication(store: Store, campaign_id: int) -> Adjudication:
    """Return the state of a campaign's adjudication, cached until the log has a new event."""
    with store.read() as session:
        # Counted as well, since of simultaneous events the one with the greater id may be stored first.
        newest = select(func.count(), func.max(EventRow.id)).where(EventRow.campaign_id == campaign_id)
        version = tuple(session.execute(newest).one())
    key = ("adjudication", campaign_id)
    return store.cache.get(key, version, lambda: _read_adjudication(store, campaign_id), _size)


def _read_adjudication(store: Store, campaign_id: int) -> Adjudication:
    return Adjudication(tuple(_disagreements(store, campaign_id)), read_decisions(store, campaign_id))


def _disagreements(store: Store, campaign_id: int) -> Iterator[Disagreement]:
    for item_id, group in groupby(
        iterate_annotations(store, campaign_id), key=lambda annotation: annotation.item_id
    ):
        annotations = tuple(group)
        steps = disagreed_steps([annotation.labels for annotation in annotations])
        if steps and annotations[0].chosen != GOLD:
            yield Disagreement(item_id, annotations[0].trace_id, annotations[0].digest, steps, annotations)


def _size(adjudication: Adjudication) -> int:
    """Estimate the size of an adjudication in bytes from its texts and labels."""
    annotations = [annotation for one in adjudication.disagreements for annotation in one.annotations]
    texts = [text for one in annotations for text in (*one.comments.values(), *one.corrections.values())]
    reasons = [decision.reason for decision in adjudication.decisions.values()]
    return sum(map(sys.getsizeof, texts + reasons)) + sum(1000 + 16 * len(one.labels) for one in annotations)
