"""Rendering pages and parts of pages as HTML from the templates in `app/web/templates`.

Every template can use `API`, `PAGES`, `BUNDLES`, `MARKS`, `TERMS`, `VERDICT_WORDS`, `current_request()`, and
`nonce()`, the attribute `nonce` of a script within a page. The filters are `counted`, `duration`, `sentence`,
`format_bytes`, `maths` (`app.markup.text.text_html`), `plain_text`, `excerpt`, `without_number`, `markdown`
(`app.markup.markdown.markdown_html`) and those of `core.escaping.load_templates`.
"""

import hashlib
import posixpath
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from markupsafe import Markup

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.marking import excerpt, without_number
from stepsight.app.markup.text import MARKS, TERMS, VERDICT_WORDS, duration, plain_text, sentence, text_html
from stepsight.app.web.access import PAGES, current_request, script_nonce
from stepsight.core.errors import counted
from stepsight.core.escaping import load_templates
from stepsight.core.paths import asset, format_bytes
from stepsight.core.scoring.client import API

SHEETS = (
    "findings", "style", "changes", "login", "score", "jobs", "data", "evaluators", "api", "results", "evidence",
    "browse", "annotate", "agreement", "adjudicate", "disputes",
)  # fmt: skip
"""The style sheets in order: first those shared by all pages, then those of single pages, which may refine them.
Each styles only its own elements."""

_IMPORT = re.compile(r'^import (?:\{\s*(\w+(?:,\s*\w+)*),?\s*\} from )?"(\.[\w./-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:const (\w+) =|class (\w+))", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_FOR_A_YEAR = "public, max-age=31536000, immutable"


def bundle(*names: str) -> str:
    """Bundle modules of `assets/web/js`, such as `score/score.js`, and everything that they import, into one
    script."""
    return '"use strict";\nconst modules = {};\n' + "".join(_order_modules(names, set()))


def read_web(*place: str) -> str:
    """Return the text of a file in `assets/web`."""
    return asset("web", *place).read_text(encoding="utf-8")


def _order_modules(names: tuple[str, ...], met: set[str]) -> list[str]:
    parts = []
    for name in names:
        if name in met:
            continue
        met.add(name)
        text = read_web("js", *name.split("/"))
        parts += _order_modules(tuple(_imported_module(name, match) for match in _IMPORT.finditer(text)), met)
        text = _IMPORT.sub(partial(_destructure_import, name), text)
        text = _EXPORT.sub(partial(_assignment, name), text)
        left = _LEFT.search(text)
        if left:
            # A single line of this kind would keep all scripts from running.
            raise ValueError(f"{name}: {left[0]!r} is not understood, see the forms in {__name__}.")
        parts.append(f'modules["{name}"] = {{}};\n{{\n{text}}}\n')
    return parts


def _imported_module(module: str, match: re.Match[str]) -> str:
    """Return the name of the module that an import statement in `module` refers to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(module), match[2]))


def _destructure_import(module: str, match: re.Match[str]) -> str:
    return f'const {{{match[1]}}} = modules["{_imported_module(module, match)}"];' if match[1] else ""


def _assignment(module: str, match: re.Match[str]) -> str:
    constant, class_ = match.groups()
    name = constant or class_
    return f'const {name} = modules["{module}"].{name} ={f" class {class_}" if class_ else ""}'


_FILES = {
    "pages.css": ("".join(read_web(f"{name}.css") for name in SHEETS), "text/css"),
    "pages.js": (bundle("main.js"), "text/javascript"),
}


ADDRESSES = {
    name: f"/stepsight/{name}?v={hashlib.sha256(text.encode()).hexdigest()[:12]}"
    for name, (text, _) in _FILES.items()
}
"""The addresses of the files for the pages; new content has a new address."""


def add_files(application: FastAPI) -> None:
    """Serve the bundles, and every file in `assets/web`, under `/stepsight`. The icon is where browsers look for
    it, too."""
    for name in _FILES:
        application.add_api_route(f"/stepsight/{name}", _serve(name), methods=["GET"], include_in_schema=False)
    application.add_api_route("/favicon.ico", _icon, methods=["GET"], include_in_schema=False)
    application.mount("/stepsight", FreshFiles(directory=asset("web")), name="stepsight")


async def _icon() -> Response:
    return FileResponse(asset("web", "icon.svg"))


def _serve(name: str) -> Callable[[], Awaitable[Response]]:
    text, kind = _FILES[name]

    async def file() -> Response:
        return Response(text, media_type=kind, headers={"cache-control": _FOR_A_YEAR})

    return file


class FreshFiles(StaticFiles):
    """Static files that browsers cache but revalidate on every use, so that no page mixes two versions after an
    upgrade."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


_TEMPLATES = load_templates(Path(__file__).parent / "templates")
_TEMPLATES.globals.update(API=API, PAGES=PAGES, BUNDLES=ADDRESSES)
_TEMPLATES.globals.update(nonce=script_nonce, current_request=current_request)
_TEMPLATES.globals.update(MARKS=MARKS, TERMS=TERMS, VERDICT_WORDS=VERDICT_WORDS)
_TEMPLATES.filters.update(maths=text_html, markdown=markdown_html, counted=counted, format_bytes=format_bytes)
_TEMPLATES.filters.update(sentence=sentence, duration=duration, plain_text=plain_text, excerpt=excerpt)
_TEMPLATES.filters.update(without_number=without_number)

EMPTY_STORE = Markup('The store is empty. <a href="/data">Add data</a>')
"""The notice of a page that has nothing to show."""


def render(template: str, /, **values: Any) -> Markup:
    """Render a template such as `annotate/campaign.html` with these values. Text is escaped, `Markup` is not."""
    return Markup(_TEMPLATES.get_template(template).render(values))


def macro(template: str, name: str, /, *values: Any, **named: Any) -> Markup:
    """Render a single macro of a template, such as `bar` in `step_bars.html`, with these arguments."""
    return Markup(getattr(_TEMPLATES.get_template(template).module, name)(*values, **named))


def plain_page(title: str, body: str, here: str) -> Markup:
    """Render a whole page, in the frame that all pages share.

    `here` is the page's name if the page is among `PAGES`. `body` is HTML in which all text is already escaped.
    """
    formulas = 'class="math"' in body
    return render("page.html", title=title, body=Markup(body), here=here, formulas=formulas)
