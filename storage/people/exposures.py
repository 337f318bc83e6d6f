"""Exposures: what people have seen of traces whose labels they may still give or change, and what they may see.

In a blind campaign the scores of evaluators, marks on equations that fail, the gold and the labels of others are
hidden from annotators until they have submitted a trace. Whoever sees any of it elsewhere is exposed, which is
noted for good.
"""

from collections.abc import Collection

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from stepsight.storage.database.labelling_schema import CampaignRow, ExposureRow, ItemRow, SlotRow
from stepsight.storage.database.schema import in_range, now
from stepsight.storage.database.store import Store
from stepsight.storage.database.upsert import insert_once

SCORES, GOLD, LABELS, EQUATIONS = WHAT = ("scores", "gold", "labels", "equations")
"""What can be seen: of evaluators, of the benchmark, of other people; and which equations fail, on a labelling page
that marks them. On other pages they stand beside scores."""

# PostgreSQL and SQLite both take some tens of thousands of values in a statement.
_MOST = 5_000


def note_exposure(store: Store, user_id: int, trace_ids: Collection[int], *what: str) -> None:
    """Note that a person is about to see `what` of these traces: for good, and before it is shown.

    Only traces of open campaigns are noted, also those that the person has submitted: an annotation can be taken
    back and changed. Where no campaign is open, this costs one short query.
    """
    if not trace_ids or not _is_any_open(store):
        return
    rows = [
        {"user_id": user_id, "trace_id": trace_id, "what": one, "moment": now()}
        for trace_id, one in sorted(_new(store, user_id, trace_ids, what))
    ]
    if rows:
        with store.write() as session:
            insert_once(session, ExposureRow, rows, "user_id", "trace_id", "what")


def exposures_of(session: Session, user_id: int, trace_id: int) -> frozenset[str]:
    """What a person has seen of a trace on other pages than the labelling page."""
    seen = select(ExposureRow.what).where(ExposureRow.user_id == user_id, ExposureRow.trace_id == trace_id)
    return frozenset(session.scalars(seen))


def is_blind(campaign: type[CampaignRow]) -> ColumnElement[bool]:
    """A condition on campaigns: that nothing is seen beside the text before submission."""
    return (campaign.shows == "nothing") & campaign.shows_equations.is_(False)


def is_something_hidden(store: Store) -> bool:
    """Whether an open campaign is blind: scores, gold and others' labels are to be kept from its annotators."""
    blind = select(CampaignRow.id).where(CampaignRow.closed.is_(None), is_blind(CampaignRow))
    with store.read() as session:
        return session.scalar(blind.limit(1)) is not None


def unblinded(trace_id: InstrumentedAttribute[int], user_id: int) -> ColumnElement[bool]:
    """A condition on a column of traces: that the person has submitted the trace, has it ahead in no open blind
    campaign, and no open campaign hides it after submission too. They may then see its gold and the labels of
    others."""
    # The column may be one of these tables itself.
    item, slot, campaign = aliased(ItemRow), aliased(SlotRow), aliased(CampaignRow)
    theirs = exists().where(slot.item_id == item.id, slot.user_id == user_id, slot.state == "submitted")
    submitted = exists().where(item.trace_id == trace_id, theirs)
    blind = exists().where(campaign.id == item.campaign_id, campaign.closed.is_(None), is_blind(campaign))
    kept = exists().where(
        campaign.id == item.campaign_id, campaign.closed.is_(None), campaign.after_submission == "nothing"
    )
    return submitted & ~exists().where(item.trace_id == trace_id, (blind & ~theirs) | kept)


def is_unblinded(store: Store, user_id: int, trace_id: int) -> bool:
    """Whether `unblinded` holds for a trace."""
    items = select(ItemRow.id).where(ItemRow.trace_id == trace_id, unblinded(ItemRow.trace_id, user_id))
    with store.read() as session:
        return session.scalar(items.limit(1)) is not None


def _is_any_open(store: Store) -> bool:
    with store.read() as session:
        return session.scalar(select(CampaignRow.id).where(CampaignRow.closed.is_(None)).limit(1)) is not None


def _new(store: Store, user_id: int, trace_ids: Collection[int], what: Collection[str]) -> set[tuple[int, str]]:
    """The traces of open campaigns, each with what of it was not seen before."""
    ids = sorted(trace_id for trace_id in set(trace_ids) if in_range(trace_id) == trace_id)
    in_open = select(ItemRow.trace_id).distinct().join(CampaignRow, CampaignRow.id == ItemRow.campaign_id)
    in_open = in_open.where(CampaignRow.closed.is_(None))
    seen = select(ExposureRow.trace_id, ExposureRow.what).where(ExposureRow.user_id == user_id)
    new: set[tuple[int, str]] = set()
    with store.read() as session:
        for start in range(0, len(ids), _MOST):
            part = ids[start : start + _MOST]
            due = session.scalars(in_open.where(ItemRow.trace_id.in_(part)))
            new |= {(trace_id, one) for trace_id in due for one in what}
            rows = session.execute(seen.where(ExposureRow.trace_id.in_(part)))
            new -= {(row.trace_id, row.what) for row in rows}
    return new
