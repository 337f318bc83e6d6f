"""HTTP as every part of StepSight speaks it: connections, what is worth repeating and when, and bounded bodies.

What a server answers is a stranger's: its size is counted as decompressed, and its texts are cut before they are
shown.
"""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import isfinite
from time import time
from typing import Any

import httpx2

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json

BROKEN = (httpx2.TransportError, httpx2.DecodingError)
"""Raised where a connection fails, or what comes over it is damaged."""

_CONNECTING = 10.0
# Statuses of a server that is busy, and of one in trouble: RFC 9110, 429 of RFC 6585, 529 as Anthropic's has it.
_BUSY, _TROUBLED = {429, 503, 529}, {408, 500, 502, 504}
# A server on this machine is asked directly, whatever proxy the environment names.
_DIRECT = {f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]")}
_LONGEST_RETRY_AFTER = 6000.0
_LONGEST_ERROR = 1 << 16


class FailedAttemptError(Exception):
    """A request that may succeed when it is repeated; `error` is raised if it is not.

    `after` are the seconds that the server asks to wait, None if it does not say. `costs` is how many of the
    attempts it counts for: none where the server is merely busy.
    """

    def __init__(self, error: Exception, after: float | None = None, *, costs: int = 1) -> None:
        super().__init__(str(error))
        self.error, self.after, self.costs = error, after, costs


@dataclass
class Retries:
    """How often a request is repeated without any progress, and how long to wait in between.

    It may fail `attempts` times. Pauses last from `first` to `longest` seconds, each twice as long as the one
    before, or as long as the server asks; a busy server is waited for at most `patience` seconds in all.
    """

    attempts: int
    first: float
    longest: float
    patience: float

    def __post_init__(self) -> None:
        self.progressed()

    def progressed(self) -> None:
        """Forget the failures so far."""
        self._failures, self._pauses, self._waited = 0, 0, 0.0

    def pause(self, failure: FailedAttemptError) -> float:
        """The seconds to wait before the next attempt. Raises the failure's error if there is to be none."""
        # At random, since clients that were turned away together should not come back together.
        if failure.after is None:
            seconds = min(self.longest, self.first * 2.0 ** min(self._pauses, 20)) * random.uniform(1, 1.25)
        else:
            seconds = failure.after + random.uniform(0, self.first)
        self._failures += failure.costs
        self._pauses += 1
        if not failure.costs:
            self._waited += seconds
        if self._failures >= self.attempts or self._waited > self.patience:
            raise failure.error from None
        return seconds


def bearer(key: str, hint: str) -> dict[str, str]:
    """The header that a key goes in, none if the key is empty. Raises `UserError`, which does not repeat it, if it
    cannot be a key."""
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise UserError("the API key contains invalid characters.", hint)
    return {"authorization": f"Bearer {key}"} if key else {}


def client_options(seconds: float) -> dict[str, Any]:
    """Arguments of a client whose servers may be silent for at most so many seconds. Proxies are those of the
    environment, except for this machine itself."""
    return {
        "timeout": httpx2.Timeout(seconds, connect=_CONNECTING, pool=None),
        "headers": {"user-agent": "stepsight", "accept-encoding": "identity"},
        "mounts": _DIRECT,
    }


def failed_attempt(response: httpx2.Response, error: Exception) -> Exception:
    """What to raise for an answer that is an error: `error`, as a `FailedAttemptError` if a repetition may help."""
    status = response.status_code
    if status in _BUSY:
        after = _retry_after(response.headers.get("retry-after"))
        return FailedAttemptError(error, after, costs=int(status != 429 and after is None))
    return FailedAttemptError(error) if status in _TROUBLED else error


def reason(error: Exception) -> str:
    """Why a connection failed, on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def error_text(body: bytes) -> str:
    """The message in an error's body, in one of the shapes that servers give them; else the body's beginning."""
    body = body[:_LONGEST_ERROR]
    with suppress(ValueError):
        if message := _message(parse_json(body)):
            return message
    return body.decode("utf-8", "replace")


def read_bounded(response: httpx2.Response, most: int) -> bytes | None:
    """The body of a response, None if it has more than `most` bytes. Raises one of `BROKEN`."""
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)


async def read_bounded_async(response: httpx2.Response, most: int) -> bytes | None:
    """As `read_bounded`, of a response to an asynchronous client."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)


def read_lines(response: httpx2.Response, longest: int) -> Iterator[bytes]:
    """The lines of a body as they come, without their ends. Raises one of `BROKEN`, also if a line has more than
    `longest` bytes or the last one does not end."""
    parts: list[bytes] = []
    size = 0
    for chunk in response.iter_bytes():
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join((*parts, end))
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > longest:
            raise httpx2.RemoteProtocolError(f"a line has more than {longest:,} bytes")
    if size:
        raise httpx2.RemoteProtocolError("the answer breaks off")


def _message(value: object) -> str:
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and key in value:
            return _message(value[key])
    return value if isinstance(value, str) else ""


def _retry_after(text: str | None) -> float | None:
    """The seconds that a Retry-After header names, as a number or a date; None if it cannot be read."""
    try:
        seconds = float(text or "")
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text or "").timestamp() - time()
        except (TypeError, ValueError, OverflowError):
            return None
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER) if isfinite(seconds) else None
