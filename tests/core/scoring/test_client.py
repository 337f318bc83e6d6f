"""The client against a server that gives prepared answers, good and bad."""

import json
from collections import deque
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import numpy as np
import pytest

from stepsight.core.inference_servers.server import Server
from stepsight.core.scoring import client as module
from stepsight.core.scoring.client import Client
from stepsight.core.trace import Trace
from tests.cases import each
from tests.local_server import LocalServer
from tests.messages import refused

TRACE = Trace.of("q", ["a", "b"])
NEXT = {"index": 0, "step": 2, "substep": 1, "neg": 0.25, "neu": 0.25, "pos": 0.5, "validity": 0.75, "valid": True}


class Told:
    """The server's answers, one after the other: (status, lines or body, headers); and the requests it got."""

    def __init__(self):
        self.answers, self.asked, self.connections = deque(), [], set()


@pytest.fixture
def told(monkeypatch):
    told = Told()
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else each part of an answer waits for the other side's word.
        disable_nagle_algorithm = True

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            told.asked.append((self.path, dict(self.headers), json.loads(body or b"null")))
            told.connections.add(self.client_address)
            status, content, headers = told.answers.popleft()
            if status is None:
                self.close_connection = True
                return
            self.send_response(status)
            text = (
                b"".join(json.dumps(line).encode() + b"\n" for line in content)
                if isinstance(content, list)
                else content
            )
            length = headers.pop("Content-Length", len(text))
            for name, value in {"Content-Length": length, **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(text)
            self.close_connection = length != len(text)

        def log_message(self, *args):
            pass

    with LocalServer(Handler).running() as server:
        told.url = server.url
        yield told


def answering(told, *answers):
    for status, content, *headers in answers:
        told.answers.append((status, content, headers[0] if headers else {}))
    return Client(told.url, key="secret", patience=5)


def test_a_client_asks_with_its_key_and_keeps_its_connection(told):
    with answering(told, (200, [NEXT]), (200, [NEXT])) as client:
        for _ in range(2):
            np.testing.assert_allclose(client.score_next("q", ["a"], ["b"]), [[0.25, 0.25, 0.5]])
    assert len(told.connections) == 1
    path, headers, body = told.asked[0]
    assert (path, headers["authorization"]) == ("/api/v1/next", "Bearer secret")
    assert body == {"problem": "q", "steps": ["a"], "candidates": ["b"]}


def test_the_key_of_the_environment_is_used(told, monkeypatch):
    monkeypatch.setenv("STEPSIGHT_KEY", "of the environment")
    answering(told, (200, [NEXT]))
    Client(told.url, evaluator="mine").score_next("q", [], ["b"])
    assert told.asked[0][1]["authorization"] == "Bearer of the environment"
    assert told.asked[0][2]["evaluator"] == "mine"


def test_traces_put_off_or_lost_are_requested_again(told):
    later = {"index": 1, "error": "busy", "hint": "", "status": 429, "retry_after": 0}
    client = answering(
        told,
        (429, b'{"error": "busy", "hint": "h"}', {"Retry-After": "0"}),
        (500, b"oops"),
        (None, b""),
        # The third is put off; the second and the last are lost with the connection.
        (200, [NEXT, {**later, "index": 2}, {**NEXT, "index": 1}], {"Content-Length": 10_000}),
        (200, [{**NEXT, "index": 0, "pos": 0.25, "neu": 0.5}, later]),
        (200, [{**NEXT, "index": 0, "pos": 0.0, "neu": 0.75}]),
    )  # fmt: skip
    rows = client.score_next("q", [], ["a", "b", "c", "d"])
    assert rows[:, 2].tolist() == [0.5, 0.5, 0.25, 0.0]
    assert [body["candidates"] for _, _, body in told.asked[-3:]] == [["a", "b", "c", "d"], ["c", "d"], ["d"]]


def test_the_server_says_for_how_long_to_wait(told, monkeypatch):
    pauses = []
    monkeypatch.setattr("stepsight.core.scoring.client.time", SimpleNamespace(sleep=pauses.append))
    client = answering(told, (503, b"{}", {"Retry-After": "1"}), (200, [NEXT]))
    client.score_next("q", [], ["b"])
    # With some chance, so that not all come back at once.
    (pause,) = pauses
    assert 1 <= pause < 2


def test_patience_ends(told):
    busy = (429, b'{"error": "too much is waiting", "hint": "later"}', {"Retry-After": "4"})
    client = answering(told, busy, busy)
    client._patience = 3
    with refused():
        client.score_next("q", [], ["b"])
    line = {"index": 0, "error": "busy", "hint": "", "status": 429, "retry_after": 4}
    client = answering(told, (200, [line]))
    client._patience = 3
    told.answers.popleft()
    with refused():
        client.score_next("q", [], ["b"])


@each(
    "answer",
    [
        (200, b"[]\n"),
        (200, b"{}\n"),
        (200, b"<html>\n"),
        (200, [{**NEXT, "index": 7}]),
        (200, [{**NEXT, "index": True}]),
        (200, [{**NEXT, "index": -1}]),
        (200, [{**NEXT, "pos": 2}]),
        (200, [{**NEXT, "pos": "much"}]),
        (200, [{"index": 0}]),
        (200, b"[" * 10_000 + b"\n"),
    ],
)
def test_a_foreign_answer_is_refused(told, answer):
    with refused():
        answering(told, answer).score_next("q", [], ["b"])


@pytest.mark.parametrize(
    "change", [{}, {"mode": "online"}, {"offline": None}, {"offline": {"steps": "ab"}}], ids=repr
)
def test_a_judgment_of_other_steps_or_mode_is_refused(told, change):
    steps = [{"step": step, "substep": 1, "validity": 0.5, "valid": True} for step in (1, 2, 3)]
    line = {
        "index": 0, "evaluator": "e", "fingerprint": "f", "outputs": "validity", "mode": "offline",
        "thresholds": {"validity": 0.5, "redundancy": None}, "offline": {"steps": steps, "solution": {}}, **change,
    }  # fmt: skip
    with refused():
        answering(told, (200, [line])).score_one(TRACE, "offline")


def test_refusals_are_raised_with_their_hint(told):
    refusals = [
        (404, b'{"error": "There is no evaluator", "hint": "Choose"}'),
        (401, b'{"error": "You are not logged in.", "hint": "Log in: /login"}'),
        (418, b"<html>"),
        (418, b'{"error": 3}'),
    ]
    for status, body in refusals:
        with refused():
            answering(told, (status, body)).score_one(TRACE)


def test_an_unreachable_server_is_named(told, monkeypatch):
    client = Client("http://127.0.0.1:1")
    with refused():
        client.score_one(TRACE)
    with refused():
        answering(told, *[(200, [])] * 5).score_one(TRACE)


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "foo://127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_named(monkeypatch, proxy):
    monkeypatch.setenv("ALL_PROXY", proxy)
    with refused():
        Client("http://127.0.0.1:1").score_one(TRACE)
    with Server("http://127.0.0.1:1") as server:
        for _ in range(2):
            with refused():
                server.now(server.get("models"))


@pytest.mark.parametrize(
    "address", ["", "127.0.0.1:7860", "ftp://a", "http://", "http://a:b", "http://a:99999", "http://me:pw@a"]
)
def test_an_invalid_address_is_refused(address):
    with refused():
        Client(address)


def test_no_key_breaks_a_request():
    with refused():
        Client("http://a", key="a\r\nb")
