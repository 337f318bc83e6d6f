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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.trace import LABEL_NAMES
from stepsight.storage.database.labelling_schema import EventRow, GuidelineRow, ItemRow
from stepsight.storage.database.schema import TraceRow, UserRow, in_range
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.labelling.annotation import DECIDE, UNSURE, check_event, check_key, check_reason
from stepsight.storage.labelling.campaigns import load_settings
from stepsight.storage.labelling.plan import GOLD
from stepsight.storage.labelling.submissions import (
    LabelledItem,
    SubmittedAnnotation,
    iterate_annotations,
    read_annotations,
    vote,
)
from stepsight.storage.people.users import User


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
    own: bool
    event_id: int


@dataclass(frozen=True)
class AnnotatedItem:
    """An item of a campaign with its submitted annotations, of which there is at least one, and the decisions in
    force on its steps, by 0-based step."""

    annotations: tuple[SubmittedAnnotation, ...]
    decisions: Mapping[int, Decision]

    @property
    def item(self) -> LabelledItem:
        return self.annotations[0].item

    @cached_property
    def disagreed(self) -> tuple[int, ...]:
        """The 0-based steps on which the annotators disagree."""
        by_step = zip(*(annotation.labels for annotation in self.annotations), strict=True)
        names = set(LABEL_NAMES)
        return tuple(i for i, labels in enumerate(by_step) if UNSURE in labels or len(names & {*labels}) > 1)

    @property
    def undecided(self) -> tuple[int, ...]:
        """The steps on which they disagree and no decision has been made."""
        return tuple(step for step in self.disagreed if step not in self.decisions)


def iterate_items(store: Store, campaign_id: int) -> Iterator[AnnotatedItem]:
    """Yield the items of a campaign of which there are annotations, in the order of the queue."""
    decisions: dict[int, dict[int, Decision]] = {}
    for (item_id, step), decision in read_decisions(store, campaign_id).items():
        decisions.setdefault(item_id, {})[step] = decision
    annotations = iterate_annotations(store, campaign_id)
    for item_id, group in groupby(annotations, key=lambda annotation: annotation.item.id):
        yield AnnotatedItem(tuple(group), decisions.get(item_id, {}))


@dataclass(frozen=True)
class Adjudication:
    """The state of a campaign's adjudication: the items with disagreements, in the order of the queue."""

    items: tuple[AnnotatedItem, ...]

    @property
    def steps(self) -> int:
        return sum(len(item.disagreed) for item in self.items)

    @property
    def decided(self) -> int:
        return self.steps - sum(len(item.undecided) for item in self.items)

    def find(self, item_id: int) -> AnnotatedItem | None:
        return next((item for item in self.items if item.item.id == item_id), None)

    def next_open(self, after: int | None = None) -> AnnotatedItem | None:
        """Return the first item with an undecided step after the item `after`, continuing from the start at the
        end."""
        places = [item.item.id for item in self.items]
        start = places.index(after) + 1 if after in places else 0
        turned = self.items[start:] + self.items[:start]
        return next((item for item in turned if item.undecided), None)


def read_adjudication(store: Store, campaign_id: int) -> Adjudication:
    """Return the state of a campaign's adjudication, cached until the log has a new event."""
    with store.read() as session:
        version = session.scalar(select(func.max(EventRow.id)).where(EventRow.campaign_id == campaign_id))

    def read() -> Adjudication:
        items = iterate_items(store, campaign_id)
        return Adjudication(tuple(item for item in items if item.disagreed and item.item.chosen != GOLD))

    return store.cache.get(("adjudication", campaign_id), version, read, _size)


def _size(adjudication: Adjudication) -> int:
    """Estimate the size of an adjudication in bytes from its texts and labels."""
    annotations = [annotation for item in adjudication.items for annotation in item.annotations]
    texts = [text for annotation in annotations for text in (*annotation.comments, *annotation.corrections) if text]
    reasons = [decision.reason for item in adjudication.items for decision in item.decisions.values()]
    labels = sum(1000 + 64 * len(annotation.labels) for annotation in annotations)
    return labels + sum(map(sys.getsizeof, texts + reasons))


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
    missing = "The decision has no reason."
    if label is not None and label not in LABEL_NAMES:
        raise UserError(f"The label is {label!r:.40}, expected neg, neu, pos or null (unlabelled).")
    new: dict[str, Any] = {"label": label, "reason": check_reason(reason, missing) if reason else ""}
    check_key(key)
    with store.write() as session:
        item = session.get(ItemRow, in_range(item_id))
        if item is None or item.campaign_id != campaign_id:
            raise NotFoundError(f"The campaign has no item {item_id}.")
        stored = session.scalar(select(EventRow).where(EventRow.user_id == user.id, EventRow.key == key))
        if stored is not None:
            return _repeated_decision(stored, item.id, step, new, user)
        annotations = _load_annotations(session, item, step)
        before = session.scalar(
            select(EventRow)
            .where(EventRow.item_id == item.id, EventRow.step == step, EventRow.kind == DECIDE)
            .order_by(EventRow.id.desc())
            .limit(1)
        )
        if after is not None and after != (0 if before is None else before.id):
            raise ConflictError(
                "This step has been decided in the meantime, as the page now shows.",
                "Decide it again if you disagree.",
            )
        majority, _ = vote([annotation.labels[step] for annotation in annotations])
        if not reason and (label is None or label != majority):
            raise UserError(missing, "Explain in a few words why you disagree with most annotators.")
        guideline = select(func.max(GuidelineRow.version)).where(GuidelineRow.campaign_id == campaign_id)
        event = EventRow(
            campaign_id=campaign_id,
            item_id=item.id,
            user_id=user.id,
            kind=DECIDE,
            step=step,
            old=None if before is None else before.new,
            new=new | {"own": any(annotation.user_id == user.id for annotation in annotations)},
            key=key,
            digest=item.digest,
            guideline=session.scalar(guideline) or 0,
            view=load_settings(session, campaign_id).view.value,
        )
        session.add(event)
        session.flush()
        return _decision(event, user.name)


def _load_annotations(session: Session, item: ItemRow, step: int) -> list[SubmittedAnnotation]:
    """Return the annotations of an item. Raises an error unless the trace is unchanged, contains the step, and was
    submitted by somebody."""
    digest, n_steps = session.execute(
        select(TraceRow.digest, TraceRow.n_steps).where(TraceRow.id == item.trace_id)
    ).one()
    if digest != item.digest:
        raise ConflictError("The trace has changed since it was labelled.", "Label it again in a new campaign.")
    if not 0 <= step < n_steps:
        raise UserError(f"There is no step {step + 1}: the trace has {n_steps}.")
    annotations = read_annotations(session, item.campaign_id, item.id)
    if not annotations:
        raise UserError("Nobody has submitted labels for this trace.", "Decide once somebody has.")
    return annotations


def _repeated_decision(event: EventRow, item_id: int, step: int, new: dict[str, Any], user: User) -> Decision:
    content = {name: (event.new or {}).get(name) for name in new} if event.kind == DECIDE else None
    if (event.item_id, event.step, content) != (item_id, step, new):
        raise ConflictError("This key was used for something else.", "Reload the page, then decide again.")
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
    new: Mapping[str, Any] = check_event(event).new or {}
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
