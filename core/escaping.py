"""Escaping of what others wrote: CSV cells that a spreadsheet shows and never calculates, and templates of HTML."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

# What begins a formula in a spreadsheet, at once or after white space.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def inert(text: str) -> str:
    """The text as a cell that is shown and never calculated: with a `'` before what would be a formula."""
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text


def cell(value: object) -> object:
    """A value as a cell of a CSV file. None is an empty cell, a number is itself."""
    return inert(value) if isinstance(value, str) else value


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """The rows as CSV. None is an empty cell, a number is itself, and a text that would be a formula gets a `'`."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\r\n").writerows([cell(value) for value in row] for row in rows)
    return lines.getvalue()


def load_templates(folder: Path) -> Environment:
    """The templates of a folder. Values are escaped by themselves; a name that no value was passed for raises
    `jinja2.UndefinedError` instead of leaving a gap."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
