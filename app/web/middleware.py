"""Middleware around the whole application: ids and log lines of requests, responses to failures, the gate that
admits only small requests, sent by the pages of this site or by programs, and access control: who made a request,
and whether they have one of the rights that the route requires."""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote, urlsplit

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stepsight.app.scoring.batcher import client_context
from stepsight.app.web.access import (
    HEADER,
    LOGIN,
    LOOKING,
    Right,
    Rules,
    begin,
    cookie_name,
    current_request,
    is_local,
    refusal,
    rights_of,
    with_headers,
)
from stepsight.app.web.failures import (
    OURS,
    address_of,
    error_response,
    failure_response,
    is_api,
    is_navigation,
    logged_under,
)
from stepsight.app.web.logs import ACCESS, FIELDS
from stepsight.app.web.pages import find_moved
from stepsight.core.errors import UserError
from stepsight.core.scoring.client import API
from stepsight.storage.database.store import Store, UnavailableError
from stepsight.storage.jobs.jobs import count_active
from stepsight.storage.people.blindness import is_something_hidden
from stepsight.storage.people.logins import address_key, find_login, renew
from stepsight.storage.people.users import LOCAL, User, has_users, local_user

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
        refusal = _gate_refusal(scope, is_upload=is_upload)
        if refusal is None and not is_upload:
            body = await _read(receive)
            if body is None:
                refusal = _too_large_response(scope)
            else:
                receive = read_again(body, receive)
        await (refusal or self.app)(scope, receive, send)


def _gate_refusal(scope: Scope, *, is_upload: bool) -> Response | None:
    headers = Headers(scope=scope)
    if not _is_ours(headers):
        return failure_response(scope, 403, "This request comes from another site.", "Use StepSight's own pages.")
    length = headers.get("content-length", "0")
    if not length.isdigit() or (int(length) > LARGEST_BODY and not is_upload):
        return _too_large_response(scope)
    return None


def _is_ours(headers: Headers) -> bool:
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site", "none") in ("same-origin", "none")
    return urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""


def _too_large_response(scope: Scope) -> Response:
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
            # The part that arrived must not be mistaken for the whole body.
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
# A part of a path that can be logged unchanged. Anything longer may be a token or text from a user.
_WORD = re.compile(r"[\w.~-]{0,24}", re.ASCII)
_LONGEST_PATH = 120


class Requests:
    """ASGI middleware that gives each request an id (see `app.web.access`), and logs the request once it has
    been answered."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        current, began = begin(Headers(scope=scope).get(HEADER, "")), time.perf_counter()
        status, size = None, 0

        async def counting(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, with_headers(counting, lambda _: {HEADER: current.id}))
        finally:
            fields = {
                "method": scope["method"],
                "path": path_in_log(scope["path"]),
                "status": status,
                "bytes": 0 if scope["method"] == "HEAD" else size,
                "milliseconds": round(1000 * (time.perf_counter() - began), 1),
                "person": current.person,
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
        held: list[Message] = []
        is_begun = False

        async def holding(message: Message) -> None:
            nonlocal is_begun
            # Starlette first sends a response with this status, and raises the exception afterwards.
            if held or (message["type"] == "http.response.start" and message["status"] == 500):
                held.append(message)
                return
            is_begun = True
            await send(message)

        try:
            await self.app(scope, receive, holding)
        except asyncio.CancelledError:
            if not is_begun:
                response = _answer(scope, 503, "The server is shutting down.", "Try again in a minute.")
                response.headers["retry-after"] = "60"
                await response(scope, receive, send)
            raise
        except ClientDisconnect:
            return
        except Exception as error:
            _LOG.error("%s %s failed", scope["method"], path_in_log(scope["path"]), exc_info=error)
            if not is_begun:
                await _answer(scope, 500, OURS, logged_under())(scope, receive, send)
            return
        for message in held:
            await send(message)


def _answer(scope: Scope, status: int, message: str, hint: str) -> Response:
    response = failure_response(scope, status, message, hint)
    response.headers["cache-control"] = "no-store"
    return response


# These rights need no store, so they work without one if nobody has to log in.
_ALONE = frozenset({Right.SCORE})


MOST_OPEN = 200
"""The largest number of open requests per client: a quarter of the server's connections."""


