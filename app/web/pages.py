"""Pages whose URL determines their content: query strings and bodies as models, and the routes that answer them.

A browser gets the whole page, whereas the page's script gets only the content.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, TypeVar
from urllib.parse import parse_qs, urlencode

from anyio import CapacityLimiter, from_thread, to_thread
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup, escape
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticKnownError
from starlette.requests import HTTPConnection
from starlette.responses import Response

from stepsight.app.web.access import PAGES, RequiresRight
from stepsight.app.web.failures import page_status
from stepsight.app.web.html import plain_page
from stepsight.core.errors import AddressError, UserError
from stepsight.core.files.whole_files import parse_json
from stepsight.core.validation import user_error, validate
from stepsight.storage.database.store import UnavailableError

Query = Mapping[str, str | Sequence[str]]

_HINT = "Check the address."
_MOST_DIGITS = 12


def _check_digits(text: object) -> object:
    if isinstance(text, str) and not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise PydanticKnownError("int_parsing")
    return text


Number = Annotated[int, BeforeValidator(_check_digits)]
"""A number in an address, of at most 12 digits."""

PageNumber = Annotated[Number, AfterValidator(lambda number: max(1, number))]
"""A page number, counted from 1; 0 stands for the first page."""

_NUMBERS = TypeAdapter(dict[str, Number])


class PageQuery(BaseModel):
    """The query string of the page at `PATH`. Each parameter is a field with a default."""

    model_config = ConfigDict(frozen=True)
    PATH: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, parts: Any) -> Any:
        return {name: value for name, value in parts.items() if value != ""} if isinstance(parts, dict) else parts

    @classmethod
    def read(cls, query: Query) -> tuple[Self, tuple[str, ...]]:
        """Read a query. Return the model and a message for each invalid parameter, which is ignored.

        A parameter whose default is a tuple may occur several times. For any other parameter, the last occurrence
        counts.
        """
        parts: dict[str, Any] = {}
        for name, field in cls.model_fields.items():
            key = field.validation_alias if isinstance(field.validation_alias, str) else name
            if values := _values(query, key):
                parts[key] = tuple(dict.fromkeys(values)) if isinstance(field.default, tuple) else values[-1]
        try:
            return cls.model_validate(parts), ()
        except ValidationError as error:
            problems = {str(one["loc"][0]): _problem(one, parts) for one in error.errors(include_url=False)}
            sound = {key: value for key, value in parts.items() if key not in problems}
            return cls.model_validate(sound), tuple(problems.values())

    @classmethod
    def exact(cls, query: Query) -> Self:
        """Like `read`, but raise `AddressError` at the first invalid parameter."""
        address, problems = cls.read(query)
        if problems:
            raise AddressError(problems[0])
        return address

    def changed(self, **changes: object) -> Self:
        """Return a copy with some parameters changed."""
        return self.model_copy(update=changes)

    def query(self, **changes: object) -> dict[str, Any]:
        """Return the parameters by name, with `changes` applied. Parameters with default values are left out."""
        return self.changed(**changes).model_dump(by_alias=True, exclude_defaults=True)

    def url(self, path: str = "", /, **changes: object) -> Markup:
        """Return the URL with `changes` applied to its parameters, for use in an HTML attribute. `path` defaults to
        the path of the page."""
        query = self.query(**changes)
        return escape((path or self.PATH) + (f"?{urlencode(query, doseq=True)}" if query else ""))


def _problem(error: ErrorDetails, parts: Mapping[str, Any]) -> str:
    refusal = user_error([error], parts)
    return f"{refusal.message} {refusal.hint or _HINT}"


def read_number(query: Query, name: str) -> int:
    """Read a required number from a query. Raises `UserError` if the parameter is missing or is not a number."""
    parts = {name: (_values(query, name) or [""])[-1]}
    try:
        return _NUMBERS.validate_python(parts)[name]
    except ValidationError as error:
        raise UserError(_problem(error.errors(include_url=False)[0], parts)) from None


def read_query(text: str) -> dict[str, list[str]]:
    """Parse a query string, with or without its leading `?`."""
    return parse_qs(text.removeprefix("?"))


def _values(query: Query, name: str) -> list[str]:
    value = query.get(name, "")
    return [text for text in ([value] if isinstance(value, str) else value) if text]


T = TypeVar("T")

_MOST_FIELDS = 1_000


def body(model: type[T]) -> Any:
    """Return a FastAPI dependency that parses the body of a request and validates it as a `model`. An empty body
    counts as `{}`. The dependency raises `UserError` if the body is not a JSON object or does not fit the model."""

    async def read(request: Request) -> T:
        try:
            values = parse_json(await request.body() or "{}")
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise UserError("The body is not a JSON object.", "Send one.")
        if len(values) > _MOST_FIELDS:
            # Otherwise the error would list every unknown field.
            raise UserError(f"The body has {len(values):,} fields.", f"Send {_MOST_FIELDS} at most.")
        return validate(model, values, "the body")

    return Depends(read)


PART = "stepsight-part"
"""The request header with which a page's script requests only the content."""


