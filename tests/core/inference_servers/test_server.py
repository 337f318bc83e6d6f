"""Requests to real servers over a socket, on good days and bad ones."""

import gzip
import json
import random
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler

import pytest

from stepsight.core.errors import UserError
from stepsight.core.inference_servers import server as module
from stepsight.core.inference_servers.server import Server, ServerError, together
from tests.local_server import LocalServer
from tests.messages import refused

# Seconds after which nothing is waited for any more.
_LIMIT = 60
KEY = "sk-not-to-be-seen-1234567890"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.001)
    monkeypatch.delenv(module.KEY, raising=False)


@contextmanager
def serving(answer):
    """A server whose every request `answer(number, body, handler)` answers, with status, headers and content; the
    numbers count from 1. Yields its address and what was asked."""
    asked, lock = [], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.do_POST()

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "null")
            with lock:
                asked.append((self.path, body, dict(self.headers)))
                number = len(asked)
            found = answer(number, body, self)
            if found is None:
                self.close_connection = True
                return
            status, headers, content = found
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            given = {"content-type": "application/json", "content-length": str(len(content)), **headers}
            for name, value in given.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    with LocalServer(Handler).running() as server:
        yield f"{server.url}/v1", asked


def echo(number, body, handler):
    return 200, {}, {"echo": body}


def test_answers_come_in_the_order_of_the_items():
    def late(number, body, handler):
        time.sleep(random.random() / 50)
        return echo(number, body, handler)

    with serving(late) as (url, _), Server(url, at_once=8) as server:

        async def ask(number):
            return (await server.post("echo", number))["echo"]

        assert list(server.ordered(range(100), ask)) == [(number, number) for number in range(100)]


def test_routes_below_the_address_and_of_the_server_itself():
    with serving(echo) as (url, asked), Server(url) as server:
        server.now(server.get("models"))
        server.now(server.post("/pooling", {}))
    assert [path for path, *_ in asked] == ["/v1/models", "/pooling"]


def test_no_more_than_a_window_is_drawn_and_no_more_than_a_few_asked_at_once():
    drawn, running, most, lock = [], 0, 0, threading.Lock()

    def busy(number, body, handler):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1
        return echo(number, body, handler)

    def items():
        for number in range(1000):
            drawn.append(number)
            yield number

    with serving(busy) as (url, _), Server(url, at_once=4) as server:
        answers = server.ordered(items(), lambda number: server.post("echo", number))
        for _ in range(5):
            next(answers)
        # As many as were taken, and the window beside them.
        assert len(drawn) <= 5 + 4 * 4
        answers.close()
    assert 1 < most <= 4


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408])
def test_a_failure_is_repeated(status):
    def fails(number, body, handler):
        return (status, {}, {}) if number % 3 == 0 else echo(number, body, handler)

    with serving(fails) as (url, asked), Server(url) as server:
        answers = [answer["echo"] for _, answer in server.ordered(range(50), lambda one: server.post("echo", one))]
    assert answers == list(range(50))
    assert len(asked) > 50


def test_a_refusal_is_waited_for_as_long_as_the_server_says():
    times = []

    def refuses(number, body, handler):
        times.append(time.monotonic())
        return (429, {"retry-after": "0.2"}, {}) if number == 1 else echo(number, body, handler)

    with serving(refuses) as (url, _), Server(url) as server:
        assert server.now(server.post("echo", 1)) == {"echo": 1}
    assert times[1] - times[0] >= 0.2