class ClientLimit:
    """Counts the open requests of each client, of which there may be at most `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def held(self, client: str) -> Iterator[bool]:
        """Count a request while the block runs. Yields False if its client has too many."""
        self._open[client] += 1
        try:
            yield self._open[client] <= self._most
        finally:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]


def too_many_open(scope: Scope) -> Response:
    """Return the response to a request whose client has too many open."""
    message = "Too many of your requests are open at once."
    response = failure_response(scope, 429, message, "Wait until some have finished, then try again.")
    response.headers["retry-after"] = "5"
    return response


@dataclass(frozen=True)
class Requester:
    """The sender of a request and their current `rights`. `user` is None for a visitor who is not logged in.

    `can_log_in` is True if the store has a user who can log in. `token` is the login token if the login is due to
    be renewed, or None.
    """

    user: User | None
    rights: frozenset[Right]
    can_log_in: bool
    token: str | None = None


class Access:
    """ASGI middleware that identifies the user and refuses requests that they have no right to make.

    It sets `user`, `rights` and `client` (see `client_context`) in `scope["state"]`. If nobody can log in and the
    server is reachable only from this machine (`loopback`), requests from this machine are the local user's, unless
    they were forwarded. With `public`, visitors who are not logged in may view pages and have solutions scored.
    """

    def __init__(self, app: ASGIApp, store: Store, *, public: bool = False, loopback: bool = True) -> None:
        self.app = app
        self.store = store
        self.public = public
        self.loopback = loopback
        self._rules: Rules | None = None
        self._had_users = has_users(store)
        self._limit = ClientLimit(MOST_OPEN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        moved = find_moved(scope["path"], scope.get("query_string", b"").decode("latin-1"))
        if moved and scope["method"] in ("GET", "HEAD"):
            await RedirectResponse(moved, 308)(scope, receive, send)
            return
        # By the first request, all routes of the application exist.
        rules = self._rules = self._rules or Rules(scope["app"].routes)
        rule = rules.find(scope["method"], scope["path"])
        rights: Collection[Right] | None = () if rule is None else rule.rights
        if rights is None:
            await self.app(scope, receive, send)
            return
        local = self.loopback and is_local(scope)
        try:
            requester = await to_thread.run_sync(self.identify, _token(scope), local)
        except UserError as error:
            is_alone = not self._had_users and (local or self.public)
            if rights and not (is_alone and _ALONE.intersection(rights)):
                await error_response(scope, error)(scope, receive, send)
                return
            requester = Requester(None, _ALONE if is_alone else frozenset(), can_log_in=False)
        _note(scope, requester, self.store)
        client = _client(scope, requester)
        who = {"user": requester.user, "rights": requester.rights, "client": client}
        state = {**scope.get("state", {}), **who, "rules": rules}
        scope = {**scope, "state": state}
        if requester.can_log_in:
            # Otherwise, the Back button would show a response to the next person after a logout.
            send = with_headers(send, lambda _: {"cache-control": "no-store"})
        answer: ASGIApp = self.app
        if rule is None:
            answer = _unknown(scope, rules)
        elif rights and requester.rights.isdisjoint(rights):
            answer = _refusal(scope, rights, requester)
        with client_context(client), self._limit.held(client) as is_within:
            await (answer if is_within else too_many_open(scope))(scope, receive, send)
        if requester.token is not None:
            # This runs after the response, so that nobody waits while an import holds the database.
            with suppress(UnavailableError):
                await to_thread.run_sync(renew, self.store, requester.token)

    def identify(self, token: str | None, local: bool) -> Requester:
        """Return the sender of a request. `token` is the sender's login token, or None if the request has none.
        `local` is True if the local user may have sent the request. Raises `UserError` if the store fails."""
        login = find_login(self.store, token) if token else None
        if login is not None:
            rights = rights_of(login.user, self.store)
            self._had_users = True
            return Requester(login.user, rights, can_log_in=True, token=token if login.is_due else None)
        can_log_in = self._had_users = has_users(self.store)
        if self.public:
            # Otherwise annotators could log out to see what is hidden from them.
            hidden = can_log_in and is_something_hidden(self.store)
            return Requester(None, frozenset() if hidden else LOOKING, can_log_in)
        if can_log_in or not local:
            return Requester(None, frozenset(), can_log_in)
        user = local_user(self.store)
        return Requester(user, rights_of(user, self.store), can_log_in)


def _note(scope: Scope, requester: Requester, store: Store) -> None:
    """Note the sender for the log and for the navigation bar."""
    current, user = current_request(), requester.user
    current.person = None if user is None else user.id
    current.name = "" if user is None or user.name == LOCAL else user.name
    current.rights = requester.rights
    current.offers_login = requester.can_log_in and not current.name
    current.address = address_of(scope)
    current.jobs = partial(count_active, store)


def _client(scope: Scope, requester: Requester) -> str:
    """Return the client to which a request is attributed when scorers are shared fairly.

    The client is the user or, if nobody is logged in, the network address. API requests are attributed to a
    separate client, so that a user's programs do not hold up the pages that the user looks at.
    """
    kind = "programs of " if is_api(scope) else ""
    if requester.user is not None and requester.user.name != LOCAL:
        return f"{kind}person {requester.user.id}"
    address, _ = scope.get("client") or ("", 0)
    return f"{kind}{address_key(address)}"


def _token(scope: Scope) -> str | None:
    """Return the token of a login: the API key that a program sends, or the content of a browser's cookie."""
    request = HTTPConnection(scope)
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if kind.lower() == "bearer" else request.cookies.get(cookie_name(request))


def _unknown(scope: Scope, rules: Rules) -> Response:
    """Return the response to a request for a route that does not exist or does not accept the method."""
    methods = rules.methods(scope["path"])
    if methods:
        response = failure_response(scope, 405, "This route does not support that method.", f"See {API}/docs.")
        response.headers["allow"] = ", ".join(methods)
        return response
    if is_api(scope):
        return failure_response(scope, 404, "There is no such route.", f"See {API}/docs.")
    return failure_response(scope, 404, "There is no such page.", "Check the address.")


def _refusal(scope: Scope, rights: Collection[Right], requester: Requester) -> Response:
    """Return the response to a sender who lacks the rights. The response says how to log in, or why logging in does
    not help."""
    if requester.user is not None:
        error = refusal(requester.user, rights)
        return failure_response(scope, 403, error.message, error.hint)
    if not requester.can_log_in:
        if requester.rights:
            hint = "To change something, start StepSight on your own machine."
            return failure_response(scope, 403, "This server is read-only.", hint)
        message = "There are no users yet, so only somebody at the server's own machine has access."
        return failure_response(scope, 403, message, "Create the first admin there.")
    if is_navigation(scope):
        return RedirectResponse(f"{LOGIN}?next={quote(address_of(scope), safe='/')}", 303)
    return failure_response(scope, 401, "You are not logged in.", f"Log in: {LOGIN}")
