"""Pages and parts of pages as HTML, from the templates of `app/web/templates`.

Every template knows `PAGES` and `MARKS`, and the filters `maths`, which is `app.web.text.text_html`, and
`counted`.
"""

from pathlib import Path
from typing import Any

from markupsafe import Markup

from stepsight.app.web.pages import PAGES
from stepsight.app.web.text import MARKS, counted, text_html
from stepsight.core.templates import load_templates

_TEMPLATES = load_templates(Path(__file__).parent / "templates")
_TEMPLATES.globals.update(PAGES=PAGES, MARKS=MARKS)
_TEMPLATES.filters.update(maths=text_html, counted=counted)


def render(template: str, /, **values: Any) -> Markup:
    """A template such as `relabel/campaign.html` with these values: texts are escaped, `Markup` is not."""
    return Markup(_TEMPLATES.get_template(template).render(values))


def macro(template: str, name: str, /, *values: Any, **named: Any) -> Markup:
    """One macro of a template, such as the bar of `judged.html`, with these values."""
    return Markup(getattr(_TEMPLATES.get_template(template).module, name)(*values, **named))
