"""Response headers that keep a page from running or loading anything from other sites."""

import re
import secrets
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# A mark of Gradio's pages, whose scripts evaluate their own templates.
_GRADIO = b"<gradio-app"
_EVALUATING = " 'unsafe-eval'"
_SCRIPT = re.compile(rb"<script(?=[\s>])")
_POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}'{more}; script-src-attr 'none'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
    "frame-src 'none'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)


class PrivateHeaders:
    """ASGI middleware that adds a Content-Security-Policy and related headers.

    The policy has a nonce for the page's own scripts, so injected markup cannot run. Responses must reach this
    middleware uncompressed so that the nonce can be written into them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = [(k, v) for k, v in scope["headers"] if k.lower() != b"accept-encoding"]
        response = _Response(send)
        await self.app({**scope, "headers": headers}, receive, response.send)


class _Response:
    """A wrapper around `send` that holds an HTML page back until it is complete and then writes nonces into it. All
    other responses are streamed."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = b""
        self._nonce = secrets.token_urlsafe(16)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if _is_html(message):
                self._start = message
            else:
                await self._send(self._with_headers(message))
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish(self._start)
        else:
            await self._send(message)

    async def _finish(self, start: Message) -> None:
        body = _SCRIPT.sub(b'<script nonce="' + self._nonce.encode() + b'"', self._body)
        start = self._with_headers(start, _EVALUATING if _GRADIO in body else "")
        kept = [(k, v) for k, v in start["headers"] if k.lower() != b"content-length"]
        await self._send({**start, "headers": [*kept, (b"content-length", str(len(body)).encode())]})
        await self._send({"type": "http.response.body", "body": body})

    def _with_headers(self, start: Message, more: str = "") -> Message:
        headers = [
            *start.get("headers", []),
            (b"content-security-policy", _POLICY.format(nonce=self._nonce, more=more).encode()),
            (b"x-content-type-options", b"nosniff"),
            # With no-referrer, a form's POST would lack its origin, as if it came from another site.
            (b"referrer-policy", b"same-origin"),
            (b"x-frame-options", b"DENY"),
        ]
        return {**start, "headers": headers}


def _is_html(message: Any) -> bool:
    return any(k.lower() == b"content-type" and v.startswith(b"text/html") for k, v in message["headers"])
