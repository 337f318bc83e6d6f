"""Which requests come from this machine, and the middleware of headers around a small application of its own."""

import re

import pytest
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient

from stepsight.app.web.access import content_policy, is_local, private_headers
from stepsight.app.web.html import plain_page
from stepsight.app.web.middleware import Requests

FORWARDED = (
    *("Forwarded", "Forwarded-For", "X-Forwarded", "X-Forwarded-For", "x-forwarded-for", "X-Forwarded-Host"),
    *("X-Forwarded-Proto", "X-Original-Forwarded-For", "Via", "CDN-Loop", "X-Real-IP", "X-Client-IP"),
    *("True-Client-IP", "CF-Connecting-IP"),
)


def local(*headers, client=("127.0.0.1", 50_000)):
    sent = [(b"host", b"localhost"), (b"accept", b"text/html"), (b"origin", b"http://localhost"), *headers]
    return is_local({"type": "http", "client": client, "headers": sent})


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.1", "::1"])
def test_the_loopback_is_this_machine(address):
    assert local(client=(address, 50_000))


# What a proxy whose word is taken may say among them.
@pytest.mark.parametrize(
    "address", ["10.0.0.1", "203.0.113.5", "fe80::1", "0.0.0.0", "::", "unix:", "", "127.0.0.1x"]
)
def test_no_other_address_is(address):
    assert not local(client=(address, 0))


def test_a_sender_without_an_address_is_elsewhere():
    assert not local(client=None)


@pytest.mark.parametrize("name", FORWARDED)
def test_what_was_forwarded_is_from_elsewhere_whatever_it_says(name):
    for value in (b"127.0.0.1", b"::1", b"for=127.0.0.1", b""):
        assert not local((name.encode(), value))
    assert not local((b"x-request-id", b"1"), (name.encode(), b"203.0.113.5"), (name.encode(), b"127.0.0.1"))


INJECTED = "<script>alert(1)</script><gradio-app></gradio-app><SCRIPT src=//elsewhere.example></SCRIPT>"
COMPANIONS = {"x-content-type-options": "nosniff", "referrer-policy": "same-origin", "x-frame-options": "DENY"}


async def page(request):
    # As if a page had forgotten to escape a text.
    return HTMLResponse(plain_page("é", INJECTED, ""), status_code=201, headers={"x-ours": "kept"})


async def pieces(request):
    async def body():
        for piece in ("<p>one</p><scr", "ipt>two</script>", ""):
            yield piece.encode()

    return StreamingResponse(body(), media_type="text/html; charset=utf-8")


async def data(request):
    return JSONResponse({"text": "<script>x</script>"})


async def own(request):
    return HTMLResponse("", headers={"content-security-policy": content_policy(evaluating=True)})


async def empty(request):
    return Response(status_code=304)


async def echo(socket):
    await socket.accept()
    await socket.send_text(await socket.receive_text())
    await socket.close()


ROUTES = [
    Route("/", page),
    Route("/pieces", pieces),
    Route("/data", data),
    Route("/own", own),
    Route("/empty", empty),
    WebSocketRoute("/socket", echo),
]


@pytest.fixture(scope="module")
def client():
    application = Starlette(routes=ROUTES)
    application.add_middleware(GZipMiddleware, minimum_size=1)
    application.add_middleware(private_headers)
    application.add_middleware(Requests)
    with TestClient(application) as client:
        yield client


def nonce_of(response):
    (nonce,) = re.findall(r"'nonce-([^']+)'", response.headers["content-security-policy"])
    return nonce


def test_the_script_of_our_template_has_the_nonce_and_those_of_a_text_have_none(client):
    response = client.get("/")
    assert INJECTED in response.text
    assert re.findall(r"<script\b[^>]*nonce[^>]*>", response.text) == [f'<script nonce="{nonce_of(response)}">']
    # The others are files of the server.
    assert len(re.findall(r"<script\b[^>]* src=\"/", response.text)) == 2


def test_a_text_never_allows_evaluation(client):
    assert "<gradio-app" in client.get("/").text
    policies = {
        path: client.get(path).headers.get_list("content-security-policy") for path in ("/", "/own", "/data")
    }
    assert [len(policy) for policy in policies.values()] == [1, 1, 1]
    assert [path for path in policies if "'unsafe-eval'" in policies[path][0]] == ["/own"]


def test_nothing_else_of_a_response_changes(client):
    assert client.get("/pieces").text == "<p>one</p><script>two</script>"
    assert client.get("/data").text == '{"text":"<script>x</script>"}'
    response = client.get("/")
    assert (response.status_code, response.headers["x-ours"]) == (201, "kept")
    assert response.headers["content-encoding"] == "gzip"


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


@pytest.mark.parametrize("path", ["/", "/pieces", "/data", "/empty", "/nowhere"])
def test_every_answer_has_the_headers(client, path):
    response = client.get(path)
    assert nonce_of(response)
    assert {name: response.headers[name] for name in COMPANIONS} == COMPANIONS


def test_web_sockets_pass(client):
    with client.websocket_connect("/socket") as socket:
        socket.send_text("<script>")
        assert socket.receive_text() == "<script>"
