"""Response headers that keep a page from running or loading anything that is not ours."""

import re
import secrets
from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# What Gradio's pages have and no other.
_GRADIO = b"<script data-gradio-mode>"
_SCRIPT = re.compile(rb"<script(?=[\s>])")
_POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; script-src-attr 'none'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
    "frame-src 'none'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)


class PrivateHeaders:
    """ASGI middleware: a Content-Security-Policy with a nonce for the page's own scripts, and its companions.

    Gradio evaluates its own templates, hence `unsafe-eval`; injected markup still cannot run, because it has
    no nonce. Responses reach us uncompressed so that the nonce can be written into them.

    `scripts` is HTML that Gradio's pages get before their own: what Gradio adds to a head comes only when it draws
    the page, and what a person did before that would be lost.
    """

    def __init__(self, app: ASGIApp, scripts: str = "") -> None:
        self.app = app
        self._scripts = scripts.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = [(k, v) for k, v in scope["headers"] if k.lower() != b"accept-encoding"]
        response = _Response(send, self._scripts)
        await self.app({**scope, "headers": headers}, receive, response.send)


class _Response:
    """Holds a page back until it is whole, to write nonces into it; streams everything else."""

    def __init__(self, send: Send, scripts: bytes) -> None:
        self._send = send
        self._scripts = scripts
        self._start: Message | None = None
        self._body = b""
        self._nonce = secrets.token_urlsafe(16)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *self._headers()]}
            if _is_html(message):
                self._start = message
            else:
                await self._send(message)
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish(self._start)
        else:
            await self._send(message)

    async def _finish(self, start: Message) -> None:
        body = self._body
        if _GRADIO in body:
            body = body.replace(b"<script", self._scripts + b"<script", 1)
        body = _SCRIPT.sub(b'<script nonce="' + self._nonce.encode() + b'"', body)
        kept = [(k, v) for k, v in start["headers"] if k.lower() != b"content-length"]
        await self._send({**start, "headers": [*kept, (b"content-length", str(len(body)).encode())]})
        await self._send({"type": "http.response.body", "body": body})

    def _headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"content-security-policy", _POLICY.format(nonce=self._nonce).encode()),
            (b"x-content-type-options", b"nosniff"),
            # With no-referrer a form's POST would come without its origin, as if from a page elsewhere.
            (b"referrer-policy", b"same-origin"),
            (b"x-frame-options", b"DENY"),
        ]


def _is_html(message: Any) -> bool:
    return any(k.lower() == b"content-type" and v.startswith(b"text/html") for k, v in message["headers"])


class FreshFiles(StaticFiles):
    """Static files that a browser keeps, but asks about each time: after an upgrade no page mixes two versions."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response
