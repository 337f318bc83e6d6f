"""Rows as CSV that a spreadsheet shows and never calculates."""

import csv
import io
from collections.abc import Iterable, Sequence

from stepsight.core.files import cell


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """The rows as CSV. None is an empty cell, a number is itself, and a text that would be a formula gets a `'`."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\r\n").writerows([cell(value) for value in row] for row in rows)
    return lines.getvalue()
