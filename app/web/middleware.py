"""Middleware around the whole application: ids and log lines of requests, responses to failures, and the gate that
admits only small requests, sent by the pages of this site or by programs."""

import asyncio
import logging
import re
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stepsight.app.access.current import HEADER, Current, begin
from stepsight.app.web.failures import OURS, failure_response, logged_under
from stepsight.app.web.logs import ACCESS, FIELDS

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
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
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


_LOG = logging.getLogger("stepsight")
# A part of a path that can be logged as it is. Anything longer may be a token or a text.
_WORD = re.compile(r"[\w.~-]{0,24}", re.ASCII)
_LONGEST_PATH = 120


class Requests:
    """ASGI middleware that gives each request an id (see `app.access.current`), and logs the request once it has
    been answered."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        current = begin(Headers(scope=scope).get(HEADER, ""))
        answer = _Answer(send, current)
        try:
            await self.app(scope, receive, answer.send)
        finally:
            answer.log(scope)


class _Answer:
    """A wrapper around `send` that counts the bytes of a response for the log."""

    def __init__(self, send: Send, current: Current) -> None:
        self._send, self._current = send, current
        self._began = time.perf_counter()
        self._status: int | None = None
        self._bytes = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [*message.get("headers", []), (HEADER.encode(), self._current.id.encode())]
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body":
            self._bytes += len(message.get("body", b""))
        await self._send(message)

    def log(self, scope: Scope) -> None:
        fields = {
            "method": scope["method"],
            "path": path_in_log(scope["path"]),
            "status": self._status,
            "bytes": 0 if scope["method"] == "HEAD" else self._bytes,
            "milliseconds": round(1000 * (time.perf_counter() - self._began), 1),
            "person": self._current.person,
        }
        shown = {name: "-" if value is None else value for name, value in fields.items()}
        ACCESS.info("%s %s %s, %s bytes, %s ms, person %s", *shown.values(), extra={FIELDS: shown})


def path_in_log(path: str) -> str:
    """Return a request's path as it may be logged: parts that are not short words are replaced by `*`."""
    parts = [part if _WORD.fullmatch(part) else "*" for part in path.split("/")]
    return "/".join(parts)[:_LONGEST_PATH]


class Failures:
    """ASGI middleware that responds if StepSight fails, or if the server stops before a response has begun. The
    response to a failure contains the request id under which the log has the cause."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        held = _Held(send)
        try:
            await self.app(scope, receive, held.send)
        except asyncio.CancelledError:
            if not held.is_begun:
                response = _answer(scope, 503, "The server is being stopped.", "Try again in a minute.")
                response.headers["retry-after"] = "60"
                await response(scope, receive, send)
            raise
        except ClientDisconnect:
            return
        except Exception as error:
            _LOG.error("%s %s failed", scope["method"], path_in_log(scope["path"]), exc_info=error)
            if not held.is_begun:
                await _answer(scope, 500, OURS, logged_under())(scope, receive, send)
            return
        await held.release()


class _Held:
    """A wrapper around `send` that holds back a response with status 500 until `release` sends it. Starlette sends
    these responses first and raises the exception afterwards."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_begun = False
        self._messages: list[Message] = []

    async def send(self, message: Message) -> None:
        if self._messages or (message["type"] == "http.response.start" and message["status"] == 500):
            self._messages.append(message)
            return
        self.is_begun = True
        await self._send(message)

    async def release(self) -> None:
        for message in self._messages:
            await self._send(message)


def _answer(scope: Scope, status: int, message: str, hint: str) -> Response:
    response = failure_response(scope, status, message, hint)
    response.headers["cache-control"] = "no-store"
    return response
