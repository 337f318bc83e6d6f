"""Reading the log of what people did."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from storage.labelling.tables import EventRow

_SAME = ("id", "item_id", "slot_id", "user_id", "kind", "step", "old", "new", "cause", "of", "key", "moment",
         "seconds", "guideline", "view", "revealed", "visible")  # fmt: skip


@dataclass(frozen=True)
class Event:
    """A row of the log; see `storage.labelling.tables.EventRow`."""

    id: int
    item_id: int
    slot_id: int | None
    user_id: int
    kind: str
    step: int | None
    old: Any
    new: Any
    cause: str
    of: int | None
    key: str
    moment: datetime
    seconds: float | None
    guideline: int
    view: str
    revealed: int | None
    visible: Mapping[str, bool]


def read_log(session: Session, item_id: int, user_id: int) -> list[Event]:
    """What a person did with a trace of a campaign, in order.

    Also under an earlier slot of it that somebody else took over: it was this person's work, and seen by them.
    """
    mine = _events().where(EventRow.item_id == item_id, EventRow.user_id == user_id)
    return [Event(**row) for row in session.execute(mine).mappings()]


def read_logs(session: Session, item_ids: Collection[int]) -> Mapping[tuple[int, int], Sequence[Event]]:
    """`read_log` of everybody who did something with these traces, by item and person."""
    found: defaultdict[tuple[int, int], list[Event]] = defaultdict(list)
    for row in session.execute(_events().where(EventRow.item_id.in_(item_ids))).mappings():
        found[row["item_id"], row["user_id"]].append(Event(**row))
    return found


def find_event(session: Session, user_id: int, key: str) -> Event | None:
    """The event that a person's client sent under that key, also a decision."""
    columns = [getattr(EventRow, name) for name in _SAME]
    wanted = select(*columns).where(EventRow.user_id == user_id, EventRow.key == key)
    row = session.execute(wanted).mappings().one_or_none()
    return None if row is None else Event(**row)


def _events() -> Select[Any]:
    # What is done outside a slot is about the answers of others.
    columns = [getattr(EventRow, name) for name in _SAME]
    return select(*columns).where(EventRow.slot_id.is_not(None)).order_by(EventRow.id)
