"""The progress of a campaign and of its annotators."""

from dataclasses import dataclass

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from stepsight.storage.database.labelling_schema import ItemRow, SlotRow
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.assignments import FREE, LEASED, SKIPPED, SUBMITTED
from stepsight.storage.labelling.campaigns import load_campaign
from stepsight.storage.labelling.ordering import GOLD
from stepsight.storage.labelling.qualification import Qualification, qualification_slots, read_qualification


@dataclass(frozen=True)
class CampaignProgress:
    """The progress of a campaign.

    `submitted` is the number of submitted slots, out of `slots`, and `items_done` the number of completed items,
    out of `items`. These exclude hidden gold items. `mine` is the number of traces that one person has submitted,
    without those of the qualification. It includes hidden gold items, because annotators would notice if they were
    not counted.
    """

    submitted: int
    slots: int
    mine: int
    items_done: int
    items: int


@dataclass(frozen=True)
class AnnotatorProgress:
    """The numbers of traces that an annotator has submitted, currently holds, and has skipped. Gold items are
    included. `qualification` is None if the campaign has none."""

    user: str
    submitted: int
    leased: int
    skipped: int
    qualification: Qualification | None = None


def campaign_progress(store: Store, campaign_id: int, user_id: int | None = None) -> CampaignProgress:
    """Return the progress of a campaign, including the number of traces submitted by the user `user_id`.

    Raises `NotFoundError` if the campaign does not exist.
    """
    with store.read() as session:
        campaign = load_campaign(session, campaign_id)
        counts = _counts(session, campaign_id)
        under_way = select(func.count(SlotRow.item_id.distinct())).join(ItemRow, ItemRow.id == SlotRow.item_id)
        under_way = under_way.where(
            SlotRow.campaign_id == campaign_id, SlotRow.state.in_((FREE, LEASED)), ItemRow.chosen != GOLD
        )
        return CampaignProgress(
            submitted=counts.get(SUBMITTED, 0),
            slots=sum(count for state, count in counts.items() if state != SKIPPED),
            mine=0 if user_id is None else _count_mine(session, campaign_id, user_id),
            items_done=campaign.items - (session.scalar(under_way) or 0),
            items=campaign.items,
        )


def annotator_progress(store: Store, campaign_id: int) -> list[AnnotatorProgress]:
    """Return the progress of everybody who was ever given a trace of a campaign, sorted by name."""
    states = [func.sum(case((SlotRow.state == state, 1), else_=0)) for state in (SUBMITTED, LEASED, SKIPPED)]
    rows = (
        select(UserRow.id, UserRow.name, *states)
        .join(SlotRow, SlotRow.user_id == UserRow.id)
        .where(SlotRow.campaign_id == campaign_id)
        .group_by(UserRow.id, UserRow.name)
        .order_by(UserRow.name)
    )
    with store.read() as session:
        campaign = load_campaign(session, campaign_id)
        return [
            AnnotatorProgress(name, submitted, leased, skipped, read_qualification(session, campaign, user_id))
            for user_id, name, submitted, leased, skipped in session.execute(rows).all()
        ]


def _counts(session: Session, campaign_id: int) -> dict[str, int]:
    """Return the number of slots of the queue in each state."""
    counts = (
        select(SlotRow.state, func.count())
        .join(ItemRow, ItemRow.id == SlotRow.item_id)
        .where(SlotRow.campaign_id == campaign_id, ItemRow.chosen != GOLD)
        .group_by(SlotRow.state)
    )
    return dict(session.execute(counts).all())


def _count_mine(session: Session, campaign_id: int, user_id: int) -> int:
    mine = (SlotRow.campaign_id == campaign_id, SlotRow.user_id == user_id, SlotRow.state == SUBMITTED)
    others = SlotRow.id.not_in(qualification_slots(campaign_id))
    return session.scalar(select(func.count()).where(*mine, others)) or 0
