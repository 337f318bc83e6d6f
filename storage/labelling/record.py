"""Slots, the places for one person's annotation of a trace, and recording the events of annotations in them. An
event is stored only once, however often it is sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, load_only

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import CampaignRow, EventRow, GuidelineRow, ItemRow, SlotRow
from stepsight.storage.database.schema import TraceRow, now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError, Store
from stepsight.storage.labelling.annotation import (
    EVIDENCE,
    UNDOABLE,
    Annotation,
    Fold,
    NewEvent,
    find_event,
    fold,
    needed_steps,
    read_events,
)
from stepsight.storage.labelling.plan import GOLD, CampaignSettings, read_settings
from stepsight.storage.people.users import User

FREE, LEASED, SUBMITTED, SKIPPED = "free", "leased", "submitted", "skipped"


@dataclass(frozen=True)
class Slot:
    """The row of a slot with those of its item, trace and campaign. Of the trace, only the digest and the number of
    steps are loaded. `guideline` is the version in force."""

    row: SlotRow
    item: ItemRow
    trace: TraceRow
    campaign: CampaignRow
    guideline: int

    @cached_property
    def settings(self) -> CampaignSettings:
        return read_settings(CampaignSettings, self.campaign.settings)

    def of_event(self, user: User) -> dict[str, Any]:
        """Return the columns of `EventRow` that say where and when a person does something in the slot."""
        return {
            "campaign_id": self.campaign.id,
            "item_id": self.item.id,
            "slot_id": self.row.id,
            "user_id": user.id,
            "moment": now(),
            "digest": self.item.digest,
            "guideline": self.guideline,
            "view": self.settings.view.value,
        }


def load_slot(session: Session, public_id: str) -> Slot:
    """Return the slot with this public id. Raises `NotFoundError` if no slot has it."""
    version = select(func.max(GuidelineRow.version)).where(GuidelineRow.campaign_id == CampaignRow.id)
    slots = (
        select(SlotRow, ItemRow, TraceRow, CampaignRow, version.scalar_subquery())
        .join(ItemRow, ItemRow.id == SlotRow.item_id)
        .join(TraceRow, TraceRow.id == ItemRow.trace_id)
        .join(CampaignRow, CampaignRow.id == SlotRow.campaign_id)
        .options(load_only(TraceRow.digest, TraceRow.n_steps))
        # PostgreSQL cannot compare with texts that contain NUL, and no slot has such an id.
        .where(SlotRow.public_id == (public_id if public_id.isprintable() else ""))
    )
    rows = session.execute(slots).one_or_none()
    if rows is None:
        raise NotFoundError(
            f"There is no assignment {public_id!r}.",
            "Start labelling: a trace that you already have comes first.",
        )
    return Slot(*rows)


def check_owner(slot: Slot, user: User) -> None:
    """Raise an error unless the slot belongs to this person. The error is `ForbiddenError` if the slot is free. It
    is `ConflictError` if the slot belongs to somebody else, even if it once belonged to this person."""
    if slot.row.state == FREE:
        raise ForbiddenError("Nobody has taken this trace.", "Start labelling to get one.")
    if slot.row.user_id != user.id:
        raise ConflictError(
            "Your time for this trace ran out, and somebody else has it now.",
            "Your labels are kept. Continue with the next trace.",
        )


def check_open(slot: Slot) -> None:
    """Raise `ConflictError` if the campaign is closed or the trace has changed."""
    if slot.campaign.closed is not None:
        raise ConflictError("The campaign is closed.", "Nothing can be labelled in it any more.")
    if slot.trace.digest != slot.item.digest:
        raise ConflictError(
            "The trace was changed after the campaign began.", "Your labels are kept. Continue with the next trace."
        )


def renew(slot: SlotRow, lease: int) -> None:
    """Start the lease of `lease` seconds of the person who takes or holds a slot, or resumes work on it."""
    slot.state, slot.expires, slot.ended = LEASED, now() + timedelta(seconds=lease), None


def shorten(session: Session, campaign_id: int, lease: int) -> None:
    """Shorten the leases of a campaign that end later than a new lease would. Such leases began before the clock
    was set back. Without this, a person who has left would keep a trace for too long."""
    latest = now() + timedelta(seconds=lease)
    too_late = (SlotRow.campaign_id == campaign_id, SlotRow.state == LEASED, SlotRow.expires > latest)
    session.execute(update(SlotRow).where(*too_late).values(expires=latest))


def end(session: Session, slot: Slot, state: str) -> None:
    """Mark a slot as submitted or skipped. A skipped slot is replaced by a new one for somebody else."""
    slot.row.state, slot.row.expires, slot.row.ended = state, None, now()
    if state == SKIPPED and slot.item.chosen != GOLD:
        add_slot(session, slot.item)


def add_slot(session: Session, item: ItemRow) -> SlotRow:
    """Add another free slot to an item."""
    last = session.scalar(select(func.max(SlotRow.number)).where(SlotRow.item_id == item.id))
    number = 0 if last is None else last + 1
    slot = SlotRow(campaign_id=item.campaign_id, item_id=item.id, number=number, state=FREE)
    session.add(slot)
    return slot


MOST_EVENTS = 10_000
"""The largest number of events of a person on a trace, after which only its end is recorded. Each event is derived
from all before it."""


@dataclass(frozen=True)
class RecordedEvent:
    """A logged event and the person's annotation after it. `repeated` is True if the event was stored before."""

    event_id: int
    moment: datetime
    repeated: bool
    annotation: Annotation


