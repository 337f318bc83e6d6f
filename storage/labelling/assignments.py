"""Holding, ending and reassigning slots. A slot is a place for one person's annotation of a trace."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, load_only

from stepsight.storage.database.labelling_schema import CampaignRow, GuidelineRow, ItemRow, SlotRow
from stepsight.storage.database.schema import TraceRow, now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError
from stepsight.storage.labelling.ordering import GOLD
from stepsight.storage.labelling.plan import CampaignSettings, read_settings
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
