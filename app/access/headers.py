"""Response headers that keep a page from running or loading anything from other sites."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stepsight.app.access.current import script_nonce

POLICY = b"content-security-policy"


def content_policy(*, evaluating: bool = False) -> bytes:
    """Return the Content-Security-Policy of the current request's response. Only files of the server and scripts
    with the request's nonce run, so injected markup cannot. With `evaluating`, those may also evaluate text."""
    more = " 'unsafe-eval'" if evaluating else ""
    return (
        f"default-src 'self'; script-src 'self' 'nonce-{script_nonce()}'{more}; script-src-attr 'none'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
        "frame-src 'none'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    ).encode()


class PrivateHeaders:
    """ASGI middleware that adds related headers, and `content_policy` unless the response has a policy."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            await send(_with_headers(message) if message["type"] == "http.response.start" else message)

        await self.app(scope, receive, sending)


def _with_headers(start: Message) -> Message:
    headers = [
        *start.get("headers", []),
        (b"x-content-type-options", b"nosniff"),
        # With no-referrer, a form's POST would lack its origin, as if it came from another site.
        (b"referrer-policy", b"same-origin"),
        (b"x-frame-options", b"DENY"),
    ]
    if not any(name == POLICY for name, _ in headers):
        headers.append((POLICY, content_policy()))
    return {**start, "headers": headers}
