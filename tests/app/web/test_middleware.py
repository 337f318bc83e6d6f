"""Ids and log lines of requests, answers where something of ours fails, and the gate."""

import asyncio
import logging
import re

import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from stepsight.app.web.access import PAGES, current_request, request_id
from stepsight.app.web.logs import ACCESS, FIELDS
from stepsight.app.web.middleware import LARGEST_BODY, Failures, Gate, Requests, path_in_log
from stepsight.app.web.pages import MOVED
from stepsight.storage.jobs.jobs import start_job
from tests.app.client import PAGE, asking, who
from tests.app.web.test_access import ROUTES, concrete
from tests.cases import each
from tests.storage.samples import add

SECRET = "the text of a trace"


@pytest.fixture
def client():
    application = FastAPI()
    inner = FastAPI()

    @application.get("/hello")
    def hello():
        current_request().person = 7
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
    assert b"shutting down" in body["body"]


SCORE = {"problem": "What is 2 + 3?", "steps": ["5."]}
ELSEWHERE = "http://elsewhere.example"


@pytest.fixture(scope="module")
def store(module_store):
    add(module_store)
    return module_store


@pytest.fixture(scope="module")
def guarded(store, evaluators):
    with asking(store, evaluators) as guarded:
        yield guarded


def post(guarded, path="/api/v1/score", **headers):
    return guarded.post(path, json=SCORE, headers={key.replace("_", "-"): value for key, value in headers.items()})


@each("name, path", [page[:2] for page in PAGES])
def test_every_page_is_there(guarded, name, path):
    response = guarded.get(path, headers=PAGE)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")


@each("path", ["/nowhere", "/docs", "/openapi.json", "/gradio_api/file=/etc/hostname", "/gradio_api/queue/data"])
def test_what_is_no_page_is_404(guarded, path):
    response = guarded.get(path, headers=PAGE)
    assert response.status_code == 404
    assert "There is no such page." in response.text
    assert "nonce-" in response.headers["content-security-policy"]


@pytest.mark.parametrize("path", sorted(MOVED))
def test_an_address_that_went_leads_to_its_content(guarded, path):
    path = path.removesuffix("*")
    moved = guarded.get(path, headers=PAGE, follow_redirects=False)
    assert moved.status_code == 308
    response = guarded.get(moved.headers["location"], headers=PAGE, follow_redirects=False)
    assert response.status_code == 200
    anchor = moved.headers["location"].partition("#")[2]
    assert not anchor or f'id="{anchor}"' in response.text
    assert guarded.post(path, headers=PAGE).status_code == (405 if path.startswith("/help/") else 404)


def test_an_address_below_one_that_went_keeps_its_rest(guarded):
    moved = guarded.get("/relabel/label?campaign=3&x=%0d%0aa", follow_redirects=False)
    assert moved.headers["location"] == "/annotate/label?campaign=3&x=%0d%0aa"


@each("path", ["/api/v1/score", "/api/v1/jobs", "/score/score"])
@each("origin", [ELSEWHERE, "null", "http://127.0.0.1:8000", "http://127.0.0.1.example", ""])
def test_a_post_of_a_page_elsewhere_is_refused(guarded, path, origin):
    response = post(guarded, path, origin=origin)
    assert response.status_code == 403
    assert response.json()["error"] == "This request comes from another site."


def test_a_post_of_our_own_page_or_of_a_program_is_taken(guarded):
    assert post(guarded).status_code == 200
    assert post(guarded, origin="http://127.0.0.1").status_code == 200
    assert post(guarded, sec_fetch_site="same-origin").status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_browser_that_gives_no_origin_is_known_by_where_it_comes_from(guarded, site):
    assert post(guarded, sec_fetch_site=site).status_code == 403


@pytest.mark.parametrize("path", ["/", "/api/v1/datasets", "/score/score"])
def test_no_page_elsewhere_may_read_an_answer(guarded, path):
    """Gradio by itself would let any origin in where the host is not the loopback."""
    for host in ("127.0.0.1", "localhost"):
        asked = guarded.get(path, headers={"origin": ELSEWHERE, "host": host})
        assert "access-control-allow-origin" not in asked.headers
        assert "access-control-allow-credentials" not in asked.headers
        before = {"origin": ELSEWHERE, "host": host, "access-control-request-method": "POST"}
        assert guarded.options(path, headers=before).status_code == 400


