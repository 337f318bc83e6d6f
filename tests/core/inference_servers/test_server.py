"""Requests to real servers over a socket, on good days and bad ones."""

import gzip
import random
import threading
import time
from contextlib import closing, contextmanager, suppress

import pytest

from stepsight.core.errors import UserError
from stepsight.core.inference_servers import server as module
from stepsight.core.inference_servers.server import Server, ServerError, gather
from tests.cases import each
from tests.local_server import Reply, ScriptedServer
from tests.messages import refused

# Seconds after which nothing is waited for any more.
_LIMIT = 60
KEY = "sk-not-to-be-seen-1234567890"


def ordered(server, items, ask):
    return (answered for answered in server.stream(items, ask) if answered is not None)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.001)
    monkeypatch.delenv(module.KEY, raising=False)


@contextmanager
def serving(answer):
    """A server that gives the `Reply` of `answer(request)`. Yields its address and what was asked."""
    with ScriptedServer(answer).running() as server:
        yield f"{server.url}/v1", server.asked


def echo(request):
    return Reply(200, {"echo": request.body})


def refusal(answer, **options):
    """The error with which a request ends, and what was asked until then."""
    with serving(answer) as (url, asked), closing(Server(url, **options)) as server, refused(ServerError) as caught:
        server.run(server.post("echo", 1))
    return caught.value, asked


def until_gone(request):
    """Wait until whoever asked has closed the connection; True if that was in time."""
    request.handler.connection.settimeout(_LIMIT)
    return request.handler.connection.recv(1) == b""


def test_answers_come_in_the_order_of_the_items():
    def late(request):
        time.sleep(random.random() / 50)
        return echo(request)

    with serving(late) as (url, _), closing(Server(url, at_once=8)) as server:

        async def ask(number):
            return (await server.post("echo", number))["echo"]

        assert list(ordered(server, range(100), ask)) == [(number, number) for number in range(100)]


def test_routes_below_the_address_and_of_the_server_itself():
    with serving(echo) as (url, asked), closing(Server(url)) as server:
        server.run(server.get("models"))
        server.run(server.post("/pooling", {}))
    assert [request.path for request in asked] == ["/v1/models", "/pooling"]


def test_no_more_than_a_window_is_drawn_and_no_more_than_a_few_asked_at_once():
    drawn, running, most, lock = [], 0, 0, threading.Lock()

    def busy(request):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1
        return echo(request)

    def items():
        for number in range(1000):
            drawn.append(number)
            yield number

    with serving(busy) as (url, _), closing(Server(url, at_once=4)) as server:
        answers = ordered(server, items(), lambda number: server.post("echo", number))
        for _ in range(5):
            next(answers)
        # As many as were taken, and the window beside them.
        assert len(drawn) <= 5 + 4 * 4
        answers.close()
    assert 1 < most <= 4


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408])
def test_a_failure_is_repeated(status):
    def fails(request):
        return Reply(status) if request.number % 3 == 0 else echo(request)

    with serving(fails) as (url, asked), closing(Server(url)) as server:
        answers = [answer["echo"] for _, answer in ordered(server, range(50), lambda one: server.post("echo", one))]
    assert answers == list(range(50))
    assert len(asked) > 50


def test_a_refusal_is_waited_for_as_long_as_the_server_says():
    times = []

    def refuses(request):
        times.append(time.monotonic())
        return Reply(429, headers={"retry-after": "0.2"}) if request.number == 1 else echo(request)

    with serving(refuses) as (url, _), closing(Server(url)) as server:
        assert server.run(server.post("echo", 1)) == {"echo": 1}
    assert times[1] - times[0] >= 0.2


def test_a_server_that_is_busy_for_too_long(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    error, _ = refusal(lambda request: Reply(429, {"error": {"message": "slow down"}}))
    assert (error.status, error.hint) == (429, "Start again later to continue.")


def test_a_lasting_failure_is_reported_in_the_servers_words():
    error, asked = refusal(lambda request: Reply(500, {"error": {"message": "out of\n memory" + "x" * 900}}))
    assert len(asked) == 12
    assert len(error.message) < 400


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
    error, asked = refusal(lambda request: Reply(status, content))
    assert (len(asked), error.status) == (1, status)


@pytest.mark.parametrize(
    "content",
    [b'{"half": [1, 2', b"[" * 5000 + b"]" * 5000, b'{"a": "\xff"}', b'{"a": "\\ud800"}'],
    ids=["half", "deep", "encoding", "surrogate"],
)
def test_an_answer_that_is_not_json_is_refused(content):
    refusal(lambda request: Reply(200, content), attempts=2)


def test_another_protocol():
    _, asked = refusal(lambda request: Reply(200, b"<!doctype html><title>Hello</title>", "text/html"))
    assert len(asked) == 1


@pytest.mark.parametrize("compressed", [False, True])
def test_an_answer_is_bounded_as_it_is_when_decompressed(monkeypatch, compressed):
    monkeypatch.setattr(module, "LARGEST", 100_000)
    content = b'"' + b"x" * 10_000_000 + b'"'
    packed = Reply(200, gzip.compress(content), headers={"content-encoding": "gzip"})
    refusal(lambda request: packed if compressed else Reply(200, content))


def test_a_server_that_breaks_off():
    def breaks(request):
        return None if request.number % 2 else echo(request)

    with serving(breaks) as (url, _), closing(Server(url, at_once=1)) as server:
        assert server.run(server.post("echo", 1)) == {"echo": 1}
    _, asked = refusal(lambda request: None)
    assert len(asked) == 6


def drip(request):
    """Go on sending until whoever asked has gone."""
    request.handler.wfile.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n"
    )
    with suppress(OSError):
        while True:
            request.handler.wfile.write(b" ")
            request.handler.wfile.flush()
            time.sleep(0.01)