def record(store: Store, public_id: str, user: User, event: NewEvent) -> RecordedEvent:
    """Store an event of a person in a slot. From then on, the person holds the slot.

    If the same key is sent again with the same content, the result is the event stored first, whatever has happened
    since.

    Nothing is stored if an error is raised:

    - `NotFoundError` if the slot does not exist, and `ForbiddenError` if nobody has taken it.
    - `ConflictError` if the slot no longer belongs to the person, if the annotation is submitted or skipped
      (or, for `reopen`, is not submitted or is final), if the campaign is closed, if a different guideline is in
      force, if the trace has changed, or if the key was used with different content.
    - `UserError` if the trace has no such step or it is not yet revealed, if the value is invalid for the
      kind of event, if there is nothing to undo, if an incomplete annotation is submitted, or if the person has
      `MOST_EVENTS` events on the trace.
    """
    with store.write(durable=True) as session:
        slot = load_slot(session, public_id)
        earlier = find_event(session, user.id, event.key)
        if earlier is not None:
            return _repeated_event(session, earlier, slot, event)
        check_owner(slot, user)
        _check_slot(slot, event)
        log = read_events(session, slot.item.id, user.id)
        if len(log) >= MOST_EVENTS and event.kind not in ("submit", "skip", "withdraw"):
            raise UserError(
                f"You have changed this trace {len(log):,} times.", "Submit or skip it; no more changes are stored."
            )
        folded = Fold(log, slot.trace.n_steps, stepwise=slot.settings.stepwise)
        annotation = folded.annotation()
        target = None
        if event.cause:
            target = _resolve(event, annotation, log)
            new = target.old if event.cause == "undo" else target.new
            event = event.model_copy(update={"kind": target.kind, "step": target.step, "new": new})
        _check_event(slot, annotation, event)
        stored = _insert(session, slot, annotation, user, event, target)
        _update_slot(session, slot, event)
        folded.add(stored)
        return RecordedEvent(stored.id, stored.moment, False, folded.annotation())


def read_annotation(store: Store, public_id: str, user_id: int | None = None) -> Annotation:
    """Return a person's annotation of a slot's trace. `user_id` defaults to the holder of the slot.

    The annotation is empty if nobody holds the slot. Raises `NotFoundError` if the slot does not exist.
    """
    with store.read() as session:
        slot = load_slot(session, public_id)
        return _read_annotation(session, slot, slot.row.user_id if user_id is None else user_id)


def _read_annotation(session: Session, slot: Slot, user_id: int | None) -> Annotation:
    log = [] if user_id is None else read_events(session, slot.item.id, user_id)
    return fold(log, slot.trace.n_steps, stepwise=slot.settings.stepwise)


def _repeated_event(session: Session, earlier: EventRow, slot: Slot, event: NewEvent) -> RecordedEvent:
    """Return the event already stored under the same key, even if the person has since lost the slot. Raises
    `ConflictError` if the stored event has different content."""
    same = (earlier.slot_id, earlier.cause) == (slot.row.id, event.cause)
    if event.cause:
        target = None if event.of is None else find_event(session, earlier.user_id, event.of)
        same = same and (event.of is None or (target is not None and target.id == earlier.of))
    else:
        same = same and (earlier.kind, earlier.step, earlier.new) == (event.kind, event.step, event.new)
    if not same:
        raise ConflictError("The key of this request was used for something else.", "Send a new key.")
    annotation = _read_annotation(session, slot, earlier.user_id)
    return RecordedEvent(earlier.id, earlier.moment, True, annotation)


def _check_slot(slot: Slot, event: NewEvent) -> None:
    """Raise `ConflictError` if the state of the slot does not allow the event."""
    if event.kind == "withdraw" and not event.cause:
        # A person can withdraw what they submitted at any time.
        if slot.row.state == SKIPPED:
            raise ConflictError("This trace was already skipped or withdrawn.", "Continue with the next trace.")
        return
    check_open(slot)
    if slot.row.state == SKIPPED:
        raise ConflictError("You skipped this trace, or withdrew your annotation.", "Continue with the next trace.")
    if event.kind == "reopen" and not event.cause:
        if slot.row.state != SUBMITTED:
            raise ConflictError("The annotation is not submitted.", "Continue labelling.")
        if slot.settings.is_final:
            hint = "Withdraw it if it should not count."
            raise ConflictError("You have seen what is shown after submission, so the annotation is final.", hint)
    elif slot.row.state == SUBMITTED:
        raise ConflictError("The annotation has already been submitted.", "Take it back to change something.")
    if event.guideline not in (None, slot.guideline):
        raise ConflictError(
            f"The guideline has changed: version {slot.guideline} is current, and the page shows version"
            f" {event.guideline}.",
            "Read the new one, then continue.",
        )


