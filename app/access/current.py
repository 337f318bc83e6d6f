"""The request being handled, and the headers of its response that keep a page from running or loading anything from
other sites."""

import re
import secrets
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import ip_address

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "x-request-id"

# Headers that proxies add to the requests of others.
_FORWARDED = re.compile(rb".*forwarded.*|via|cdn-loop|.*(client|real|connecting)-ip", re.DOTALL)

_WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass
class Current:
    """The request being handled.

    `id` is sent with the response and written to every log line of the request. `nonce` marks the scripts that the
    templates of the response write. `person` is the id of the person who made the request, and None if nobody is
    logged in or the person was not looked up. The navigation bar shows their `name` and the pages for their
    `rights`, or else, if `offers_login`, a link that leads back to `address`. `jobs` counts the jobs that wait or
    run.
    """

    id: str = field(default_factory=lambda: secrets.token_hex(8))
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    person: int | None = None
    name: str = ""
    rights: frozenset[str] = frozenset()
    offers_login: bool = False
    address: str = ""
    jobs: Callable[[], int] = lambda: 0


CURRENT: ContextVar[Current | None] = ContextVar("current", default=None)
"""The current request, None outside of any. Threads started for a request need a copy of its context."""


def begin(header: str) -> Current:
    """Start handling a request and return its `Current`. A well-formed id in `header` is kept, because the proxy
    that sent it logs it too. Otherwise a new id is generated. `header` is "" if the request has no id."""
    current = Current(header) if _WELL_FORMED.fullmatch(header) else Current()
    CURRENT.set(current)
    return current


def current_request() -> Current:
    """Return the current request, or one without an id and a nonce outside of any."""
    return CURRENT.get() or Current("", "")


def request_id() -> str:
    """Return the id of the current request, or "" outside any request."""
    return current_request().id


def script_nonce() -> str:
    """Return the nonce of the current request's scripts, or "" outside any request."""
    return current_request().nonce


def is_local(scope: Scope) -> bool:
    """True if a program on this machine sent a request, and did not forward it for somebody else. A proxy that adds
    no header cannot be told from such a program."""
    address, _ = scope.get("client") or ("", 0)
    try:
        here = ip_address(address).is_loopback
    except ValueError:
        return False
    return here and not any(_FORWARDED.fullmatch(name.lower()) for name, _ in scope["headers"])


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
