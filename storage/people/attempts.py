"""Attempts to log in: those that failed lately, counted by name and by network address."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.storage.database.people_schema import FailedLoginRow
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import Store

MOST_BY_NAME = 5
MOST_BY_ADDRESS = 20
WINDOW = timedelta(minutes=15)
"""The time in which so many attempts may fail."""

# What somebody who gets an IPv6 address at all has to choose from.
_NETWORK = 64


class LimitError(UserError):
    """Too many attempts failed; after `seconds` there may be another."""

    def __init__(self, seconds: int) -> None:
        super().__init__("Too many logins failed.", f"Try again in {ceil(seconds / 60)} min.")
        self.seconds = seconds


@dataclass(frozen=True)
class Attempt:
    """An attempt that counts as failed until `forgive`."""

    name: str
    by_name: int
    by_address: int


def begin_attempt(store: Store, name: str, address: str) -> Attempt:
    """Let somebody try. Raises `LimitError` where too many attempts at that name, or from that address, failed.

    It counts from here on: of many attempts at the same time no more get through than one after the other.
    """
    rows = [FailedLoginRow(key=_name_key(name)), FailedLoginRow(key=_address_key(address))]
    with store.write() as session:
        session.execute(delete(FailedLoginRow).where(FailedLoginRow.moment <= now() - WINDOW))
        session.add_all(rows)
        session.flush()
        attempt = Attempt(rows[0].key, rows[0].id, rows[1].id)
        keys = [(row.key, most) for row, most in zip(rows, (MOST_BY_NAME, MOST_BY_ADDRESS), strict=True)]
    with store.read() as session:
        freed = [moment for key, most in keys if (moment := _full_until(session, key, most)) is not None]
    if freed:
        # Who is refused has not tried, and need not wait the longer for it.
        _forget(store, attempt)
        raise LimitError(max(1, ceil((max(freed) - now()).total_seconds())))
    return attempt


def forgive(session: Session, attempt: Attempt) -> None:
    """The attempt went well: the name has no failures any more, the address those of its other attempts."""
    rows = (FailedLoginRow.key == attempt.name) | (FailedLoginRow.id == attempt.by_address)
    session.execute(delete(FailedLoginRow).where(rows))


def _full_until(session: Session, key: str, most: int) -> datetime | None:
    """Until when there may be no further attempt, None where there may be the one that just began."""
    rows = select(FailedLoginRow.moment).where(FailedLoginRow.key == key, FailedLoginRow.moment > now() - WINDOW)
    newest = list(session.scalars(rows.order_by(FailedLoginRow.moment.desc()).limit(most + 1)))
    return newest[-1] + WINDOW if len(newest) > most else None


def _forget(store: Store, attempt: Attempt) -> None:
    with store.write() as session:
        session.execute(delete(FailedLoginRow).where(FailedLoginRow.id.in_([attempt.by_name, attempt.by_address])))


def _name_key(name: str) -> str:
    # Some type their password where the name belongs, and nobody is to read it here.
    return f"name {hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _address_key(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:
        return "address unknown"
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is None:
            return f"address {ip_network((parsed, _NETWORK), strict=False)}"
        parsed = parsed.ipv4_mapped
    return f"address {parsed}"
