"""Pages and parts of pages as HTML, from the templates of `app/web/templates`."""

from pathlib import Path
from typing import Any

from markupsafe import Markup

from stepsight.core.templates import load_templates

_TEMPLATES = load_templates(Path(__file__).parent / "templates")


def render(template: str, /, **values: Any) -> Markup:
    """A template such as `relabel/campaign.html` with these values: texts are escaped, `Markup` is not."""
    return Markup(_TEMPLATES.get_template(template).render(values))