@each("answer", {"silent": lambda request: until_gone(request) and None, "dripping": drip}.values())
def test_an_answer_that_does_not_come_to_an_end(answer):
    _, asked = refusal(answer, seconds=1)
    assert len(asked) == 2


def test_an_error_is_raised_after_the_answers_that_have_come():
    answered = threading.Semaphore(0)

    def fails_last(request):
        if request.body != 3:
            return echo(request)
        assert all(answered.acquire(timeout=_LIMIT) for _ in range(6))
        return Reply(403)

    with serving(fails_last) as (url, _), closing(Server(url, at_once=2)) as server:

        async def ask(number):
            answer = (await server.post("echo", number))["echo"]
            answered.release()
            return answer

        answers, numbers = ordered(server, range(7), ask), []
        with refused(ServerError):
            numbers.extend(number for number, _ in answers)
    assert numbers == [0, 1, 2, 4, 5, 6]


def test_answers_before_a_mistake_in_the_items_are_given_first():
    def items():
        yield from range(5)
        raise UserError("line 6 is none.")

    got = []
    with serving(echo) as (url, _), closing(Server(url)) as server:
        answers = ordered(server, items(), lambda number: server.post("echo", number))
        got += [next(answers)[0] for _ in range(5)]
        with refused():
            next(answers)
    assert got == list(range(5))


def test_whoever_stops_does_not_wait_for_the_server():
    begun, gone = threading.Event(), threading.Event()

    def silent(request):
        begun.set()
        # The connection ends when the request is cancelled.
        if until_gone(request):
            gone.set()

    with serving(silent) as (url, _), closing(Server(url)) as server:
        answers = server.stream([1], lambda number: server.post("echo", number))
        assert all(answer is None for answer in iter(lambda: begun.is_set() or next(answers), True))
        answers.close()
        assert gone.wait(_LIMIT)


def test_leaving_cancels_requests_in_flight():
    gone = threading.Semaphore(0)

    def silent(request):
        if request.body == 0:
            return echo(request)
        if until_gone(request):
            gone.release()
        return None

    with serving(silent) as (url, _), closing(Server(url, at_once=3)) as server:
        answers = ordered(server, range(50), lambda number: server.post("echo", number))
        next(answers)
        answers.close()
        assert gone.acquire(timeout=_LIMIT)


def test_a_failing_request_ends_the_others_of_its_item():
    gone = threading.Event()

    begun = threading.Event()

    def one_fails(request):
        if request.body == "bad":
            assert begun.wait(_LIMIT)
            return Reply(400)
        begun.set()
        if until_gone(request):
            gone.set()
        return None

    async def ask(item):
        return await gather(server.post("echo", part) for part in ("slow", item))

    with serving(one_fails) as (url, _), closing(Server(url)) as server:
        with refused(ServerError):
            list(ordered(server, ["bad"], ask))
        assert gone.wait(_LIMIT)


def test_a_key_goes_to_the_server_and_nowhere_else(monkeypatch, caplog):
    monkeypatch.setenv(module.KEY, KEY)
    caplog.set_level(0)

    def refuses(request):
        return Reply(403, {"error": {"message": f"no {request.headers['authorization']}"}})

    error, asked = refusal(refuses)
    assert asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in f"{error}{caplog.text}"


def test_a_redirection_is_not_followed(monkeypatch):
    monkeypatch.setenv(module.KEY, KEY)
    with serving(echo) as (elsewhere, asked):
        refusal(lambda request: Reply(307, headers={"location": f"{elsewhere}/echo"}))
    assert asked == []


@pytest.mark.parametrize("key", ["a\nb", "schlüssel"])
def test_a_key_that_cannot_be_one(monkeypatch, key):
    monkeypatch.setenv(module.KEY, key)
    with refused() as caught:
        Server("http://localhost:1/v1")
    assert key not in str(caught.value)


def test_several_threads_share_a_server():
    with serving(echo) as (url, _), closing(Server(url)) as server:
        results = {}

        def work(start):
            numbers = range(start, start + 30)
            results[start] = [
                answer["echo"] for _, answer in ordered(server, numbers, lambda one: server.post("echo", one))
            ]

        threads = [threading.Thread(target=work, args=(start,)) for start in (0, 100, 200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {start: list(range(start, start + 30)) for start in (0, 100, 200)}
