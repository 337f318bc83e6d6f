"""Who may ask the server for what: one test for each rule, on the whole application."""

import asyncio

import pytest
from starlette.websockets import WebSocketDisconnect

from stepsight.app.access.rights import PAGES
from stepsight.app.web.request_guard import LARGEST_BODY, Gate
from stepsight.app.web.requests import Failures
from stepsight.core import gone
from stepsight.storage.database.store import open_store
from tests.app.client import PAGE, asking
from tests.cases import each
from tests.storage.samples import add

SCORE = {"problem": "What is 2 + 3?", "steps": ["5."]}
ELSEWHERE = "http://elsewhere.example"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with open_store(str(tmp_path_factory.mktemp("gate") / "store.db")) as store:
        add(store)
        yield store


@pytest.fixture(scope="module")
def client(store, evaluators):
    with asking(store, evaluators) as client:
        yield client


def post(client, path="/api/v1/score", **headers):
    return client.post(path, json=SCORE, headers={key.replace("_", "-"): value for key, value in headers.items()})


@each("name, path", [page[:2] for page in PAGES])
def test_every_page_is_there(client, name, path):
    response = client.get(path, headers=PAGE)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")


@each(
    "path",
    [
        "/nowhere",
        "/config",
        "/monitoring",
        "/docs",
        "/openapi.json",
        "/gradio_api/openapi.json",
        "/gradio_api/deep_link",
        "/gradio_api/runs",
        "/gradio_api/upload_progress",
        "/gradio_api/file=/etc/hostname",
        "/gradio_api/file=http://elsewhere.example/x.png",
        "/gradio_api/proxy=http://elsewhere.example/",
        "/gradio_api/stream/a/b/1/playlist.m3u8",
        "/gradio_api/call/show/1",
        "/gradio_api/vibe-code",
        "/gradio_api/info",
        "/gradio_api/app_id",
        "/gradio_api/heartbeat/one",
        "/gradio_api/queue/data",
        "/gradio_api/profiling/traces",
    ],
)
def test_gradio_routes_that_no_page_uses_are_404(client, path):
    response = client.get(path, headers=PAGE)
    assert response.status_code == 404
    assert "There is no such page." in response.text
    assert "nonce-" in response.headers["content-security-policy"]


@pytest.mark.parametrize("path", sorted(gone.PAGES))
def test_an_address_that_went_names_what_there_is_instead(client, path):
    response = client.get(path, headers=PAGE)
    assert response.status_code == 404
    assert gone.PAGES[path] in response.text


@pytest.mark.parametrize("name", ["upload", "api/predict", "call/show", "process_recording", "queue/join"])
def test_nothing_is_uploaded_or_called_by_other_ways(client, name):
    assert client.post(f"/gradio_api/{name}", files={"files": b"x"}).status_code == 404


@each("path", ["/api/v1/score", "/api/v1/jobs", "/gradio_api/run/score"])
@each("origin", [ELSEWHERE, "null", "http://127.0.0.1:8000", "http://127.0.0.1.example", ""])
def test_a_post_of_a_page_elsewhere_is_refused(client, path, origin):
    response = post(client, path, origin=origin)
    assert response.status_code == 403
    assert response.json()["error"] == "This request comes from another site."


def test_a_post_of_our_own_page_or_of_a_program_is_taken(client):
    assert post(client).status_code == 200
    assert post(client, origin="http://127.0.0.1").status_code == 200
    assert post(client, sec_fetch_site="same-origin").status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_browser_that_gives_no_origin_is_known_by_where_it_comes_from(client, site):
    assert post(client, sec_fetch_site=site).status_code == 403


@pytest.mark.parametrize("path", ["/", "/api/v1/datasets", "/gradio_api/run/score"])
def test_no_page_elsewhere_may_read_an_answer(client, path):
    """Gradio by itself would let any origin in where the host is not the loopback."""
    for host in ("127.0.0.1", "localhost"):
        asked = client.get(path, headers={"origin": ELSEWHERE, "host": host})
        assert "access-control-allow-origin" not in asked.headers
        assert "access-control-allow-credentials" not in asked.headers
        before = {"origin": ELSEWHERE, "host": host, "access-control-request-method": "POST"}
        assert client.options(path, headers=before).status_code == 400


def test_another_host_name_is_refused(client):
    for host in ("elsewhere.example", "127.0.0.1.example", "127.0.0.2", ""):
        assert client.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1:7860", "localhost", "LOCALHOST:1", "[::1]:7860"])
def test_this_machine_may_be_called_by_each_of_its_names(client, host):
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/score", "/gradio_api/run/score"])
def test_a_large_body_is_refused_before_it_is_read(client, path):
    response = client.post(path, content=b"x" * (LARGEST_BODY + 1))
    assert response.status_code == 413
    assert "larger than 1,000,000 bytes" in response.json()["error"]
    claimed = client.post(path, content=b"{}", headers={"content-length": "99999999999"})
    assert claimed.status_code == 413
    assert client.post(path, content=b"{}", headers={"content-length": "many"}).status_code == 413


def test_a_large_body_in_pieces_is_refused_once_it_is_too_large(client):
    pieces = (b"x" * 100_000 for _ in range(30))
    assert client.post("/api/v1/score", content=pieces).status_code == 413


def test_a_body_in_pieces_arrives_whole(client):
    content = (b'{"problem": "What is 2 + 3?", ', b'"steps": ', b'["5."]}')
    response = client.post("/api/v1/score", content=iter(content), headers={"content-type": "application/json"})
    assert response.status_code == 200


def test_there_are_no_web_sockets(client):
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/gradio_api/run/score"):
        pass


@pytest.mark.parametrize("path", ["/", "/browse", "/jobs", "/api/v1/datasets", "/nowhere"])
def test_no_cookie_is_set(client, path):
    assert "set-cookie" not in client.get(path).headers


def test_a_read_only_server_refuses_what_writes_and_shows_no_control_for_it(store, evaluators):
    with asking(store, evaluators, read_only=True) as client:
        for path in ("/api/v1/jobs", "/api/v1/jobs/1/cancel"):
            response = post(client, path)
            assert response.status_code == 403
            assert response.json()["error"] == "This server is read-only."
        pages = client.get("/login/who").json()["pages"]
        assert pages == [page.path for page in PAGES if page.name not in ("Annotate", "People")]
        for path in pages:
            assert client.get(path).status_code == 200, path
        assert client.get("/annotate").status_code == 403
        listed = client.get("/jobs/list").text
        assert "<form" not in listed
        assert "<button" not in listed
        assert post(client).status_code == 200


def test_other_names_are_allowed_where_they_are_given(store, evaluators):
    with asking(store, evaluators, hosts=["stepsight.example", "10.0.0.7"]) as client:
        for host, status in (("stepsight.example", 200), ("10.0.0.7:7860", 200), ("127.0.0.1", 400)):
            assert client.get("/", headers={"host": host}).status_code == status
        own = {"host": "stepsight.example", "origin": "https://stepsight.example"}
        assert client.post("/api/v1/score", json=SCORE, headers=own).status_code == 200
        assert client.post("/api/v1/score", json=SCORE, headers=own | {"origin": ELSEWHERE}).status_code == 403


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
