"""Routes of pages whose URL determines their content.

A browser gets the whole page, whereas the page's script gets only the content.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from anyio import from_thread
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from starlette.requests import HTTPConnection

from stepsight.app.access.rights import PAGES, RequiresRight
from stepsight.app.web.failures import page_status
from stepsight.app.web.html import plain_page
from stepsight.app.web.page_query import PageQuery, Query, read_query
from stepsight.core.errors import UserError
from stepsight.storage.database.store import UnavailableError

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
    """Build the route of the page called `name` in `app.access.rights.PAGES`.

    `content` renders the page for a query. The result is put into an element with the id `part`, which defaults to
    the page's name in lower case.
    """
    page = next(page for page in PAGES if page.name == name)
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


def client_disconnected(request: HTTPConnection) -> bool:
    """True if the client no longer waits for the response to its event or request. Call this from the thread that
    handles it. For the first response of a page, this is always False."""
    try:
        return isinstance(request, Request) and bool(from_thread.run(request.is_disconnected))
    except RuntimeError:
        # No server runs this thread, or it has stopped; a stopping server answers its waiting clients itself. The
        # first response of a page has no channel on which its client could leave.
        return False
