"""Taking, holding, ending and reassigning slots. A slot is a place for one person's annotation of a trace.

Every change to a slot or its annotation first locks the person's row and then the slot's row until the transaction
ends, so that one person's actions never run in parallel. SQLite allows only one writer anyway.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from stepsight.storage.database.labelling_schema import CampaignRow, GuidelineRow, ItemRow, SlotRow
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import TraceRow, in_range, now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError, Store
from stepsight.storage.labelling.ordering import GOLD
from stepsight.storage.labelling.plan import CampaignSettings, read_settings
from stepsight.storage.people.users import User

FREE, LEASED, SUBMITTED, SKIPPED = "free", "leased", "submitted", "skipped"


@dataclass(frozen=True)
class Slot:
    """A slot, with the facts about its item, trace and campaign that decide which events are allowed.

    `digest` is the digest of the trace at the time the campaign was created, and `current_digest` is the current
    one. `closed` is when the campaign was closed, and `guideline` the version in force.
    """

    id: int
    public_id: str
    state: str
    user_id: int | None
    expires: datetime | None
    campaign_id: int
    item_id: int
    chosen: str
    trace_id: int
    digest: str
    current_digest: str
    n_steps: int
    evaluator_id: int | None
    closed: datetime | None
    guideline: int
    settings: CampaignSettings

    def of_event(self, user: User) -> dict[str, Any]:
        """Return the columns of `EventRow` that say where and when a person does something in the slot."""
        return {
            "campaign_id": self.campaign_id,
            "item_id": self.item_id,
            "slot_id": self.id,
            "user_id": user.id,
            "moment": now(),
            "digest": self.digest,
            "guideline": self.guideline,
            "view": self.settings.view.value,
        }

    @property
    def ended(self) -> bool:
        """True if the slot is submitted or skipped."""
        return self.state in (SUBMITTED, SKIPPED)


def lock_person(session: Session, user: User) -> None:
    """Make every other action of this person wait until the transaction ends."""
    session.execute(select(UserRow.id).where(UserRow.id == user.id).with_for_update(key_share=True))


def load_slot(session: Session, slot_id: int, lock: bool = False) -> Slot:
    """Return the slot with this database id. Raises `NotFoundError` if the slot does not exist."""
    slot, campaign = SlotRow, CampaignRow
    version = select(func.max(GuidelineRow.version)).where(GuidelineRow.campaign_id == campaign.id)
    columns: list[Any] = [
        *(slot.id, slot.public_id, slot.state, slot.user_id, slot.expires, slot.campaign_id, slot.item_id),
        *(ItemRow.chosen, ItemRow.trace_id, ItemRow.digest, TraceRow.digest.label("current_digest")),
        *(TraceRow.n_steps, campaign.evaluator_id, campaign.closed, campaign.settings),
        version.scalar_subquery().label("guideline"),
    ]
    statement = (
        select(*columns)
        .join_from(slot, ItemRow, ItemRow.id == slot.item_id)
        .join(TraceRow, TraceRow.id == ItemRow.trace_id)
        .join(campaign, campaign.id == slot.campaign_id)
        .where(slot.id == in_range(slot_id))
    )
    if lock:
        statement = statement.with_for_update(of=SlotRow, key_share=True)
    row = session.execute(statement).mappings().one_or_none()
    if row is None:
        raise NotFoundError(f"There is no slot {slot_id}.")
    return Slot(**dict(row) | {"settings": read_settings(CampaignSettings, row["settings"])})


def find_slot(store: Store, public_id: str) -> int:
    """Return the database id of the slot with this public id. Raises `NotFoundError` if no slot has this id."""
    with store.read() as session:
        # PostgreSQL cannot compare with every text, and no slot has such an id.
        named = SlotRow.public_id == (public_id if public_id.isprintable() else "")
        slot_id = session.scalar(select(SlotRow.id).where(named))
    if slot_id is None:
        raise NotFoundError(
            f"There is no assignment {public_id!r}.",
            "Start labelling: a trace that you hold comes first.",
        )
    return slot_id


def check_owner(slot: Slot, user: User) -> None:
    """Raise an error unless the slot belongs to this person. The error is `ForbiddenError` if the slot is free. It
    is `ConflictError` if the slot belongs to somebody else, even if it once belonged to this person."""
    if slot.state == FREE:
        raise ForbiddenError("Nobody has taken this trace.", "Start labelling to get one.")
    if slot.user_id != user.id:
        raise ConflictError(
            "Your time for this trace ran out, and somebody else has it now.",
            "Your labels are kept. Go on with the next trace.",
        )


def check_open(slot: Slot) -> None:
    """Raise `ConflictError` if the campaign is closed or the trace has changed."""
    if slot.closed is not None:
        raise ConflictError("The campaign is closed.", "Nothing can be labelled in it any more.")
    if slot.current_digest != slot.digest:
        raise ConflictError(
            "The trace was changed after the campaign was made.", "Your labels are kept. Go on with the next trace."
        )


def take(session: Session, slot_id: int, user: User, lease: int) -> None:
    """Give a person a slot that is free or whose lease has expired. `lease` is in seconds."""
    moment = now()
    expires = moment + timedelta(seconds=lease)
    _set(session, slot_id, state=LEASED, user_id=user.id, taken=moment, expires=expires, ended=None)


def renew(session: Session, slot_id: int, lease: int) -> None:
    """Restart the lease of the person who holds a slot, or who resumes work on it."""
    _set(session, slot_id, state=LEASED, expires=now() + timedelta(seconds=lease), ended=None)


def shorten(session: Session, campaign_id: int, lease: int) -> None:
    """Shorten the leases of a campaign that end later than a new lease would. Such leases began before the clock
    was set back. Without this, a person who has left would keep a trace for too long."""
    latest = now() + timedelta(seconds=lease)
    too_late = (SlotRow.campaign_id == campaign_id, SlotRow.state == LEASED, SlotRow.expires > latest)
    session.execute(update(SlotRow).where(*too_late).values(expires=latest))


def end(session: Session, slot: Slot, state: str) -> None:
    """Mark a slot as submitted or skipped. A skipped slot is replaced by a new one for somebody else."""
    _set(session, slot.id, state=state, expires=None, ended=now())
    if state == SKIPPED and slot.chosen != GOLD:
        add_slot(session, slot.campaign_id, slot.item_id)


def add_slot(session: Session, campaign_id: int, item_id: int) -> int:
    """Add another free slot to an item and return the id of the slot."""
    # Otherwise two sessions that add one at the same time would take the same number.
    session.execute(select(ItemRow.id).where(ItemRow.id == item_id).with_for_update(key_share=True))
    last = session.scalar(select(func.max(SlotRow.number)).where(SlotRow.item_id == item_id))
    row = {"campaign_id": campaign_id, "item_id": item_id, "number": 0 if last is None else last + 1}
    return session.scalars(insert(SlotRow).values(**row, state=FREE).returning(SlotRow.id)).one()


def _set(session: Session, slot_id: int, **values: Any) -> None:
    session.execute(update(SlotRow).where(SlotRow.id == slot_id).values(**values))
