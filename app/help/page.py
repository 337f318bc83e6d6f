"""The pages of the manual under `/help`, and the page about StepSight.

They contain nothing from the store, so everybody may open them, even before logging in.
"""

from functools import cache
from importlib.metadata import version

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from stepsight.app.help.manual import MANUAL, document_html, list_pages
from stepsight.app.web.html import plain_page, render
from stepsight.storage.database.store import NotFoundError

_FIRST = ("index", "start", "words", "score", "evidence", "browse", "measure", "annotate", "datasets", "evaluators")
_ABOUT = "about"


def help_routes() -> APIRouter:
    """Build the routes of the manual and of the page about StepSight."""
    routes = APIRouter(include_in_schema=False)

    @routes.api_route("/help", methods=["GET", "HEAD"])
    def first() -> HTMLResponse:
        return HTMLResponse(plain_page(*_page("index"), ""))

    @routes.api_route("/help/{name}", methods=["GET", "HEAD"])
    def page(name: str) -> HTMLResponse:
        return HTMLResponse(plain_page(*_page(name), ""))

    return routes


@cache
def _page(name: str) -> tuple[str, Markup]:
    """Return the title and the body of a page."""
    if name == _ABOUT:
        return "About", render("help/about.html", version=version("stepsight"))
    names = list_pages()
    if name not in names:
        raise NotFoundError(f"The manual has no page {name!r:.80}.", "Open its first page, /help.")
    content = document_html((MANUAL / f"{name}.md").read_text(encoding="utf-8"))
    ordered = sorted(names, key=lambda one: (_FIRST.index(one) if one in _FIRST else len(_FIRST), one))
    pages = [(one, _title(one)) for one in ordered]
    return f"{_title(name)}, manual", render("help/page.html", pages=pages, here=name, content=content)


@cache
def _title(name: str) -> str:
    with (MANUAL / f"{name}.md").open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()