def test_a_server_that_is_busy_for_too_long(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    with (
        serving(lambda *_: (429, {}, {"error": {"message": "slow down"}})) as (url, _),
        Server(url) as server,
        refused(ServerError) as caught,
    ):
        server.now(server.post("echo", 1))
    assert (caught.value.status, caught.value.hint) == (429, "Start again later, to go on.")


def test_a_lasting_failure_is_reported_in_the_servers_words():
    with (
        serving(lambda *_: (500, {}, {"error": {"message": "out of\n memory" + "x" * 900}})) as (url, asked),
        Server(url) as server,
        refused(ServerError) as caught,
    ):
        server.now(server.post("echo", 1))
    assert len(asked) == 12
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (400, {"error": {"message": "bad token"}}),
        (400, {"detail": "nothing"}),
        (404, {"detail": "Not Found"}),
        (401, {"message": "who"}),
        (404, b"<html>"),
        (400, b"\xff\xfe"),
        (400, b""),
    ],
)
def test_a_mistake_is_not_repeated(status, content):
    with (
        serving(lambda *_: (status, {}, content)) as (url, asked),
        Server(url) as server,
        refused(ServerError) as caught,
    ):
        server.now(server.post("echo", 1))
    assert len(asked) == 1
    assert caught.value.status == status


def test_another_protocol():
    page = {"content-type": "text/html"}, b"<!doctype html><title>Hello</title>"
    with serving(lambda *_: (200, *page)) as (url, asked), Server(url) as server, refused(ServerError):
        server.now(server.get("models"))
    assert len(asked) == 1


@pytest.mark.parametrize(
    "content",
    [b'{"half": [1, 2', b"[" * 5000 + b"]" * 5000, b'{"a": "\xff"}', b'{"a": "\\ud800"}'],
    ids=["half", "deep", "encoding", "surrogate"],
)
def test_an_answer_that_is_not_json_is_refused(content):
    with (
        serving(lambda *_: (200, {}, content)) as (url, _),
        Server(url, attempts=2) as server,
        refused(ServerError),
    ):
        server.now(server.post("echo", 1))


@pytest.mark.parametrize("compressed", [False, True])
def test_an_answer_is_bounded_as_it_is_when_decompressed(monkeypatch, compressed):
    monkeypatch.setattr(module, "LARGEST", 100_000)
    content, headers = b'"' + b"x" * 10_000_000 + b'"', {}
    if compressed:
        content, headers = gzip.compress(content), {"content-encoding": "gzip"}
    with serving(lambda *_: (200, headers, content)) as (url, _), Server(url) as server, refused(ServerError):
        server.now(server.post("echo", 1))


def test_a_server_that_breaks_off():
    def breaks(number, body, handler):
        return None if number % 2 else echo(number, body, handler)

    with serving(breaks) as (url, _), Server(url, at_once=1) as server:
        assert server.now(server.post("echo", 1)) == {"echo": 1}
    with serving(lambda *_: None) as (url, asked), Server(url) as server, refused(ServerError):
        server.now(server.post("echo", 1))
    assert len(asked) == 6


def test_a_server_that_says_nothing():
    def silent(number, body, handler):
        handler.connection.settimeout(_LIMIT)
        # Until who asked has gone.
        handler.connection.recv(1)

    with serving(silent) as (url, asked), Server(url, seconds=1) as server, refused(ServerError):
        server.now(server.post("echo", 1))
    assert len(asked) == 2


