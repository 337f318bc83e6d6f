"""Who makes a request and what they may do: the request being handled, the rights of each role, how routes declare
the rights they need, and the rules that follow for each path.

A path that no rule covers is treated as missing. This matters above all for Gradio's own routes, some of which
would store a visitor's files, fetch files on the visitor's behalf, or reveal what the server is doing.
"""

import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Mount, compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stepsight.core.scoring.client import API
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.people.blindness import is_something_hidden
from stepsight.storage.people.users import Role, User

HEADER = "x-request-id"

# Headers that proxies add to forwarded requests.
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
    no header cannot be distinguished from such a program."""
    address, _ = scope.get("client") or ("", 0)
    try:
        here = ip_address(address).is_loopback
    except ValueError:
        return False
    return here and not any(_FORWARDED.fullmatch(name.lower()) for name, _ in scope["headers"])


POLICY = "content-security-policy"


def content_policy(*, evaluating: bool = False) -> str:
    """Return the Content-Security-Policy of the current request's response. Only files of the server and scripts
    with the request's nonce run, so injected markup cannot. With `evaluating`, those may also evaluate text."""
    more = " 'unsafe-eval'" if evaluating else ""
    return (
        f"default-src 'self'; script-src 'self' 'nonce-{script_nonce()}'{more}; script-src-attr 'none'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
        "frame-src 'none'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    )


def with_headers(send: Send, headers_of: Callable[[Headers], Mapping[str, str]]) -> Send:
    """Wrap `send` so that a response has further headers, or others of the same names: those that `headers_of`
    returns for its own headers."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message.get("headers", [])))
            headers.update(headers_of(headers))
            message = {**message, "headers": headers.raw}
        await send(message)

    return sending


def private_headers(app: ASGIApp) -> ASGIApp:
    """Make ASGI middleware that adds related headers, and `content_policy` unless the response has a policy."""

    def headers_of(headers: Headers) -> dict[str, str]:
        return {
            "x-content-type-options": "nosniff",
            # With no-referrer, a form's POST would lack its origin, as if it came from a different site.
            "referrer-policy": "same-origin",
            "x-frame-options": "DENY",
            POLICY: headers.get(POLICY, "") or content_policy(),
        }

    async def private(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, with_headers(send, headers_of))

    return private


COOKIE = "stepsight"
"""The name of the cookie with a login's token, for an address without a port."""

_PORT = re.compile(r":(\d{1,5})$")


def cookie_name(request: HTTPConnection) -> str:
    """Return the name of the login cookie for the host and port of the request.

    The name contains the port because a browser shares cookies among all ports of a host. Otherwise, logging in to
    one of two servers on a host would end the login to the other.
    """
    port = _PORT.search(request.headers.get("host", ""))
    return f"{COOKIE}-{port[1]}" if port else COOKIE


def find_user_of(request: HTTPConnection) -> User | None:
    """Return the user who made the request, or None for a visitor who is not logged in. Only some servers admit
    such visitors."""
    user: User | None = state_of(request)["user"]
    return user


def user_of_request(request: HTTPConnection) -> User:
    """Return the user who made the request. Raises `ForbiddenError` if nobody is logged in."""
    user = find_user_of(request)
    if user is None:
        raise ForbiddenError("You are not logged in.", "Log in.")
    return user


def state_of(request: HTTPConnection) -> dict[str, Any]:
    """Return the state that `app.web.middleware` attached to the request: the `user` and their current `rights`."""
    state: dict[str, Any] = request.scope["state"]
    return state


class Right(StrEnum):
    """A permission that a role may include.

    - ENTER: open pages that require a login.
    - READ: see traces, judgments and figures.
    - SCORE: have solutions scored.
    - WRITE: change the store in any way other than labelling.
    - LABEL: label traces.
    - ADJUDICATE: settle steps on which annotators disagree.
    - MANAGE: run campaigns.
    """

    ENTER = "enter"
    READ = "read"
    SCORE = "score"
    WRITE = "write"
    LABEL = "label"
    ADJUDICATE = "adjudicate"
    MANAGE = "manage"


LOOKING = frozenset({Right.READ, Right.SCORE})
_RIGHTS = {
    Role.VIEWER: LOOKING | {Right.ENTER},
    Role.ANNOTATOR: LOOKING | {Right.ENTER, Right.LABEL},
    Role.ADJUDICATOR: LOOKING | {Right.ENTER, Right.LABEL, Right.ADJUDICATE},
    Role.ADMIN: frozenset(Right),
}


def rights_of(user: User, store: Store) -> frozenset[Right]:
    """Return the current rights of a user. While a blind campaign is open, annotators may not look at results."""
    rights = _RIGHTS[user.role]
    if user.role is Role.ANNOTATOR and is_something_hidden(store):
        return rights - LOOKING
    return rights


def may(user: User, right: Right, store: Store) -> bool:
    """True if the user currently has this right."""
    return right in rights_of(user, store)


def has_right(request: HTTPConnection, right: Right) -> bool:
    """True if the sender of the request, who may be a visitor without a login, has this right."""
    return right in state_of(request)["rights"]


def refusal(user: User, rights: Collection[Right]) -> ForbiddenError:
    """Return the error for a user who has none of these rights. The message names the roles that have at least one
    of the rights."""
    if user.role is Role.ANNOTATOR and LOOKING.issuperset(rights):
        return ForbiddenError(
            "Annotators see no scores and no gold labels while a blind campaign is open.",
            "Continue labelling on the Annotate page.",
        )
    roles = [f"{role}s" for role in Role if not _RIGHTS[role].isdisjoint(rights)]
    listed = " and ".join(filter(None, [", ".join(roles[:-1]), roles[-1]]))
    article = "a" if user.role is Role.VIEWER else "an"
    return ForbiddenError(
        f"This is for {listed}, and you are {article} {user.role}.", "An admin of this server can change your role."
    )


def require(request: HTTPConnection, *rights: Right) -> User | None:
    """Return the user who made the request if they have at least one of these rights.

    Returns None for a visitor who is not logged in, provided that the server grants visitors one of the rights.
    Raises `ForbiddenError` if the user or visitor has none of the rights.
    """
    user = find_user_of(request)
    if not any(has_right(request, right) for right in rights):
        if user is None:
            raise ForbiddenError("You are not logged in.", "Log in.")
        raise refusal(user, rights)
    return user


class RequiresRight:
    """A route's declaration of who may use it.

    Anyone with at least one of the rights may use the route. If no rights are given, everybody may. Used as a
    FastAPI dependency, the declaration passes the user who made the request to the route. `app.web.middleware`
    reads the declaration and refuses everybody else before the route runs. A route without a declaration cannot be
    reached, and one with two is an error.
    """

    def __init__(self, *rights: Right) -> None:
        self.rights = frozenset(rights)

    async def __call__(self, request: Request) -> User | None:
        return find_user_of(request)


Person = Annotated[User, Depends(RequiresRight(Right.ENTER))]
Annotator = Annotated[User, Depends(RequiresRight(Right.LABEL))]
Adjudicator = Annotated[User, Depends(RequiresRight(Right.ADJUDICATE))]
Manager = Annotated[User, Depends(RequiresRight(Right.MANAGE))]
"""Parameters of routes that require the right: the person who made the request."""


class _Number(Convertor[int]):
    """A path parameter that is a number, as in `{slot:number}`. At most 12 digits are accepted, since no id is
    longer and Python refuses to parse very long numbers."""

    regex = "[0-9]{1,12}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("number", _Number())


LOGIN = "/login"


class Page(NamedTuple):
    """A page with its name, its path, the right needed to open it, and the page of the manual about it.

    `within` names the page in the navigation bar that it belongs to, or is "" if it is in the bar itself. `beside`
    is its title among the pages shown with it, if that differs from its name.
    """

    name: str
    path: str
    right: Right
    manual: str = ""
    within: str = ""
    beside: str = ""

    @property
    def place(self) -> str:
        """The name of the page of the navigation bar that leads to this page."""
        return self.within or self.name

    @property
    def title(self) -> str:
        """The page's title among those in the same place."""
        return self.beside or self.name


PAGES = (
    Page("Score", "/", Right.SCORE, "score"),
    Page("Evidence", "/evidence", Right.READ, "evidence"),
    Page("Browse", "/browse", Right.READ, "browse"),
    Page("Results", "/results", Right.READ, "measure"),
    Page("Annotate", "/annotate", Right.ENTER, "annotate"),
    Page("Data", "/data", Right.READ, "datasets", beside="Datasets"),
    Page("Evaluators", "/evaluators", Right.READ, "evaluators", within="Data"),
    Page("Jobs", "/jobs", Right.READ, within="Data"),
    Page("People", "/people", Right.MANAGE, "deployment"),
)
"""The pages of the workbench, in the order of the navigation bar. *People* is in it where people log in."""


@dataclass(frozen=True)
class Rule:
    """A rule that allows requests to a path.

    A request must use one of the `methods`, and its sender must have at least one of the `rights`. If `rights` is
    empty, everybody may send the request. If `rights` is None, the response is also the same for everybody and
    contains nothing from the store, so the sender is not looked up.
    """

    methods: frozenset[str]
    path: re.Pattern[str]
    rights: frozenset[Right] | None


def _rule(method: str, path: str, rights: Iterable[Right] | None) -> Rule:
    return Rule(frozenset({method}), re.compile(path), None if rights is None else frozenset(rights))


# Paths are regular expressions.
_STATIC = tuple(_rule("GET", path, None) for path in ("/stepsight/(?s:.+)", "/favicon.ico", "/healthz"))
# What the demo's page and `gradio_client` need of Gradio, without routes that accept, fetch or serve files.
_DEMO = tuple(
    _rule(method, f"/demo/{path}", {Right.SCORE})
    for method, path in (
        ("GET", "((assets|static)/(?s:.+)|theme.css|favicon.ico|config)?"),
        ("GET", "gradio_api/(info|queue/data|call/score/[0-9a-f]+)"),
        ("POST", "gradio_api/(queue/join|cancel|component_server/|run/predict|call/score)"),
    )
)
_ADDED = (_rule("GET", f"{API}/openapi.json", LOOKING),)


class Rules:
    """The access rules of an application, collected from the `RequiresRight` declarations of its routes."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self.rules = (*_STATIC, *_DEMO, *_ADDED, *_declared_rules(routes))

    def find(self, method: str, path: str) -> Rule | None:
        """Return the first rule that matches the method and path of a request, or None if no rule does."""
        method = "GET" if method == "HEAD" else method
        return next((rule for rule in self.rules if method in rule.methods and rule.path.fullmatch(path)), None)

    def methods(self, path: str) -> list[str]:
        """Return the methods that a path accepts, in alphabetical order."""
        return sorted({method for rule in self.rules if rule.path.fullmatch(path) for method in rule.methods})


def _declared_rules(routes: Sequence[BaseRoute], prefix: str = "") -> Iterator[Rule]:
    for route in routes:
        # FastAPI keeps an included router as a single route.
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from _declared_rules(included.routes, prefix)
        elif isinstance(route, Mount):
            yield from _declared_rules(route.routes or (), prefix + route.path)
        elif isinstance(route, APIRoute):
            calls = [dependency.call for dependency in route.dependant.dependencies]
            needs = [call for call in calls if isinstance(call, RequiresRight)]
            if len(needs) > 1:
                raise TypeError(f"{prefix}{route.path} declares its rights {len(needs)} times, expected once")
            for need in needs:
                yield Rule(frozenset(route.methods or ()), compile_path(prefix + route.path)[0], need.rights)
