"""Rendering pages and parts of pages as HTML from the templates in `app/web/templates`.

Every template can use `API`, `PAGES`, `BUNDLES`, `MARKS`, `TERMS`, `VERDICT_WORDS` and `nonce()`, the attribute
`nonce` of a script within a page. The filters are `counted`, `duration`, `sentence`, `format_bytes`,
`maths` (`app.markup.text.text_html`), `markdown` (`app.markup.markdown.markdown_html`) and those of
`core.escaping.load_templates`.
"""

from pathlib import Path
from typing import Any

from markupsafe import Markup

from stepsight.app.access.current import script_nonce
from stepsight.app.access.rights import PAGES
from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.text import MARKS, TERMS, VERDICT_WORDS, counted, duration, sentence, text_html
from stepsight.app.web.bundles import ADDRESSES
from stepsight.core.escaping import load_templates
from stepsight.core.paths import format_bytes
from stepsight.core.scoring.client import API

_TEMPLATES = load_templates(Path(__file__).parent / "templates")
_TEMPLATES.globals.update(API=API, PAGES=PAGES, BUNDLES=ADDRESSES, nonce=script_nonce)
_TEMPLATES.globals.update(MARKS=MARKS, TERMS=TERMS, VERDICT_WORDS=VERDICT_WORDS)
_TEMPLATES.filters.update(maths=text_html, markdown=markdown_html, counted=counted, format_bytes=format_bytes)
_TEMPLATES.filters.update(sentence=sentence, duration=duration)

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
