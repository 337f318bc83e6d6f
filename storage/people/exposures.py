"""What people have seen of traces whose labels they may still give or change: scores, gold, labels of others."""

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.storage.database.labelling_schema import CampaignRow, ExposureRow, ItemRow
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import Store
from stepsight.storage.database.upsert import insert_once
from stepsight.storage.traces.queries import in_range

SCORES, GOLD, LABELS = WHAT = ("scores", "gold", "labels")
"""What can be seen: of evaluators, of the benchmark, of other people."""

# PostgreSQL and SQLite both take some tens of thousands of values in a statement.
_MOST = 5_000


def note_exposure(store: Store, user_id: int, trace_ids: Collection[int], *what: str) -> None:
    """Note that a person is about to see `what` of these traces: for good, and before it is shown.

    Only traces of open campaigns are noted, also those that the person has submitted: an answer can be taken back
    and changed. Where no campaign is open, this costs one short query.
    """
    if not trace_ids or not _open_campaign(store):
        return
    rows = [
        {"user_id": user_id, "trace_id": trace_id, "what": one, "moment": now()}
        for trace_id, one in sorted(_new(store, user_id, trace_ids, what))
    ]
    if rows:
        with store.write() as session:
            insert_once(session, ExposureRow, rows, "user_id", "trace_id", "what")


def is_something_hidden(store: Store) -> bool:
    """Whether an open campaign is blind: scores, gold and others' labels are to be kept from its annotators."""
    blind = select(CampaignRow.id).where(CampaignRow.closed.is_(None), CampaignRow.shows == "nothing")
    with store.read() as session:
        return session.scalar(blind.limit(1)) is not None


def exposures_of(session: Session, user_id: int, trace_id: int) -> frozenset[str]:
    """What a person has seen of a trace on other pages than the labelling page."""
    seen = select(ExposureRow.what).where(ExposureRow.user_id == user_id, ExposureRow.trace_id == trace_id)
    return frozenset(session.scalars(seen))


def _open_campaign(store: Store) -> bool:
    with store.read() as session:
        return session.scalar(select(CampaignRow.id).where(CampaignRow.closed.is_(None)).limit(1)) is not None


def _new(store: Store, user_id: int, trace_ids: Collection[int], what: Collection[str]) -> set[tuple[int, str]]:
    """The traces of open campaigns, each with what of it was not seen before."""
    ids = sorted(trace_id for trace_id in set(trace_ids) if in_range(trace_id) == trace_id)
    found: set[tuple[int, str]] = set()
    open_ones = select(ItemRow.trace_id).distinct().join(CampaignRow, CampaignRow.id == ItemRow.campaign_id)
    open_ones = open_ones.where(CampaignRow.closed.is_(None))
    seen = select(ExposureRow.trace_id, ExposureRow.what).where(ExposureRow.user_id == user_id)
    with store.read() as session:
        for start in range(0, len(ids), _MOST):
            part = ids[start : start + _MOST]
            due = session.scalars(open_ones.where(ItemRow.trace_id.in_(part)))
            found |= {(trace_id, one) for trace_id in due for one in what}
            known = session.execute(seen.where(ExposureRow.trace_id.in_(part)))
            found -= {(row.trace_id, row.what) for row in known}
    return found
