"""Sight: of which traces a person who labels may see the gold and what others said, while a campaign is blind."""

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import InstrumentedAttribute, aliased

from storage.labelling.campaigns import Shows
from storage.labelling.tables import CampaignRow, ItemRow, SlotRow
from storage.store import Store


def seen_through(trace_id: InstrumentedAttribute[int], user_id: int) -> ColumnElement[bool]:
    """A condition on a column of traces: that the person has submitted the trace, and has it ahead in no open blind
    campaign."""
    # The column may be one of these tables itself.
    item, slot, campaign = aliased(ItemRow), aliased(SlotRow), aliased(CampaignRow)
    theirs = exists().where(slot.item_id == item.id, slot.user_id == user_id, slot.state == "submitted")
    submitted = exists().where(item.trace_id == trace_id, theirs)
    blind = exists().where(
        campaign.id == item.campaign_id, campaign.closed.is_(None), campaign.shows == Shows.NOTHING.value
    )
    return submitted & ~exists().where(item.trace_id == trace_id, blind, ~theirs)


def has_seen_through(store: Store, user_id: int, trace_id: int) -> bool:
    """Whether `seen_through` holds for a trace."""
    with store.read() as session:
        found = select(ItemRow.id).where(ItemRow.trace_id == trace_id, seen_through(ItemRow.trace_id, user_id))
        return session.scalar(found.limit(1)) is not None
