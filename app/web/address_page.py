"""Pages whose content follows from their address: whole for a browser, the content alone for the page's script."""

from collections.abc import Callable

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from stepsight.app.access.pages import PAGES
from stepsight.app.access.rights import Needs
from stepsight.app.web.html import plain_page
from stepsight.app.web.page_address import Query, read_query

PART = "stepsight-part"
"""The request header with which a page's script asks for the content alone."""

Content = Callable[[Query, Request], Markup]


def address_page(name: str, content: Content, part: str = "") -> APIRouter:
    """The route of the page of that name (see `app.access.pages.PAGES`), which shows the `content` of its address.

    That stands in an element with the id `part`, or the page's name.
    """
    page = next(page for page in PAGES if page.name == name)
    routes = APIRouter(include_in_schema=False)

    def show(request: Request) -> HTMLResponse:
        shown = content(read_query(request.url.query), request)
        if PART not in request.headers:
            body = Markup('<div id="{}" data-part>{}</div>').format(part or name.lower(), shown)
            shown = plain_page(name, body, name)
        return HTMLResponse(shown, headers={"vary": PART, "cache-control": "no-cache"})

    for path in (page.path, f"{page.path}/"):
        routes.add_api_route(path, show, methods=["GET", "HEAD"], dependencies=[Depends(Needs(page.right))])
    return routes
