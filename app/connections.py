"""Connections of the server: how long a request may take to arrive, and how many connections there may be.

A client that sends half of a request and waits holds a connection, and each connection holds an open file. So every
part of a request has a deadline, and the number of connections has a bound. Connections that wait shut nobody out:
if there are too many, those that have been silent the longest are closed.
"""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.server import ServerState

from stepsight.app.web.failures import failure_json

try:
    import resource
except ImportError:
    # Windows has no such limits.
    resource = None  # type: ignore[assignment]

HEADER_SECONDS = 20.0
"""Seconds in which the header of a request has to arrive, from its first byte on. A new connection has as long to
begin its first request."""

BODY_SECONDS = 30.0
"""Seconds for which a body may stall."""

BODY_RATE = 100
"""The least number of bytes per second at which a body has to arrive, after its first `BODY_SECONDS`."""

PER_ADDRESS = 256
"""The largest number of connections of one address."""

MOST = 2_000
"""The largest number of connections of the whole server."""

# Files other than connections, those of connections that were accepted a moment ago included.
_OTHER_FILES = 400
_FEWEST = 64
# The share of too many connections that is closed at once; finding the oldest takes time.
_SHARE = 16
_SLOW = (408, "The request took too long to arrive.", "Send it again, faster.")
_FULL = (503, "The server has too many connections.", "Try again in a minute.")


def raise_file_limit() -> int | None:
    """Raise this process's limit of open files to the hard limit. Returns the limit, or None if there is none."""
    if resource is None:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        # macOS allows fewer than its hard limit.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return None if soft == resource.RLIM_INFINITY else soft


class Connections(ServerState):
    """The connections of a server that may have `files` files open, or any number if that is None.

    A connection from one of the `proxies`, addresses or networks, may be anybody's: it counts only towards the
    total. The addresses of an IPv6 network of 64 bits count as one, since one machine may have them all.
    """

    def __init__(self, files: int | None, proxies: Sequence[str] = ()) -> None:
        super().__init__()
        self.most = MOST if files is None else min(MOST, max(_FEWEST, files - _OTHER_FILES))
        self._proxies = [ip_network(proxy) for proxy in proxies]
        self._groups: dict[str, set[ClientConnection]] = {}

    def add(self, connection: "ClientConnection") -> None:
        """Add a connection. If there are too many, close those whose client has been silent longest, or the new one
        if all are at work."""
        connection.group = self._group_of(connection.client)
        group = self._groups.setdefault(connection.group, set())
        group.add(connection)
        if connection.group and len(group) > PER_ADDRESS:
            _make_room(group, connection)
        if sum(map(len, self._groups.values())) > self.most:
            _make_room(set().union(*self._groups.values()), connection)

    def remove(self, connection: "ClientConnection") -> None:
        """Remove a connection that is closed or about to be. Nothing happens if it was removed already."""
        group = self._groups.get(connection.group, set())
        group.discard(connection)
        if not group:
            self._groups.pop(connection.group, None)

    def close_late(self, now: float) -> None:
        """Close the connections on which a request does not arrive in time. `now` is a time of the event loop."""
        for connection in [one for group in self._groups.values() for one in group if one.is_late(now)]:
            connection.close(*_SLOW)

    def _group_of(self, client: tuple[str, int] | None) -> str:
        """Return the name of the group in which a connection is counted. It is "" for connections without a
        limit."""
        if client is None:
            return ""
        address = ip_address(client[0].partition("%")[0])
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if any(address in proxy for proxy in self._proxies):
            return ""
        return str(address if address.version == 4 else ip_network((address, 64), strict=False))


def _make_room(crowd: Collection["ClientConnection"], newest: "ClientConnection") -> None:
    waiting = [one for one in crowd if one is not newest and one.is_waiting]
    # Those first that have not sent a whole request yet.
    waiting.sort(key=lambda one: (one.requests > 0, one.heard))
    for one in waiting[: max(1, len(crowd) // _SHARE)] or [newest]:
        one.close(*_FULL)


class ClientConnection(H11Protocol):
    """A connection with deadlines. All times are those of the event loop.

    `heard` is when the client last sent something. `began` is when the current part of the request (header or body)
    began, and `received` counts its bytes. `requests` counts the answered requests.
    """

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.group = ""
        self.requests = 0
        self._all = server_state
        self._begin_part()

    def _begin_part(self) -> None:
        self.began = self.heard = self.loop.time()
        self.received = 0

    @property
    def is_waiting(self) -> bool:
        """True if the server is waiting for the client: for a request, for the rest of one, or for it to take the
        response."""
        return self._is_sending or self.conn.their_state is h11.IDLE or self.flow.write_paused

    @property
    def _is_sending(self) -> bool:
        return self.conn.their_state is h11.SEND_BODY and not self.flow.read_paused

    def is_late(self, now: float) -> bool:
        """True if a request or the rest of one has not arrived in time. Responses may take any time."""
        if self._is_sending:
            return now - self.heard > BODY_SECONDS or now - self.began > BODY_SECONDS + self.received / BODY_RATE
        if self.conn.their_state is h11.IDLE:
            # Uvicorn closes a connection that is idle between two requests.
            return (self.received > 0 or self.requests == 0) and now - self.began > HEADER_SECONDS
        # Until the application reads on, the time is not the client's.
        self.began = self.heard = now
        return False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.received == 0:
            self._begin_part()
        self.heard = self.loop.time()
        self.received += len(data)
        state = self.conn.their_state
        super().data_received(data)
        if self.conn.their_state is not state:
            self._begin_part()

    def on_response_complete(self) -> None:
        self.requests += 1
        self._begin_part()
        super().on_response_complete()

    def close(self, status: int, message: str, hint: str) -> None:
        """Close the connection. The reason is sent as a response, unless another response has begun or the client
        is between two requests."""
        self._all.remove(self)
        is_asked = self.cycle is not None and not self.cycle.response_complete
        if is_asked:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not self.cycle.response_started if is_asked else self._is_asking:
            self.transport.write(_response(status, message, hint))
        if self.transport.get_write_buffer_size():
            # A client that does not read would keep it open.
            self.transport.abort()
        else:
            self.transport.close()

    @property
    def _is_asking(self) -> bool:
        """True if the first request has not arrived, or a later one has arrived only in part."""
        return self.conn.their_state is h11.IDLE and (self.requests == 0 or self.received > 0)


@cache
def _response(status: int, message: str, hint: str) -> bytes:
    body = bytes(failure_json(status, message, hint).body)
    head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    return head % (status, STATUS_PHRASES[status], len(body)) + body
