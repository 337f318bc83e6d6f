"""A request's id, its line in the log, and answers where something of ours fails."""

import asyncio
import logging
import re

import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.testclient import TestClient

from stepsight.app.access.current import note_person, request_id
from stepsight.app.web.logs import ACCESS, FIELDS
from stepsight.app.web.requests import Failures, Requests, path_in_log
from tests.app.client import PAGE

SECRET = "the text of a trace"


@pytest.fixture
def client():
    application = FastAPI()
    inner = FastAPI()

    @application.get("/hello")
    def hello():
        note_person(7)
        return PlainTextResponse(request_id())

    @application.get("/bare")
    def bare():
        return PlainTextResponse("no person", 500)

    @inner.get("/fail")
    @application.get("/fail")
    def fail():
        raise ValueError(SECRET)

    @application.get("/breaks")
    def breaks():
        def parts():
            yield b"half"
            raise ValueError(SECRET)

        return StreamingResponse(parts())

    application.mount("/api/v1", inner)
    application.add_middleware(Failures)
    application.add_middleware(Requests)
    return TestClient(application)


@pytest.fixture
def log(caplog):
    with caplog.at_level(logging.INFO, "stepsight"), caplog.at_level(logging.INFO, ACCESS.name):
        yield caplog


def test_a_well_formed_id_is_kept_and_any_other_is_made_anew(client):
    made = client.get("/hello")
    assert re.fullmatch("[0-9a-f]{16}", made.text)
    assert made.headers["x-request-id"] == made.text != client.get("/hello").text
    for id in ("a", "3f.2A_b-c", "x" * 64):
        kept = client.get("/hello", headers={"X-Request-ID": id})
        assert kept.text == kept.headers["x-request-id"] == id
    for id in ("", "x" * 65, "two words", "a\tb", "-a", "a;b", "<b>", "é"):
        other = client.get("/hello", headers={"X-Request-ID": id.encode()}).text
        assert re.fullmatch("[0-9a-f]{16}", other)


def test_a_request_is_logged_once_it_is_answered(client, log):
    client.get(f"/hello?q={SECRET}", headers={"x-request-id": "one"})
    client.head("/nowhere")
    first, second = (getattr(record, FIELDS) for record in log.records)
    assert first.pop("milliseconds") > 0
    assert first == {"method": "GET", "path": "/hello", "status": 200, "bytes": 3, "person": 7}
    assert (second["status"], second["bytes"], second["person"]) == (404, 0, "-")
    assert re.fullmatch(r"GET /hello 200, 3 bytes, [\d.]+ ms, person 7", log.messages[0])
    assert SECRET not in log.text


@pytest.mark.parametrize(
    ("path", "logged"),
    [
        ("/", "/"),
        ("/browse/trace.json", "/browse/trace.json"),
        ("/api/v1/datasets/sums/traces", "/api/v1/datasets/sums/traces"),
        ("/login/invitation/qR3xFz_7kLm9-TuvWx2yZ0aB1c", "/login/invitation/*"),
        ("/a text/of a trace", "/*/*"),
        ("/x\nstepsight: GET /", "/*/"),
        ("/" + "a/" * 1000, ("/" + "a/" * 1000)[:120]),
    ],
)
def test_a_path_holds_short_words_alone(path, logged):
    assert path_in_log(path) == logged


def test_where_something_fails_a_page_or_a_program_gets_the_id_that_the_log_has(client, log):
    page = client.get("/fail", headers=PAGE | {"x-request-id": "abc"})
    assert page.status_code == 500
    assert page.headers["content-type"].startswith("text/html")
    assert "under request abc." in page.text
    assert page.headers["cache-control"] == "no-store"
    # Also where what is mounted has an answer of its own, and whatever a program accepts.
    for path, accept in (("/fail", {}), ("/api/v1/fail", PAGE)):
        answer = client.get(path, headers=accept | {"x-request-id": "abc"})
        assert answer.status_code == 500
        assert answer.json() == {
            "error": "Something went wrong in StepSight itself.",
            "hint": "The server's log has the reason under request abc.",
        }
    failed = [record for record in log.records if record.exc_info]
    assert [record.getMessage() for record in failed] == [
        "GET /fail failed", "GET /fail failed", "GET /api/v1/fail failed",
    ]  # fmt: skip
    assert all(record.exc_info[0] is ValueError for record in failed)


def test_an_answer_that_is_begun_is_cut_and_one_that_says_500_itself_is_kept(client, log):
    assert client.get("/bare").text == "no person"
    assert client.get("/breaks").text == "half"
    assert sum(record.exc_info is not None for record in log.records) == 1


def test_a_request_cut_off_by_a_stop_gets_a_503():
    async def forever(scope, receive, send):
        await asyncio.sleep(600)

    async def stopped():
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/api/v1/score", "headers": []}
        task = asyncio.create_task(Failures(forever)(scope, None, send))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return sent

    start, body = asyncio.run(stopped())
    assert start["status"] == 503
    assert dict(start["headers"])[b"retry-after"] == b"60"
    assert b"being stopped" in body["body"]
