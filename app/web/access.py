"""Access control for routes: who made a request, and whether they have one of the rights that the route
requires."""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from anyio import to_thread
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stepsight.app.access.current import current_request, is_local
from stepsight.app.access.rights import LOGIN, LOOKING, Right, Rules, cookie_name, refusal, rights_of
from stepsight.app.scoring.batcher import client_context
from stepsight.app.web.failures import address_of, error_response, failure_response, is_api, is_navigation
from stepsight.app.web.pages import find_moved
from stepsight.core.errors import UserError
from stepsight.core.scoring.client import API
from stepsight.storage.database.store import Store, UnavailableError
from stepsight.storage.jobs.jobs import count_active
from stepsight.storage.people.blindness import is_something_hidden
from stepsight.storage.people.logins import address_key, find_login, renew
from stepsight.storage.people.users import LOCAL, User, has_users, local_user

# These rights need no store, so they work without one if nobody has to log in.
_ALONE = frozenset({Right.SCORE})


MOST_OPEN = 200
"""The most requests of one client that are open at once: a quarter of the server's connections."""


class ClientLimit:
    """The number of requests of each client that are open, of which there may be `most`."""

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
    response = failure_response(scope, 429, message, "Wait until some have ended, then try again.")
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
        # All routes of the application exist by its first request.
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
            send = _unkept(send)
        answer: ASGIApp = self.app
        if rule is None:
            answer = _unknown(scope, rules)
        elif rights and requester.rights.isdisjoint(rights):
            answer = _refusal(scope, rights, requester)
        with client_context(client), self._limit.held(client) as is_within:
            await (answer if is_within else too_many_open(scope))(scope, receive, send)
        if requester.token is not None:
            # After the response, so that nobody waits while an import holds the database.
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
            # Otherwise annotators could log out to look.
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
        response = failure_response(scope, 405, "This route does not take that method.", f"See {API}/docs.")
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
        message = "Nobody can log in yet, and only somebody at the server's own machine is let in."
        return failure_response(scope, 403, message, "Make the first admin there.")
    if is_navigation(scope):
        return RedirectResponse(f"{LOGIN}?next={quote(address_of(scope), safe='/')}", 303)
    return failure_response(scope, 401, "You are not logged in.", f"Log in: {LOGIN}")


def _unkept(send: Send) -> Send:
    """Wrap `send` so that responses are marked as not to be cached. Otherwise, the Back button would show them to
    the next person after a logout."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(key, value) for key, value in message.get("headers", []) if key.lower() != b"cache-control"]
            message = {**message, "headers": [*kept, (b"cache-control", b"no-store")]}
        await send(message)

    return sending