def test_an_answer_that_drips_comes_to_an_end():
    def drips(number, body, handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
        # Until whoever asked has gone.
        with suppress(OSError):
            while True:
                handler.wfile.write(b" ")
                handler.wfile.flush()
                time.sleep(0.01)

    with serving(drips) as (url, asked), Server(url, seconds=1) as server, refused(ServerError):
        server.now(server.post("echo", 1))
    assert len(asked) == 2


def test_answers_before_an_error_are_given_first():
    def refuses(number, body, handler):
        return (400, {}, {}) if body == 7 else echo(number, body, handler)

    with serving(refuses) as (url, _), Server(url) as server:
        answers = server.ordered(range(20), lambda number: server.post("echo", number))
        assert [item for item, _ in (next(answers) for _ in range(7))] == list(range(7))
        with refused(ServerError):
            next(answers)


def test_answers_before_a_mistake_in_the_items_are_given_first():
    def items():
        yield from range(5)
        raise UserError("line 6 is none.")

    got = []
    with serving(echo) as (url, _), Server(url) as server:
        answers = server.ordered(items(), lambda number: server.post("echo", number))
        got += [next(answers)[0] for _ in range(5)]
        with refused():
            next(answers)
    assert got == list(range(5))


def test_an_ending_check_does_not_wait_for_the_server():
    gone = threading.Event()

    def silent(number, body, handler):
        # The connection ends when the request is cancelled.
        handler.connection.settimeout(_LIMIT)
        if handler.connection.recv(1) == b"":
            gone.set()

    class EnoughError(Exception):
        pass

    def check():
        raise EnoughError

    with serving(silent) as (url, _), Server(url) as server:
        with pytest.raises(EnoughError):
            list(server.ordered([1], lambda number: server.post("echo", number), _after(0.2, check)))
        assert gone.wait(_LIMIT)


def _after(seconds, check):
    start = time.monotonic()
    return lambda: check() if time.monotonic() - start > seconds else None


def test_leaving_cancels_requests_in_flight():
    gone = threading.Semaphore(0)

    def silent(number, body, handler):
        if body == 0:
            return echo(number, body, handler)
        handler.connection.settimeout(_LIMIT)
        if handler.connection.recv(1) == b"":
            gone.release()
        return None

    with serving(silent) as (url, _), Server(url, at_once=3) as server:
        answers = server.ordered(range(50), lambda number: server.post("echo", number))
        next(answers)
        answers.close()
        assert gone.acquire(timeout=_LIMIT)


def test_a_failing_request_ends_the_others_of_its_item():
    gone = threading.Event()

    def one_fails(number, body, handler):
        if body == "bad":
            return 400, {}, {}
        handler.connection.settimeout(_LIMIT)
        if handler.connection.recv(1) == b"":
            gone.set()
        return None

    async def ask(item):
        return await together(server.post("echo", part) for part in ("slow", item))

    with serving(one_fails) as (url, _), Server(url) as server:
        with refused(ServerError):
            list(server.ordered(["bad"], ask))
        assert gone.wait(_LIMIT)


def test_a_key_goes_to_the_server_and_nowhere_else(monkeypatch, caplog):
    monkeypatch.setenv(module.KEY, KEY)
    caplog.set_level(0)

    def refuses(number, body, handler):
        return 403, {}, {"error": {"message": f"no {handler.headers['authorization']}"}}

    with serving(refuses) as (url, asked), Server(url) as server, refused(ServerError) as caught:
        server.now(server.post("echo", 1))
    assert asked[0][2]["authorization"] == f"Bearer {KEY}"
    assert KEY not in f"{caught.value}{caplog.text}{server!r}"


def test_a_redirection_is_not_followed(monkeypatch):
    monkeypatch.setenv(module.KEY, KEY)
    with (
        serving(echo) as (elsewhere, asked),
        serving(lambda *_: (307, {"location": f"{elsewhere}/echo"}, {})) as (url, _),
        Server(url) as server,
        refused(ServerError),
    ):
        server.now(server.post("echo", 1))
    assert asked == []


@pytest.mark.parametrize("key", ["a\nb", "schlüssel"])
def test_a_key_that_cannot_be_one(monkeypatch, key):
    monkeypatch.setenv(module.KEY, key)
    with refused() as caught:
        Server("http://localhost:1/v1")
    assert key not in str(caught.value)


def test_several_threads_share_a_server():
    with serving(echo) as (url, _), Server(url) as server:
        results = {}

        def work(start):
            numbers = range(start, start + 30)
            results[start] = [
                answer["echo"] for _, answer in server.ordered(numbers, lambda one: server.post("echo", one))
            ]

        threads = [threading.Thread(target=work, args=(start,)) for start in (0, 100, 200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {start: list(range(start, start + 30)) for start in (0, 100, 200)}
