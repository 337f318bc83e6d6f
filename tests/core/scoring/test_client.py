"""The client against a server that gives prepared answers, good and bad."""

import json
from collections import deque
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest

from stepsight.core.inference_servers.server import Server
from stepsight.core.scoring import client as module
from stepsight.core.scoring.client import Client
from stepsight.core.trace import Trace
from tests.cases import each
from tests.local_server import Reply, ScriptedServer
from tests.messages import refused

TRACE = Trace.of("q", ["a", "b"])
NEXT = {"index": 0, "step": 2, "substep": 1, "neg": 0.25, "neu": 0.25, "pos": 0.5, "validity": 0.75, "valid": True}


class Replies(ScriptedServer):
    """Gives its `replies`, one after the other, and breaks the connection instead of None."""

    def __init__(self) -> None:
        self.replies: deque[Reply | None] = deque()
        super().__init__(lambda request: self.replies.popleft())

    def client(self, *replies, patience=5.0):
        self.replies.extend(replies)
        return Client(self.url, key="secret", patience=patience)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)
    with Replies().running() as server:
        yield server


def lines(*values, **headers):
    return Reply(200, b"".join(json.dumps(value).encode() + b"\n" for value in values), headers=headers)


def test_a_client_asks_with_its_key_and_keeps_its_connection(server):
    with server.client(lines(NEXT), lines(NEXT)) as client:
        for _ in range(2):
            np.testing.assert_allclose(client.score_next("q", ["a"], ["b"]), [[0.25, 0.25, 0.5]])
    assert len({request.handler.client_address for request in server.asked}) == 1
    request = server.asked[0]
    assert (request.path, request.headers["authorization"]) == ("/api/v1/next", "Bearer secret")
    assert request.body == {"problem": "q", "steps": ["a"], "candidates": ["b"]}


def test_the_key_of_the_environment_is_used(server, monkeypatch):
    monkeypatch.setenv("STEPSIGHT_KEY", "of the environment")
    server.client(lines(NEXT))
    Client(server.url, evaluator="mine").score_next("q", [], ["b"])
    assert server.asked[0].headers["authorization"] == "Bearer of the environment"
    assert server.asked[0].body["evaluator"] == "mine"


def test_traces_put_off_or_lost_are_requested_again(server):
    later = {"index": 1, "error": "busy", "hint": "", "status": 429, "retry_after": 0}
    client = server.client(
        Reply(429, {"error": "busy", "hint": "h"}, headers={"Retry-After": "0"}),
        Reply(500, b"oops"),
        None,
        # The third is put off; the second and the last are lost with the connection.
        lines(NEXT, {**later, "index": 2}, {**NEXT, "index": 1}, **{"content-length": "10000"}),
        lines({**NEXT, "index": 0, "pos": 0.25, "neu": 0.5}, later),
        lines({**NEXT, "index": 0, "pos": 0.0, "neu": 0.75}),
    )
    rows = client.score_next("q", [], ["a", "b", "c", "d"])
    assert rows[:, 2].tolist() == [0.5, 0.5, 0.25, 0.0]
    candidates = [request.body["candidates"] for request in server.asked[-3:]]
    assert candidates == [["a", "b", "c", "d"], ["c", "d"], ["d"]]


def test_the_server_says_for_how_long_to_wait(server, monkeypatch):
    pauses = []
    monkeypatch.setattr("stepsight.core.scoring.client.time", SimpleNamespace(sleep=pauses.append))
    server.client(Reply(503, {}, headers={"Retry-After": "1"}), lines(NEXT)).score_next("q", [], ["b"])
    # With some chance, so that not all come back at once.
    (pause,) = pauses
    assert 1 <= pause < 2


def test_patience_ends(server):
    busy = Reply(429, {"error": "too much is waiting", "hint": "later"}, headers={"Retry-After": "4"})
    with refused():
        server.client(busy, patience=3).score_next("q", [], ["b"])
    later = {"index": 0, "error": "busy", "hint": "", "status": 429, "retry_after": 4}
    with refused():
        server.client(lines(later), patience=3).score_next("q", [], ["b"])


def test_a_list_of_evaluators_that_breaks_off_is_requested_again(server):
    listed = {
        "name": "e", "fingerprint": "f", "format": "stepsight", "attention": "causal", "dtype": "float32",
        "outputs": "validity", "parameters": 3, "context": 8, "scores": True,
        "thresholds": {"validity": 0.4, "redundancy": None},
    }  # fmt: skip
    client = server.client(Reply(200, b"[", headers={"content-length": "99"}), Reply(200, [listed]))
    assert (client.evaluator.name, client.evaluator.thresholds.validity) == ("e", 0.4)


@each(
    "answer",
    [
        Reply(200, b"[]\n"),
        Reply(200, b"{}\n"),
        Reply(200, b"<html>\n"),
        lines({**NEXT, "index": 7}),
        lines({**NEXT, "index": True}),
        lines({**NEXT, "index": -1}),
        lines({**NEXT, "pos": 2}),
        lines({**NEXT, "pos": "much"}),
        lines({"index": 0}),
        lines({"index": 0, "error": "busy", "hint": "", "retry_after": "soon"}),
        Reply(200, b"[" * 10_000 + b"\n"),
    ],
)
def test_a_foreign_answer_is_refused(server, answer):
    with refused():
        server.client(answer).score_next("q", [], ["b"])


@pytest.mark.parametrize(
    "change", [{}, {"mode": "online"}, {"offline": None}, {"offline": {"steps": "ab"}}], ids=repr
)
def test_a_judgment_of_other_steps_or_mode_is_refused(server, change):
    steps = [{"step": step, "substep": 1, "validity": 0.5, "valid": True} for step in (1, 2, 3)]
    line = {
        "index": 0, "evaluator": "e", "fingerprint": "f", "outputs": "validity", "mode": "offline",
        "thresholds": {"validity": 0.5, "redundancy": None}, "offline": {"steps": steps, "solution": {}}, **change,
    }  # fmt: skip
    with refused():
        server.client(lines(line)).score_one(TRACE, "offline")


def test_refusals_are_raised_with_their_hint(server):
    refusals = [
        (404, {"error": "There is no evaluator", "hint": "Choose"}),
        (401, {"error": "You are not logged in.", "hint": "Log in: /login"}),
        (418, b"<html>"),
        (418, {"error": 3}),
    ]
    for status, body in refusals:
        with refused():
            server.client(Reply(status, body)).score_one(TRACE)


def test_an_unreachable_server_is_named(server):
    with refused():
        Client("http://127.0.0.1:1").score_one(TRACE)
    with refused():
        server.client(*[lines()] * 5).score_one(TRACE)


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "foo://127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_named(monkeypatch, proxy):
    monkeypatch.setenv("ALL_PROXY", proxy)
    with refused():
        Client("http://127.0.0.1:1").score_one(TRACE)
    with closing(Server("http://127.0.0.1:1")) as server:
        for _ in range(2):
            with refused():
                server.run(server.get("models"))


@pytest.mark.parametrize(
    "address", ["", "127.0.0.1:7860", "ftp://a", "http://", "http://a:b", "http://a:99999", "http://me:pw@a"]
)
def test_an_invalid_address_is_refused(address):
    with refused():
        Client(address)


def test_no_key_breaks_a_request():
    with refused():
        Client("http://a", key="a\r\nb")
