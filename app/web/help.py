"""The manual under `/help`, and the page about StepSight. They contain nothing from the store, so everybody may
open them, even before logging in.

The manual is the Markdown of `docs`, as far as it is used there: headings, paragraphs, lists, tables, code that is
fenced or indented, bold and italic words, and links. Pictures and tables of contents are left out, and a link that
leaves the manual keeps only its text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse
from markupsafe import Markup, escape

from stepsight.app.access.rights import RequiresRight
from stepsight.app.web.html import macro, plain_page, render
from stepsight.storage.database.store import NotFoundError

MANUAL = Path(str(files("stepsight"))).joinpath("docs")
"""The folder of the manual, which is shipped with the package."""

_TEMPLATE = "help/parts.html"
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\[\]]+)\]\(([^()\s]+)\)")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_ITALIC = re.compile(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])")
_PAGE = re.compile(r"(?:([a-z-]+)\.md)?(#[\w-]+)?")
_ITEM = re.compile(r"(?:[-*]|(?<!\d)\d+\.) ")
_RULE = re.compile(r"\|[:| ]*-[-:| ]*\|")
# A private-use character stands for code, whose signs are no Markdown.
_PLACE = "\ue000"


def document_html(text: str, within: str = "") -> Markup:
    """Render a Markdown text as the parts of a page.

    If `within` is given, the text is a section of a page. It then gets no top heading, its other headings are a
    level lower, and their anchors begin with `within`.
    """
    return Markup().join(_parts(text.splitlines(), within))


def list_pages() -> list[str]:
    """Return the names of the manual's pages, without their ending, in the order in which the first links them."""
    first = (MANUAL / "index.md").read_text(encoding="utf-8")
    return ["index", *dict.fromkeys(re.findall(r"\]\(([a-z]+)\.md\)", first))]


def _parts(lines: Sequence[str], within: str) -> Iterator[Markup]:
    at = 0
    while at < len(lines):
        line = lines[at]
        end = at + 1
        if not line.strip() or line.startswith("![") or (within and line.startswith("# ")):
            pass
        elif line.startswith("```"):
            end = next(i for i in range(end, len(lines)) if lines[i].startswith("```")) + 1
            if not line.startswith("```{"):
                yield macro(_TEMPLATE, "code", "\n".join(lines[at + 1 : end - 1]))
        elif line.startswith("#"):
            yield _heading(line, within)
        elif line.startswith("|"):
            end = _while(lines, end, lambda text: text.startswith("|"))
            yield _table(lines[at:end])
        elif line.startswith("    "):
            end = _while(lines, end, lambda text: text.startswith("    ") or not text)
            yield macro(_TEMPLATE, "code", "\n".join(text[4:] for text in lines[at:end]).rstrip())
        elif _ITEM.match(line):
            end = _while(lines, end, lambda text: bool(_ITEM.match(text)) or text.startswith("  "))
            yield _list(lines[at:end])
        else:
            end = _while(lines, end, lambda text: bool(text.strip()) and not text.startswith(("#", "|", "```")))
            yield macro(_TEMPLATE, "paragraph", _inline(" ".join(lines[at:end])))
        at = end


def _while(lines: Sequence[str], start: int, goes_on: Callable[[str], bool]) -> int:
    return next((i for i in range(start, len(lines)) if not goes_on(lines[i])), len(lines))


def _heading(line: str, within: str) -> Markup:
    text = line.lstrip("#")
    level, name = len(line) - len(text), anchor(text)
    if within:
        level, name = level + 1, f"{within}-{name}"
    return macro(_TEMPLATE, "heading", level, name, _inline(text.strip()))


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as forges of code build it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _table(lines: Sequence[str]) -> Markup:
    rows = [
        [_inline(cell.strip()) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        for line in lines
        if not _RULE.fullmatch(line.strip())
    ]
    return macro(_TEMPLATE, "table", rows[0] if any(rows[0]) else [], rows[1:])


def _list(lines: Sequence[str]) -> Markup:
    items: list[str] = []
    for line in lines:
        if _ITEM.match(line):
            items.append(_ITEM.sub("", line, count=1))
        else:
            items[-1] += f" {line.strip()}"
    return macro(_TEMPLATE, "items", [_inline(item) for item in items], lines[0][0].isdigit())


def _inline(text: str) -> Markup:
    """Render the words, code and links of a text. Everything else in it is escaped."""
    code = [f"<code>{escape(span)}</code>" for span in _CODE.findall(text)]
    html = str(escape(_CODE.sub(_PLACE, text)))
    html = _LINK.sub(_link, html)
    html = _BOLD.sub(r"<b>\1</b>", html)
    html = _ITALIC.sub(r"<i>\1</i>", html)
    pieces = html.split(_PLACE)
    return Markup(pieces[0] + "".join(element + piece for element, piece in zip(code, pieces[1:], strict=True)))


def _link(match: re.Match[str]) -> str:
    page = _PAGE.fullmatch(match[2])
    if page is None or (page[1] and not (MANUAL / f"{page[1]}.md").is_file()):
        return match[1]
    return f'<a href="{f"/help/{page[1]}" if page[1] else ""}{page[2] or ""}">{match[1]}</a>'


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