@dataclass(frozen=True)
class PageContent:
    """The content of a page, and the HTTP status of its response."""

    html: Markup
    status: int = 200

    @classmethod
    def of(cls, html: Markup, problems: Sequence[str] = (), errors: Sequence[UserError] = ()) -> "PageContent":
        """Build the content of a page that reports `errors`, and `problems` with the query.

        The status is 422 if there are `problems`, and otherwise that of the first error caused by the URL. A page
        that has nothing to show yet is a success.
        """
        return cls(html, 422 if problems else page_status(errors))


Content = Callable[[Query, Request], PageContent]
Address = TypeVar("Address", bound=PageQuery)


def answer_query(
    kind: type[Address],
    query: Query,
    body: Callable[[Address, Sequence[str], list[UserError]], Markup],
    failure: Callable[[UserError, Sequence[str]], Markup],
) -> PageContent:
    """Render the page of an address of this `kind`.

    `body` is called with the address, the problems with it, and a list to which it adds the errors that it reports
    above whatever can still be shown. If it raises an error, `failure` renders that and the problems instead.
    `UnavailableError` is left to the application.
    """
    address, problems = kind.read(query)
    errors: list[UserError] = []
    try:
        html = body(address, problems, errors)
    except UnavailableError:
        raise
    except UserError as error:
        errors = [error]
        html = failure(error, problems)
    return PageContent.of(html, problems, errors)


def address_page(name: str, content: Content, part: str = "") -> APIRouter:
    """Build the route of the page called `name` in `app.web.access.PAGES`.

    `content` renders the page for a query. The result is put into an element with the id `part`, which defaults to
    the page's name in lower case.
    """
    page = {page.name: page for page in PAGES}[name]
    routes = APIRouter(include_in_schema=False)

    def show(request: Request) -> HTMLResponse:
        shown = content(read_query(request.url.query), request)
        html = shown.html
        if PART not in request.headers:
            html = plain_page(
                name, Markup('<div id="{}" data-part>{}</div>').format(part or name.lower(), html), name
            )
        return HTMLResponse(html, shown.status, headers={"vary": PART, "cache-control": "no-cache"})

    for path in (page.path, f"{page.path}/"):
        routes.add_api_route(path, show, methods=["GET", "HEAD"], dependencies=[Depends(RequiresRight(page.right))])
    return routes


DOWNLOAD_PATIENCE = 60.0
"""Seconds that a download waits for a judgment."""

_WAITING = 8


def waiting_route(answer: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Return a route that runs `answer`, which may wait for a judgment, in one of a few threads of its own. The
    threads that all other routes share stay free."""
    limiter = CapacityLimiter(_WAITING)

    async def run(request: Request) -> Response:
        return await to_thread.run_sync(answer, request, limiter=limiter)

    return run


def client_disconnected(request: HTTPConnection) -> bool:
    """True if the client no longer waits for the response to its event or request. Call this from the thread that
    handles it. For the first response of a page, this is always False."""
    try:
        return isinstance(request, Request) and bool(from_thread.run(request.is_disconnected))
    except RuntimeError:
        # No server runs this thread, or the server has stopped; a stopping server answers its waiting clients
        # itself. The first response of a page has no channel to report that its client has left.
        return False


MOVED: dict[str, str] = {
    "/relabel*": "/annotate*",
    "/browse/views": "/browse",
    "/results/stress": "/help/measure#stress-tests",
    "/evidence/stress": "/help/measure#stress-tests",
    "/results/doubtful": "/help/measure#doubtful-labels",
    "/results/doubtful/file": "/help/measure#doubtful-labels",
    "/results/card": "/help/measure#report",
    "/help/people": "/help/deployment#people",
    "/help/stress": "/help/measure#stress-tests",
    "/help/demo": "/help/score#demo",
    "/help/rerank": "/help/choose#rerank",
    "/help/paper": "/help/training#the-papers-results",
    "/help/development": "/help",
    "/help/record": "/help/api#the-record-of-a-judgment",
    "/help/filtering": "/help/choose#filter-a-pool",
    "/help/experiments": "/help/training#a-grid",
}
"""Maps the path of a removed page to the new address of its content. `*` is the rest of the path and query."""


def find_moved(path: str, query: str) -> str:
    """Return the new address of the content of a removed page, or "" if there never was such a page."""
    for entry, instead in MOVED.items():
        prefix = entry.removesuffix("*")
        if path == entry:
            return instead
        if prefix != entry and path.startswith(prefix):
            return instead.removesuffix("*") + path.removeprefix(prefix) + (f"?{query}" if query else "")
    return ""
