"""The guard in front of the application, which admits only small requests, sent by its own pages or by programs."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stepsight.app.web.failures import failure_response

LARGEST_BODY = 1_000_000
"""The largest body of a request in bytes."""

UPLOADS = "/data/uploads"
"""The path of the route that receives files."""

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class Gate:
    """ASGI middleware that refuses some requests before anything else handles them.

    - A request that changes something and comes from a page of a different site is refused with 403. Browsers
      send the origin of these requests. A client that sends no origin is a program, not the page of a site.
    - A body larger than `LARGEST_BODY` is refused with 413, whether its size is announced in advance or found while
      reading. Only that of `UPLOADS` may be larger, and is left to its route, which bounds it.
    - WebSockets are refused, since the application does not use them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] in SAFE_METHODS:
            await self.app(scope, receive, send)
            return
        is_upload = scope["path"] == UPLOADS
        refusal = _refusal(scope, is_upload=is_upload)
        if refusal is None and not is_upload:
            body = await _read(receive)
            if body is None:
                refusal = _too_large(scope)
            else:
                receive = read_again(body, receive)
        await (refusal or self.app)(scope, receive, send)


def _refusal(scope: Scope, *, is_upload: bool) -> Response | None:
    headers = Headers(scope=scope)
    if not _is_ours(headers):
        return failure_response(scope, 403, "This request comes from another site.", "Use StepSight's own pages.")
    length = headers.get("content-length", "0")
    if not length.isdigit() or (int(length) > LARGEST_BODY and not is_upload):
        return _too_large(scope)
    return None


def _is_ours(headers: Headers) -> bool:
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site", "none") in ("same-origin", "none")
    return urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""


def _too_large(scope: Scope) -> Response:
    response = failure_response(
        scope, 413, f"The request is larger than {LARGEST_BODY:,} bytes.", "Send fewer or shorter texts."
    )
    # The rest of the body is not read.
    response.headers["connection"] = "close"
    return response


async def _read(receive: Receive) -> bytes | None:
    """Read the whole body of a request. Returns None as soon as it exceeds `LARGEST_BODY`. Raises
    `ClientDisconnect` if the client leaves before its end."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            # The part of it that came must not be taken for the whole.
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            return None
        if not message.get("more_body"):
            return bytes(body)


def read_again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` function that first returns a body that was already read, and then calls `receive`."""
    replayed = False

    async def replay() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
