"""Escaping untrusted text for HTML templates, and for CSV cells that a spreadsheet must not evaluate."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

# Characters that begin a formula in a spreadsheet, even after white space.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def inert(text: str) -> str:
    """Return the text as a CSV cell, prefixed with `'` if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text


def cell(value: object) -> object:
    """Return a value as a CSV cell: text is passed through `inert`, and any other value is returned unchanged."""
    return inert(value) if isinstance(value, str) else value


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return the rows as CSV text, with each value passed through `cell`."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\r\n").writerows([cell(value) for value in row] for row in rows)
    return lines.getvalue()


def breakable(name: str) -> Markup:
    """Return a name as HTML in which lines may be broken after punctuation, but not within a number."""
    return Markup("<wbr>").join(re.split(r"(?:(?<=[:_/-])|(?<=\.)(?!\d))(?=\w)", name))


def load_templates(folder: Path) -> Environment:
    """Return a Jinja environment for the templates in a folder, with HTML escaping of all values and the filter
    `breakable`. A template that uses an undefined variable raises `jinja2.UndefinedError` instead of rendering a
    gap.

    Templates are read once. To look for a changed file at each of the thousands of macros of a long page would take
    a sixth of its time.
    """
    templates = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["breakable"] = breakable
    return templates
