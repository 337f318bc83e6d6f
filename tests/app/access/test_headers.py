"""The middleware around a small application of its own."""

import asyncio
import re

import pytest
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient

from stepsight.app.access.headers import PrivateHeaders

PAGE = """<!doctype html><head><title>é</title><script>var a = "</p>";</script>
<script defer src="/x.js"></script><script
type="module">b</script></head><p>scripture &lt;script&gt; <scripted></scripted></p>"""
COMPANIONS = {"x-content-type-options": "nosniff", "referrer-policy": "same-origin", "x-frame-options": "DENY"}


async def page(request):
    return HTMLResponse(PAGE, status_code=201, headers={"x-ours": "kept"})


async def gradio(request):
    return HTMLResponse("<script>a</script><gradio-app></gradio-app>")


async def pieces(request):
    async def body():
        # The tag lies across two pieces.
        for piece in ("<p>one</p><scr", "ipt>two</script>", ""):
            yield piece.encode()

    return StreamingResponse(body(), media_type="text/html; charset=utf-8")


async def data(request):
    return JSONResponse({"text": "<script>x</script>"})


async def text(request):
    return PlainTextResponse("<script>x</script>" * 100)


async def empty(request):
    return Response(status_code=304)


async def echo(socket):
    await socket.accept()
    await socket.send_text(await socket.receive_text())
    await socket.close()


ROUTES = [
    Route("/", page),
    Route("/gradio", gradio),
    Route("/pieces", pieces),
    Route("/data", data),
    Route("/text", text),
    Route("/empty", empty),
    WebSocketRoute("/socket", echo),
]


@pytest.fixture(scope="module")
def client():
    application = Starlette(routes=ROUTES)
    application.add_middleware(GZipMiddleware, minimum_size=1)
    application.add_middleware(PrivateHeaders)
    with TestClient(application) as client:
        yield client


def nonce_of(response):
    (nonce,) = re.findall(r"'nonce-([^']+)'", response.headers["content-security-policy"])
    return nonce


@pytest.mark.parametrize("path", ["/", "/pieces"])
def test_every_script_of_a_page_carries_the_nonce_of_the_policy(client, path):
    response = client.get(path)
    tags = re.findall(r"<script\b[^>]*>", response.text)
    assert len(tags) == {"/": 3, "/pieces": 1}[path]
    assert all(f'nonce="{nonce_of(response)}"' in tag for tag in tags)


def test_only_a_page_of_gradio_may_evaluate_text(client):
    policies = {path: client.get(path).headers["content-security-policy"] for path in ("/", "/gradio", "/text")}
    assert [path for path in policies if "'unsafe-eval'" in policies[path]] == ["/gradio"]


def test_nothing_else_of_a_page_changes(client):
    response = client.get("/")
    assert response.text.replace(f' nonce="{nonce_of(response)}"', "") == PAGE
    assert (response.status_code, response.headers["x-ours"]) == (201, "kept")


@pytest.mark.parametrize("path", ["/", "/pieces"])
def test_the_length_is_that_of_the_body_as_sent(client, path):
    response = client.get(path)
    assert response.headers.get_list("content-length") == [str(len(response.content))]
    # é takes two bytes.
    assert path != "/" or len(response.content) > len(response.text)


def test_a_nonce_serves_once(client):
    nonces = {nonce_of(client.get("/")) for _ in range(20)}
    assert len(nonces) == 20
    assert min(len(nonce) for nonce in nonces) >= 22


def test_the_policy_allows_our_own_alone(client):
    policy = client.get("/").headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for name in ("frame-src", "object-src", "frame-ancestors", "script-src-attr"):
        assert rules[name] == "'none'"
    assert "'unsafe-inline'" not in rules["script-src"]
    assert not re.search(r"https?:|\*", policy)


@pytest.mark.parametrize("path", ["/", "/data", "/text", "/empty", "/nowhere"])
def test_every_answer_has_the_headers(client, path):
    response = client.get(path)
    assert nonce_of(response)
    assert {name: response.headers[name] for name in COMPANIONS} == COMPANIONS


@pytest.mark.parametrize(("path", "body"), [("/data", '{"text":"<script>x</script>"}'), ("/empty", "")])
def test_a_response_that_is_not_a_page_is_untouched(client, path, body):
    assert client.get(path).text == body


def test_pages_come_uncompressed_or_no_nonce_could_be_written(client):
    response = client.get("/", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in response.headers
    assert f'<script nonce="{nonce_of(response)}">' in response.text


def test_web_sockets_pass(client):
    with client.websocket_connect("/socket") as socket:
        socket.send_text("<script>")
        assert socket.receive_text() == "<script>"


def run(application, kind="http"):
    """The messages of one request, in the order in which application and middleware sent them."""
    log = []

    async def logged(scope, receive, send):
        async def watched(message):
            log.append(("application", message.get("body")))
            await send(message)

        await application(scope, receive, watched)

    async def send(message):
        log.append(("sent", message.get("body")))

    scope = {"type": kind, "method": "GET", "path": "/", "headers": [(b"Accept-Encoding", b"gzip")]}
    asyncio.run(PrivateHeaders(logged)(scope, None, send))
    return log


def streaming(content_type):
    async def application(scope, receive, send):
        assert scope["headers"] == []
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", content_type)]})
        for body, more in ((b"one", True), (b"two", True), (b"", False)):
            await send({"type": "http.response.body", "body": body, "more_body": more})

    return application


def test_events_pass_one_by_one_as_they_come():
    # Every message goes out before the application makes the next one.
    assert run(streaming(b"text/event-stream")) == [
        (side, body) for body in (None, b"one", b"two", b"") for side in ("application", "sent")
    ]


def test_a_page_goes_out_when_it_is_whole():
    log = run(streaming(b"text/html"))
    assert log[:4] == [("application", body) for body in (None, b"one", b"two", b"")]
    assert log[4:] == [("sent", None), ("sent", b"onetwo")]
