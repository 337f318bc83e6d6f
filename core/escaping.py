"""Escaping of untrusted text: CSV cells that no spreadsheet calculates, and HTML templates."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

# Characters that begin a formula in a spreadsheet, even after white space.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def inert(text: str) -> str:
    """The text as a CSV cell, with a `'` before it if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text


def cell(value: object) -> object:
    """A value as a CSV cell: None is an empty one, a number stays a number, and a text is made `inert`."""
    return inert(value) if isinstance(value, str) else value


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """The rows as a CSV text, with each value as `cell` gives it."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\r\n").writerows([cell(value) for value in row] for row in rows)
    return lines.getvalue()


def load_templates(folder: Path) -> Environment:
    """The templates of a folder, which escape values automatically. A value that was not passed raises
    `jinja2.UndefinedError` instead of leaving a gap."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
