"""Escaping untrusted text for HTML templates, Markdown, and CSV cells that a spreadsheet must not evaluate."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

# Where a cell may begin: at the start of a text, and after any separator of cells or rows other than the comma,
# since with those a quote protects only the first cell of a row.
_START = r"(?<![^;\t\r\n])"
# Invisible characters that a program may skip before a sign: white space, control and format characters (Unicode's
# category Cf), fillers, and variation selectors.
_UNSEEN = (
    r"[^\S\t\r\n]|[\0-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    r"\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# The signs that begin a formula, with their small, full-width, superscript and subscript variants.
_SIGNS = r"[=+\-@⁼₌⩵⩶﹦＝⁺₊﬩﹢＋﹣－﹫＠]"
_FORMULA = rf"""(?=(?:['"]|{_UNSEEN})*{_SIGNS})"""
_UNMARKED, _MARKED = re.compile(_START + _FORMULA), re.compile(_START + "'" + _FORMULA)

# Brackets alone, as in intervals, are not a link.
_MARKDOWN = re.compile(r"[\\|*_`<~]|\](?=\s*[(\[:])")

BYTE_ORDER_MARK = "\ufeff"
"""The beginning of a CSV file. Without it, Excel reads UTF-8 as the legacy encoding of its locale."""


def inert(text: str) -> str:
    """Return the text as a CSV cell, with `'` before anything that a spreadsheet would take for a formula, even if
    it splits cells at semicolons or tabs. `plain` restores the text."""
    return _UNMARKED.sub("'", text)


def plain(cell: str) -> str:
    """Return the text of a CSV cell that `inert` returned."""
    return _MARKED.sub("", cell)


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, with all white space reduced to single spaces: it is neither emphasised nor linked,
    and holds no picture and no markup."""
    return " ".join(_MARKDOWN.sub(r"\\\g<0>", text).split())


def csv_text(rows: Iterable[Sequence[object]], line_end: str = "\r\n", *, begins: bool = True) -> str:
    """Return rows as the text of a CSV file or, unless it `begins` the file, of a later part of one.

    Every CSV file is written by this function. It begins with `BYTE_ORDER_MARK`. Texts are quoted and go through
    `inert`, numbers do not, and a missing value is an empty text.
    """
    lines = io.StringIO(BYTE_ORDER_MARK if begins else "")
    lines.seek(0, io.SEEK_END)
    writer = csv.writer(lines, quoting=csv.QUOTE_NONNUMERIC, lineterminator=line_end)
    cells = _InertCells()
    writer.writerows([cells[value] if isinstance(value, str) else value for value in row] for row in rows)
    return lines.getvalue()


class _InertCells(dict[str, str]):
    """Texts and their inert forms. Most texts of a table occur in many of its rows."""

    def __missing__(self, text: str) -> str:
        cell = self[text] = inert(text)
        return cell


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