def test_a_browser_that_sends_something_invalid_gets_a_page_and_a_program_json(guarded):
    for accept, kind in ((PAGE["accept"], "text/html"), ("*/*", "application/json")):
        answer = guarded.post("/get_reward", json={}, headers={"accept": accept})
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (422, kind)
        assert "query: Field required." in answer.text


def test_another_host_name_is_refused(guarded):
    for host in ("elsewhere.example", "127.0.0.1.example", "127.0.0.2", ""):
        assert guarded.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1:7860", "localhost", "LOCALHOST:1", "[::1]:7860"])
def test_this_machine_may_be_called_by_each_of_its_names(guarded, host):
    assert guarded.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/score", "/score/score"])
def test_a_large_body_is_refused_before_it_is_read(guarded, path):
    response = guarded.post(path, content=b"x" * (LARGEST_BODY + 1))
    assert response.status_code == 413
    assert "larger than 1,000,000 bytes" in response.json()["error"]
    claimed = guarded.post(path, content=b"{}", headers={"content-length": "99999999999"})
    assert claimed.status_code == 413
    assert guarded.post(path, content=b"{}", headers={"content-length": "many"}).status_code == 413


def test_a_large_body_in_pieces_is_refused_once_it_is_too_large(guarded):
    pieces = (b"x" * 100_000 for _ in range(30))
    assert guarded.post("/api/v1/score", content=pieces).status_code == 413


def test_a_body_in_pieces_arrives_whole(guarded):
    content = (b'{"problem": "What is 2 + 3?", ', b'"steps": ', b'["5."]}')
    response = guarded.post("/api/v1/score", content=iter(content), headers={"content-type": "application/json"})
    assert response.status_code == 200


def test_there_are_no_web_sockets(guarded):
    with pytest.raises(WebSocketDisconnect), guarded.websocket_connect("/score/score"):
        pass


@pytest.mark.parametrize("path", ["/", "/browse", "/jobs", "/api/v1/datasets", "/nowhere"])
def test_no_cookie_is_set(guarded, path):
    assert "set-cookie" not in guarded.get(path).headers


def test_a_read_only_server_refuses_what_writes_and_shows_no_control_for_it(store, evaluators):
    start_job(store, 1, evaluator="mini", spec="mini", fingerprint="f", mode="online")
    with asking(store, evaluators, read_only=True) as guarded:
        routes = " ".join(ROUTES[group] for group in ("managing", "labelling", "adjudicating"))
        # A page on which nothing is saved has no route for it.
        for path in set(re.findall(r"POST (\S+)", routes)) - {"/score/save"}:
            response = post(guarded, concrete(path))
            assert (response.status_code, response.json()["error"]) == (403, "This server is read-only."), path
        assert post(guarded, "/score/save").status_code == 404
        pages = who(guarded)[2]
        assert pages == [page.path for page in PAGES if page.name not in ("Annotate", "People") and not page.within]
        more = ("/evaluators", "/jobs", "/data/state", "/evaluators/state", "/jobs/list", "/browse?trace=1")
        for path in (*pages, *more):
            response = guarded.get(path)
            assert response.status_code == 200, path
            main = response.text.partition("<main")[2] or response.text
            assert not re.search(r'data-(post|fetch|changes)|type="file"', main), path
        assert guarded.get("/annotate").status_code == 403
        assert post(guarded).status_code == 200


def test_other_names_are_allowed_where_they_are_given(store, evaluators):
    with asking(store, evaluators, hosts=["stepsight.example", "10.0.0.7"]) as guarded:
        for host, status in (("stepsight.example", 200), ("10.0.0.7:7860", 200), ("127.0.0.1", 400)):
            assert guarded.get("/", headers={"host": host}).status_code == status
        own = {"host": "stepsight.example", "origin": "https://stepsight.example"}
        assert guarded.post("/api/v1/score", json=SCORE, headers=own).status_code == 200
        assert guarded.post("/api/v1/score", json=SCORE, headers=own | {"origin": ELSEWHERE}).status_code == 403


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
