"""The manual under `/help`, and the page about StepSight. They contain nothing from the store, so everybody may
open them, even before logging in.

The manual is the Markdown of `docs`. Pictures and tables of contents are left out, and a link that leaves the
manual keeps only its text.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from stepsight.app.web.access import RequiresRight
from stepsight.app.web.html import plain_page, render
from stepsight.storage.database.store import NotFoundError

MANUAL = Path(str(files("stepsight"))).joinpath("docs")
"""The folder of the manual, which is shipped with the package."""

_PAGE = re.compile(r"(?:([a-z-]+)\.md)?(#[\w-]+)?")


def document_html(text: str, within: str = "") -> Markup:
    """Render a Markdown text as the parts of a page.

    If `within` is given, the text is a section of a page. It then gets no top heading, its other headings are a
    level lower, and their anchors begin with `within`.
    """
    tokens = _MARKDOWN.parse(text)
    left_out: set[int] = set()
    for index, token in enumerate(tokens):
        if within and token.type == "heading_open" and token.tag == "h1":
            left_out |= {index, index + 1, index + 2}
        elif token.type == "thead_open":
            end = next(i for i in range(index, len(tokens)) if tokens[i].type == "thead_close")
            if not any(cell.content for cell in tokens[index:end]):
                left_out.update(range(index, end + 1))
    shown = [token for index, token in enumerate(tokens) if index not in left_out]
    return Markup(_MARKDOWN.renderer.render(shown, _MARKDOWN.options, {"within": within}))


class _ManualHtml(RendererHTML):
    """Renders tokens of Markdown, each kind by the method of its name."""

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        # Sphinx directives are only for the manual as a book.
        return "" if tokens[idx].info.startswith("{") else self.code_block(tokens, idx)

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return Markup('<pre tabindex="0">{}</pre>').format(tokens[idx].content.rstrip())

    def image(self, *_: Any) -> str:
        return ""

    def heading_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        opening, text, closing = tokens[idx : idx + 3]
        level, name = int(opening.tag[1]), anchor(text.content)
        if env["within"]:
            level, name = level + 1, f"{env['within']}-{name}"
        opening.tag = closing.tag = f"h{min(level, 3)}"
        # The title gets no anchor, because another page may use the same name for a section.
        return Markup("<h1>") if level == 1 else Markup('<{} id="{}">').format(opening.tag, name)

    def table_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        has_head = tokens[idx + 1].type == "thead_open"
        label = "".join(part.content for part in tokens[idx + 4].children or ()) if has_head else "Facts"
        return Markup('<div class="scroll" role="group" aria-label="{}" tabindex="0"><table class="table">').format(
            label
        )

    def table_close(self, *_: Any) -> str:
        return "</table></div>"

    def th_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return '<th scope="col">' if tokens[idx + 1].content else "<td>"

    def th_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return "</th>" if tokens[idx - 1].content else "</td>"

    def td_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return '<th scope="row">' if tokens[idx - 1].type == "tr_open" else "<td>"

    def td_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return "</th>" if tokens[idx - 3].type == "tr_open" else "</td>"

    def link_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        address = _address(tokens[idx])
        return Markup('<a href="{}">').format(address) if address else ""

    def link_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        opening = next(token for token in reversed(tokens[:idx]) if token.type == "link_open")
        return "</a>" if _address(opening) else ""


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_ManualHtml).enable("table")


def _address(link: Token) -> str:
    """Return the address of what a link leads to in the manual, or "" if it leads elsewhere."""
    page = _PAGE.fullmatch(str(link.attrs["href"]))
    if page is None or (page[1] and not (MANUAL / f"{page[1]}.md").is_file()):
        return ""
    return f"/help/{page[1]}{page[2] or ''}" if page[1] else page[2] or ""


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as forges of code build it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def list_pages() -> list[str]:
    """Return the names of the manual's pages, without their ending, in the order in which the first links them."""
    first = (MANUAL / "index.md").read_text(encoding="utf-8")
    return ["index", *dict.fromkeys(re.findall(r"\]\(([a-z]+)\.md\)", first))]


_ABOUT = "about"


def help_routes() -> APIRouter:
    """Build the routes of the manual and of the page about StepSight."""
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(RequiresRight())])

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
    pages = [(page, _title(page)) for page in names]
    return f"{_title(name)}, manual", render("help/page.html", pages=pages, here=name, content=content)


@cache
def _title(name: str) -> str:
    with (MANUAL / f"{name}.md").open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()
