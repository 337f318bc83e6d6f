"""Tables as files: rows as CSV, Parquet or JSON Lines, a few in memory at a time."""

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files import csv_text
from stepsight.core.parquet import load_parquet

Row = Mapping[str, Any]
Columns = Mapping[str, type]
"""By column, what is in it: `str`, `int` or `float`. Every cell may be empty."""

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/jsonl",
}
TABLE_FORMATS = tuple(MEDIA_TYPES)

# Rows in memory, and of a row group of Parquet.
_PART = 5_000


def table_parts(columns: Columns, rows: Iterable[Row], format: str) -> Iterator[bytes]:
    """The bytes of a file with these rows, each of which has the keys of `columns` in their order.

    A spreadsheet calculates nothing of CSV (`core.files.csv_text`); an empty cell is null in JSON Lines. Raises
    `UserError` at once on another format, and on Parquet where pyarrow is missing.
    """
    writers: dict[str, Callable[[Columns, Iterable[Row]], Iterator[bytes]]]
    writers = {"csv": _csv, "parquet": _parquet, "jsonl": _jsonl}
    if format not in writers:
        raise UserError(f"There is no format {format!r:.40} of tables.", f"Expected {', '.join(writers)}.")
    if format == "parquet":
        load_parquet()
    return writers[format](columns, rows)


def _csv(columns: Columns, rows: Iterable[Row]) -> Iterator[bytes]:
    yield csv_text([tuple(columns)]).encode()
    for part in _parts(rows):
        yield csv_text([tuple(row.values()) for row in part]).encode()


def _jsonl(columns: Columns, rows: Iterable[Row]) -> Iterator[bytes]:
    for part in _parts(rows):
        yield "".join(f"{json.dumps(row, ensure_ascii=False, allow_nan=False)}\n" for row in part).encode()


def _parquet(columns: Columns, rows: Iterable[Row]) -> Iterator[bytes]:
    arrow, parquet = load_parquet()
    kinds = {str: arrow.string(), int: arrow.int32(), float: arrow.float64()}
    schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    sink = _Sink()
    with parquet.ParquetWriter(arrow.PythonFile(sink, mode="w"), schema) as writer:
        for part in _parts(rows):
            writer.write_table(arrow.Table.from_pylist(part, schema=schema))
            yield sink.take()
    yield sink.take()


def _parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    source = iter(rows)
    while part := list(islice(source, _PART)):
        yield part


class _Sink(io.RawIOBase):
    """A file that is written to its end only, and gives away what it holds."""

    def __init__(self) -> None:
        super().__init__()
        self._written = 0
        self._waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._waiting += data
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def take(self) -> bytes:
        """What was written since it was last taken."""
        taken = bytes(self._waiting)
        self._waiting.clear()
        return taken
