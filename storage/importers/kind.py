"""A kind of file: how its rows are read, and how one becomes a trace."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from core.jsonl import read_rows
from core.trace import Trace

Row = dict[str, Any]
Rows = Iterator[tuple[str, Row]]


def json_lines(lines: Iterable[bytes], name: str) -> Rows:
    """(where, row) of each line of a JSON Lines file, `where` being such as `file.jsonl line 3`."""
    for number, row in read_rows(lines, name):
        yield f"{name} line {number}", row


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    `fields` tell its rows from those of other kinds. `parse(row, where)` raises `UserError` that starts with
    `where`. `dataset` is the name a dataset gets where the user gives none; None means that of the file.
    """

    name: str
    title: str
    fields: frozenset[str]
    parse: Callable[[Row, str], Trace]
    dataset: str | None = None
    rows: Callable[[Iterable[bytes], str], Rows] = json_lines
