"""Escaping untrusted text for HTML templates, and for CSV cells that a spreadsheet must not evaluate."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

# Where a cell may begin: at the start of a text, and after what separates cells and rows where the separator is not
# the comma, since a quote protects only the first cell of a row there. Spreadsheets take full-width signs for the
# others, and skip white space before them.
_START = r"(?<![^;\t\r\n])"
_FORMULA = r"""(?=(?:['"]|[^\S\t\r\n])*[=+\-@＝＋－＠])"""
_UNMARKED, _MARKED = re.compile(_START + _FORMULA), re.compile(_START + "'" + _FORMULA)


def inert(text: str) -> str:
    """Return the text as a CSV cell, with `'` before anything that a spreadsheet would take for a formula, even if
    it splits cells at semicolons or tabs. `plain` restores the text."""
    return _UNMARKED.sub("'", text)


def plain(cell: str) -> str:
    """Return the text of a CSV cell that `inert` returned."""
    return _MARKED.sub("", cell)


def cell(value: object) -> object:
    """Return a value as a CSV cell: text is passed through `inert`, and any other value is returned unchanged."""
    return inert(value) if isinstance(value, str) else value


def csv_text(rows: Iterable[Sequence[object]], line_end: str = "\r\n") -> str:
    """Return the rows as CSV text, with each value passed through `cell`. Texts are quoted, numbers are not."""
    lines = io.StringIO()
    writer = csv.writer(lines, quoting=csv.QUOTE_NONNUMERIC, lineterminator=line_end)
    writer.writerows([cell(value) for value in row] for row in rows)
    return lines.getvalue()


def breakable(name: str) -> Markup:
    """Return a name as HTML in which lines may be broken after punctuation, but not within a number."""
    return Markup("<wbr>").join(re.split(r"(?:(?<=[:_/-])|(?<=\.)(?!\d))(?=\w)", name))


def load_templates(folder: Path) -> Environment:
    """Return a Jinja environment for the templates in a folder, with HTML escaping of all values and the filter
    `breakable`. A template that uses an undefined variable raises `jinja2.UndefinedError` instead of rendering a
    gap.

    Templates are read once. Checking for a changed file at each of the thousands of macros of a long page would
    take a sixth of the rendering time.
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