def _resolve(event: NewEvent, annotation: Annotation, log: Sequence[EventRow]) -> EventRow:
    """Return the logged event that an undo or redo applies to. Raises `UserError` if there is none, and
    `ConflictError` if its key is not `event.of`."""
    stack = annotation.undo if event.cause == "undo" else annotation.redo
    if not stack:
        raise UserError(f"There is nothing to {event.cause}.")
    if event.of not in (None, stack[-1]):
        raise ConflictError(
            "The labels have changed in the meantime.", "Look at them as they are now, then try again."
        )
    return next(logged for logged in log if logged.key == stack[-1])


def _check_event(slot: Slot, annotation: Annotation, event: NewEvent) -> None:
    """Raise an error if the trace or the current annotation does not allow the event."""
    step = event.step
    if step is not None and step >= annotation.revealed < slot.trace.n_steps:
        # The number of steps is hidden too.
        raise UserError(f"Step {step + 1} is not revealed yet.", "Label the steps before it first.")
    if step is not None and step >= slot.trace.n_steps:
        raise UserError(f"There is no step {step + 1}.", f"The trace has {slot.trace.n_steps}.")
    if event.revealed is not None and event.revealed > annotation.revealed:
        raise UserError(
            f"The page shows {event.revealed} steps, but {annotation.revealed} are revealed.", "Reload it."
        )
    if event.kind == "error" and not event.cause and event.new not in (None, *slot.settings.error_kinds):
        raise UserError(
            f"The kind of error is {event.new!r:.60}.", f"This campaign has {', '.join(slot.settings.error_kinds)}."
        )
    if event.kind == EVIDENCE and event.new is not None and not event.cause:
        _check_evidence(slot, annotation, event)
    if event.kind == "reveal":
        _check_reveal(slot, annotation, event.new)
    elif event.kind == "submit":
        _check_complete(slot, annotation)


def _check_evidence(slot: Slot, annotation: Annotation, event: NewEvent) -> None:
    step: int = event.step or 0
    if not slot.settings.stepwise:
        raise UserError("All steps are visible here.", "Only stepwise campaigns ask what changed a label.")
    seen = min(annotation.revealed, slot.trace.n_steps)
    if event.new >= seen:
        raise UserError(f"Step {event.new + 1} cannot be linked to yet.", f"Name one of the first {seen}.")
    if event.new <= step:
        raise UserError(f"Step {step + 1} cannot be changed by step {event.new + 1}.", "Name a later step.")


def _check_reveal(slot: Slot, annotation: Annotation, count: int) -> None:
    if not slot.settings.stepwise:
        raise UserError("All steps are visible in this campaign.", "There is nothing to reveal.")
    if count <= annotation.revealed:
        return
    if annotation.revealed == slot.trace.n_steps:
        raise UserError("All steps are revealed.", "There are no more.")
    if count > annotation.revealed + 1:
        raise UserError(f"Step {annotation.revealed + 1} comes before step {count}.", "Reveal one step at a time.")
    if annotation.labels[annotation.revealed - 1] is None:
        raise UserError(f"Step {annotation.revealed} is not labelled yet.", "Label it, then the next one is shown.")


def _check_complete(slot: Slot, annotation: Annotation) -> None:
    needed = needed_steps(annotation.labels, slot.settings.after_error)
    missing = [step + 1 for step in range(min(needed, annotation.revealed)) if annotation.labels[step] is None]
    if missing:
        steps = "Step " if len(missing) == 1 else "Steps "
        which = ", ".join(map(str, missing[:10])) + (", …" if len(missing) > 10 else "")
        verb = "is" if len(missing) == 1 else "are"
        raise UserError(f"{steps}{which} {verb} not labelled yet.", "Label every step, then submit.")
    if needed > annotation.revealed:
        raise UserError("There are more steps, not revealed yet.", "Reveal and label them, then submit.")


def _insert(
    session: Session, slot: Slot, annotation: Annotation, user: User, event: NewEvent, target: EventRow | None
) -> EventRow:
    old: str | int | None = annotation.revealed if event.kind == "reveal" else None
    if event.kind in UNDOABLE:
        old = annotation.value(event.kind, event.step)
    stored = EventRow(
        **event.model_dump(include={"kind", "step", "new", "cause", "key", "seconds"}),
        **slot.of_event(user),
        old=old,
        of=None if target is None else target.id,
        revealed=annotation.revealed if slot.settings.stepwise else None,
    )
    session.add(stored)
    session.flush()
    return stored


def _update_slot(session: Session, slot: Slot, event: NewEvent) -> None:
    if event.kind == "submit":
        end(session, slot, SUBMITTED)
    elif event.kind in ("skip", "withdraw"):
        end(session, slot, SKIPPED)
    else:
        renew(slot.row, slot.settings.lease)
