"""The request being answered: its id, and the person behind it."""

import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass, field

HEADER = "x-request-id"

_WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass
class Current:
    """The request's `id`, which is in its response and in every log line until then, and the id of the `person`
    behind it, None if nobody is logged in or was looked up."""

    id: str = field(default_factory=lambda: secrets.token_hex(8))
    person: int | None = None


CURRENT: ContextVar[Current | None] = ContextVar("current", default=None)
"""The current request, None outside of any. Threads started for a request need a copy of its context."""


def begin(header: str) -> Current:
    """Begin a request with this id, "" for none; a well-formed id is kept, since a proxy logs it."""
    current = Current(header) if _WELL_FORMED.fullmatch(header) else Current()
    CURRENT.set(current)
    return current


def request_id() -> str:
    """The id of the request, "" outside of any."""
    current = CURRENT.get()
    return "" if current is None else current.id


def note_person(person: int | None) -> None:
    """Record the person asking."""
    current = CURRENT.get()
    if current is not None:
        current.person = person
