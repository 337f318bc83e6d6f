"""Connections: deadlines of requests, and bounds on the number of connections, over real sockets."""

import asyncio

import h11
import pytest
import uvicorn

from stepsight.app import connections
from stepsight.app.connections import BODY_RATE, BODY_SECONDS, HEADER_SECONDS, ClientConnection, Connections
from stepsight.app.web.request_guard import Gate
from stepsight.app.web.requests import Failures

FILES = 10_000
HEAD = b"POST / HTTP/1.1\r\nHost: here\r\n"
BODY = HEAD + b"Content-Length: 100000\r\n\r\n"
WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def answer(scope, receive, send):
    """Answers once the body is there."""
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.request":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})


class Server:
    """A server in the loop, and its clients."""

    def __init__(self, **options):
        self.connections = Connections(**{"files": FILES, **options})
        self.accepted = []
        self._writers = []

    async def __aenter__(self):
        config = uvicorn.Config(answer, log_config=None)
        loop = asyncio.get_running_loop()

        def accept():
            self.accepted.append(ClientConnection(config, self.connections, {}))
            return self.accepted[-1]

        self._server = await loop.create_server(accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_):
        for writer in self._writers:
            writer.close()
        self._server.close()

    async def send(self, data):
        """The reader of a new connection and the server's side of it, once that has all of the data."""
        reader, writer = await asyncio.open_connection(*self._server.sockets[0].getsockname())
        self._writers.append(writer)
        writer.write(data)
        while len(self.accepted) < len(self._writers) or not self.accepted[-1].transport:
            await asyncio.sleep(0)
        connection = self.accepted[-1]
        if data.endswith(b"\r\n\r\n") and b"Content-Length" not in data:
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        while (
            data
            and connection.requests == 0
            and connection.conn.their_state is h11.IDLE
            and not connection.received
        ):
            await asyncio.sleep(0)
        return reader, connection


def serving(act, **options):
    async def run():
        async with Server(**options) as server:
            await act(server)

    asyncio.run(run())


@pytest.mark.parametrize("sent", [HEAD, BODY, BODY + b"{"])
def test_a_request_that_does_not_arrive_is_refused_and_closed(sent):
    async def act(server):
        reader, connection = await server.send(sent)
        latest = connection.heard + max(HEADER_SECONDS, BODY_SECONDS)
        server.connections.close_late(connection.began + HEADER_SECONDS - 1)
        assert not connection.transport.is_closing()
        server.connections.close_late(latest + 1)
        assert (await reader.read()).startswith(b"HTTP/1.1 408 Request Timeout\r\n")

    serving(act)


def test_a_header_that_drips_does_not_gain_time():
    async def act(server):
        _, connection = await server.send(HEAD)
        connection.data_received(b"X: 1\r\n")
        connection.heard += HEADER_SECONDS
        assert connection.is_late(connection.began + HEADER_SECONDS + 1)

    serving(act)


def test_a_slow_body_goes_on_as_long_as_it_arrives_at_the_least_rate():
    async def act(server):
        _, connection = await server.send(BODY)
        connection.data_received(b" " * 50_000)
        # So much may take 500 s longer.
        connection.heard = connection.began + 50_000 / BODY_RATE
        assert not connection.is_late(connection.heard + BODY_SECONDS - 1)
        assert connection.is_late(connection.heard + BODY_SECONDS + 1)
        connection.heard += 100
        assert connection.is_late(connection.heard)

    serving(act)


def test_a_connection_between_requests_or_at_work_is_not_late():
    async def act(server):
        _, idle = await server.send(WHOLE)
        _, work = await server.send(BODY)
        work.data_received(b" " * 100_000)
        assert not idle.is_late(idle.heard + 1000)
        assert not work.is_late(work.heard + 1000)

    serving(act)


def test_of_too_many_connections_of_an_address_those_that_waited_longest_are_closed(monkeypatch):
    monkeypatch.setattr(connections, "PER_ADDRESS", 3)

    async def act(server):
        _, served = await server.send(WHOLE)
        reader, half = await server.send(HEAD)
        _, other = await server.send(HEAD)
        _, newest = await server.send(WHOLE)
        assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
        assert [one.transport.is_closing() for one in (served, half, other, newest)] == [False, True, False, False]

    serving(act)


def test_where_all_connections_are_at_work_the_new_one_is_refused(monkeypatch):
    monkeypatch.setattr(connections, "PER_ADDRESS", 1)
    monkeypatch.setattr(ClientConnection, "is_waiting", False)

    async def act(server):
        _, first = await server.send(b"")
        reader, _ = await server.send(b"")
        assert b"too many connections" in await reader.read()
        assert not first.transport.is_closing()

    serving(act)


@pytest.mark.parametrize(("options", "most"), [({}, 3), ({"proxies": ["127.0.0.0/8"]}, 5)])
def test_connections_of_a_proxy_count_towards_the_total_alone(monkeypatch, options, most):
    monkeypatch.setattr(connections, "PER_ADDRESS", 3)
    monkeypatch.setattr(connections, "MOST", 5)

    async def act(server):
        opened = [(await server.send(HEAD))[1] for _ in range(8)]
        assert sum(not one.transport.is_closing() for one in opened) == most

    serving(act, **options)


def test_a_body_that_breaks_off_is_neither_taken_for_the_whole_nor_an_error(caplog):
    async def receive():
        return messages.pop(0)

    async def application(scope, receive, send):
        pytest.fail("it was called")

    messages = [{"type": "http.request", "body": b"{}", "more_body": True}, {"type": "http.disconnect"}]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    asyncio.run(Failures(Gate(application))(scope, receive, None))
    assert not messages
    assert not caplog.records
