"""Recording what people do: every act is an event of an append-only log, stored once however often it is sent."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import insert
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import ConflictError, Store
from stepsight.storage.labelling.annotation import (
    UNDOABLE,
    Annotation,
    AnnotationEvent,
    NewEvent,
    check_new_event,
    find_event,
    fold,
    read_events,
)
from stepsight.storage.labelling.slots import (
    SKIPPED,
    SUBMITTED,
    Slot,
    check_open,
    check_owner,
    end,
    load_slot,
    lock_person,
    renew,
)
from stepsight.storage.people.exposures import WHAT, exposures_of
from stepsight.storage.people.users import User


@dataclass(frozen=True)
class RecordedEvent:
    """An event of the log; `repeated` says that it was there already."""

    event_id: int
    moment: datetime
    repeated: bool


def record(store: Store, slot_id: int, user: User, act: NewEvent) -> RecordedEvent:
    """Store what a person did in a slot, and hold the slot for them from now on. The same key and content again
    gives the first answer, whatever has happened since.

    Raises `NotFoundError` where there is no such slot; `ConflictError` where it is not the person's any more, the
    answer is submitted or skipped (or, for `reopen`, is not), the campaign is closed, another guideline is in
    force, the trace has changed, or the key is known with other content; `ForbiddenError` where nobody took it;
    `UserError` on a step that the trace does not have or that is not revealed yet, a value that the kind does not
    take, nothing to undo, and an answer that is submitted before it is complete. Nothing is stored then.
    """
    check_new_event(act)
    with store.write(durable=True) as session:
        lock_person(session, user)
        known = find_event(session, user.id, act.key)
        if known is not None:
            return _repeated(known, slot_id, act)
        slot = load_slot(session, slot_id, lock=True)
        check_owner(slot, user)
        _check_state(slot, act)
        log = read_events(session, slot.item_id, user.id)
        annotation = fold(log, slot.n_steps, slot.stepwise)
        if act.cause:
            act = _caused(act, annotation, {event.id: event for event in log})
        _check_against(slot, annotation, act)
        event_id, moment = _insert(session, slot, annotation, user, act)
        _move(session, slot, act)
        return RecordedEvent(event_id, moment, repeated=False)


def _repeated(known: AnnotationEvent, slot_id: int, act: NewEvent) -> RecordedEvent:
    said = (known.slot_id, known.cause, known.of if act.of is not None else None)
    same = said == (slot_id, act.cause, act.of)
    if not act.cause:
        same = same and (known.kind, known.step, known.new) == (act.kind, act.step, act.new)
    if not same:
        raise ConflictError("The key of this request was used for something else.", "Send a new key.")
    return RecordedEvent(known.id, known.moment, repeated=True)


def _check_state(slot: Slot, act: NewEvent) -> None:
    if act.kind == "withdraw" and not act.cause:
        # What a person gave can be taken back by them at any time.
        if slot.state == SKIPPED:
            raise ConflictError("This trace was skipped or withdrawn already.", "Go on with the next one.")
        return
    check_open(slot)
    if slot.state == SKIPPED:
        raise ConflictError("You skipped this trace, or withdrew your answer.", "Go on with the next one.")
    if act.kind == "reopen" and not act.cause:
        if slot.state != SUBMITTED:
            raise ConflictError("The answer is not submitted.", "Go on labelling.")
    elif slot.state == SUBMITTED:
        raise ConflictError("The answer is submitted already.", "Take it back to change something.")
    if act.guideline not in (None, slot.guideline):
        raise ConflictError(
            f"The guideline has changed: version {slot.guideline} is in force, and the page shows version"
            f" {act.guideline}.",
            "Read the new one, then go on.",
        )


def _caused(act: NewEvent, annotation: Annotation, log: dict[int, AnnotationEvent]) -> NewEvent:
    """The act that takes back or repeats another one."""
    stack = annotation.undo if act.cause == "undo" else annotation.redo
    if not stack:
        raise UserError(f"There is nothing to {act.cause}.")
    if act.of not in (None, stack[-1]):
        raise ConflictError("Something else was done meanwhile.", "Reload the page.")
    event = log[stack[-1]]
    new = event.old if act.cause == "undo" else event.new
    return replace(act, kind=event.kind, step=event.step, new=new, of=event.id)


def _check_against(slot: Slot, annotation: Annotation, act: NewEvent) -> None:
    """Whether the trace and what was done so far allow the act."""
    if act.step is not None:
        _check_step(slot, annotation, act.step)
    if act.revealed is not None and act.revealed > annotation.revealed:
        raise UserError(
            f"The page shows {act.revealed} steps, and {annotation.revealed} are revealed.", "Reload it."
        )
    if act.kind == "reveal":
        _check_reveal(slot, annotation, act.new)
    elif act.kind == "submit":
        _check_complete(slot, annotation)


def _check_step(slot: Slot, annotation: Annotation, step: int) -> None:
    if step >= annotation.revealed < slot.n_steps:
        # How many there are is not to be told either.
        raise UserError(f"Step {step + 1} is not revealed yet.", "Label the steps before it first.")
    if step >= slot.n_steps:
        raise UserError(f"There is no step {step + 1}.", f"The trace has {slot.n_steps}.")


def _check_reveal(slot: Slot, annotation: Annotation, count: int) -> None:
    if not slot.stepwise:
        raise UserError("All steps are seen in this campaign.", "There is nothing to reveal.")
    if count <= annotation.revealed:
        return
    if annotation.revealed == slot.n_steps:
        raise UserError("All steps are revealed.", "There are no more.")
    if count > annotation.revealed + 1:
        raise UserError(f"Step {annotation.revealed + 1} comes before step {count}.", "Reveal one step at a time.")
    if annotation.labels[annotation.revealed - 1] is None:
        raise UserError(f"Step {annotation.revealed} is not labelled yet.", "Label it, then the next one is shown.")


def _check_complete(slot: Slot, annotation: Annotation) -> None:
    needed = needed_steps(annotation.labels, slot.after_error)
    missing = [step + 1 for step in range(min(needed, annotation.revealed)) if annotation.labels[step] is None]
    if missing:
        steps = "Step " if len(missing) == 1 else "Steps "
        which = ", ".join(map(str, missing[:10])) + (", …" if len(missing) > 10 else "")
        verb = "is" if len(missing) == 1 else "are"
        raise UserError(f"{steps}{which} {verb} not labelled yet.", "Label every step, then submit.")
    if needed > annotation.revealed:
        raise UserError("There are more steps, not revealed yet.", "Reveal and label them, then submit.")


def needed_steps(labels: tuple[str | None, ...], after_error: bool) -> int:
    """How many steps have to be labelled: all, or up to the first `neg` where labelling ends there."""
    if after_error or "neg" not in labels:
        return len(labels)
    return labels.index("neg") + 1


def _insert(
    session: Session, slot: Slot, annotation: Annotation, user: User, act: NewEvent
) -> tuple[int, datetime]:
    seen = exposures_of(session, user.id, slot.trace_id) | ({"scores"} if slot.shows_scores else set())
    values: dict[str, Any] = {
        "campaign_id": slot.campaign_id,
        "item_id": slot.item_id,
        "slot_id": slot.id,
        "user_id": user.id,
        "kind": act.kind,
        "step": act.step,
        "old": _old(annotation, act),
        "new": act.new,
        "cause": act.cause,
        "of": act.of,
        "key": act.key,
        "moment": now(),
        "seconds": act.seconds,
        "digest": slot.digest,
        "guideline": slot.guideline,
        "view": slot.view,
        "revealed": annotation.revealed if slot.stepwise else None,
        "visible": {what: what in seen for what in WHAT},
    }
    event_id = session.scalars(insert(EventRow).values(**values).returning(EventRow.id)).one()
    return event_id, values["moment"]


def _old(annotation: Annotation, act: NewEvent) -> str | int | None:
    if act.kind in UNDOABLE:
        return annotation.value(act.kind, act.step)
    return annotation.revealed if act.kind == "reveal" else None


def _move(session: Session, slot: Slot, act: NewEvent) -> None:
    """What becomes of the slot."""
    if act.kind == "submit":
        end(session, slot, SUBMITTED)
    elif act.kind in ("skip", "withdraw"):
        end(session, slot, SKIPPED)
    else:
        renew(session, slot.id, slot.lease)


def read_annotation(store: Store, slot_id: int, user_id: int | None = None) -> Annotation:
    """Where a person stands with the trace of a slot, by default who has the slot; nobody has an empty draft.

    Raises `NotFoundError`.
    """
    with store.read() as session:
        slot = load_slot(session, slot_id)
        whose = slot.user_id if user_id is None else user_id
        log = [] if whose is None else read_events(session, slot.item_id, whose)
        return fold(log, slot.n_steps, slot.stepwise)


def undo(store: Store, slot_id: int, user: User, key: str) -> RecordedEvent:
    """Take back the newest label, comment, correction, kind of error or flag that stands. As often as there is one.

    Raises what `storage.labelling.record.record` raises, `UserError` where there is nothing to take back.
    """
    return record(store, slot_id, user, NewEvent(kind="", key=key, cause="undo"))


def redo(store: Store, slot_id: int, user: User, key: str) -> RecordedEvent:
    """Repeat what was last taken back, until something new is done. Raises as `undo` does."""
    return record(store, slot_id, user, NewEvent(kind="", key=key, cause="redo"))
