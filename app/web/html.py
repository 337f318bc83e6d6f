"""Pages and parts of pages as HTML, from the templates of `app/web/templates`, in the frame that all pages share.

Every template knows `API`, `PAGES`, `BUNDLES`, `MARKS`, `TERMS` and `VERDICT_WORDS`. Its filters are `counted`,
`format_bytes`, `maths` (`app.markup.text.text_html`) and `markdown` (`app.markup.markdown.markdown_html`).
"""

from pathlib import Path
from typing import Any

from markupsafe import Markup

from stepsight.app.access.rules import API, PAGES
from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.text import MARKS, TERMS, VERDICT_WORDS, counted, text_html
from stepsight.app.web.bundles import ADDRESSES
from stepsight.core.escaping import load_templates
from stepsight.core.paths import format_bytes

_TEMPLATES = load_templates(Path(__file__).parent / "templates")
_TEMPLATES.globals.update(API=API, PAGES=PAGES, BUNDLES=ADDRESSES)
_TEMPLATES.globals.update(MARKS=MARKS, TERMS=TERMS, VERDICT_WORDS=VERDICT_WORDS)
_TEMPLATES.filters.update(maths=text_html, markdown=markdown_html, counted=counted, format_bytes=format_bytes)

EMPTY_STORE = Markup('The store is empty. <a href="/data">Add data</a>')
"""The notice of a page that has nothing to show."""


def render(template: str, /, **values: Any) -> Markup:
    """A template such as `annotate/campaign.html` with these values: texts are escaped, `Markup` is not."""
    return Markup(_TEMPLATES.get_template(template).render(values))


def macro(template: str, name: str, /, *values: Any, **named: Any) -> Markup:
    """One macro of a template, such as the bar of `step_bars.html`, with these values."""
    return Markup(getattr(_TEMPLATES.get_template(template).module, name)(*values, **named))


def plain_page(title: str, body: str, here: str, tail: str = "") -> Markup:
    """A whole page in our frame that needs no Gradio; `here` is its name if it is one of `PAGES`. `body`, and
    `tail` behind everything else, are HTML with every text in them escaped already."""
    formulas = 'class="math"' in body
    return render("page.html", title=title, body=Markup(body), here=here, tail=Markup(tail), formulas=formulas)
