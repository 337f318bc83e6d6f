"""The request that is being answered: its number, and who asks."""

import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass, field

HEADER = "x-request-id"

_WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass
class Current:
    """`id` goes into the answer and into every line of the log that is written meanwhile; `person` is the number of
    who asks, None where that is nobody in particular, or not looked up."""

    id: str = field(default_factory=lambda: secrets.token_hex(8))
    person: int | None = None


CURRENT: ContextVar[Current | None] = ContextVar("current", default=None)
"""None outside of any request. Threads that are started for a request need a copy of its context."""


def begin(header: str) -> Current:
    """The request that comes with this id, "" for none; one that is well-formed is kept, since a proxy logs it."""
    current = Current(header) if _WELL_FORMED.fullmatch(header) else Current()
    CURRENT.set(current)
    return current


def request_id() -> str:
    """The id of the request, "" outside of any."""
    current = CURRENT.get()
    return "" if current is None else current.id


def note_person(person: int | None) -> None:
    """Note who asks."""
    current = CURRENT.get()
    if current is not None:
        current.person = person
