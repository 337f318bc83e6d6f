"""Writing tables and traces to files while holding only a few rows in memory.

Rows and pandas frames become CSV, Parquet or JSON Lines. Traces are written in the plain format.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from stepsight.core.arrays import DIGITS
from stepsight.core.errors import UserError
from stepsight.core.escaping import csv_text
from stepsight.core.files.arrow import load_pyarrow
from stepsight.storage.database.store import Store
from stepsight.storage.importers import ALIASES, KINDS
from stepsight.storage.traces.queries import trace_batches

if TYPE_CHECKING:
    # This import is not needed to write rows.
    import pandas as pd

Row = Mapping[str, Any]
Columns = Mapping[str, type]
"""The type of each column: `str`, `int` or `float`, in Parquet also `list` for texts. Every cell may be empty."""

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/jsonl",
}
TABLE_FORMATS = tuple(MEDIA_TYPES)
TRACE_FORMATS = ("jsonl", "stepwise")

# The number of rows held in memory, and in a Parquet row group.
_PART = 5_000


def table_parts(columns: Columns, rows: Iterable[Row], format: str) -> Iterator[bytes]:
    """Return the content of a file with these rows, in chunks. Each row has the keys of `columns`, in order.

    CSV cells are escaped so that a spreadsheet never interprets them as formulas (`core.escaping`). An empty cell
    becomes null in JSON Lines. Raises `UserError` immediately if the format is unknown, or if it is Parquet and
    pyarrow is missing.
    """
    _check_format(format)
    if format == "parquet":
        return _parquet(_arrow_rows(columns, rows))
    return _text(((tuple(columns), (row.values() for row in part)) for part in _parts(rows)), format, columns)


def frame_parts(frames: "Iterable[pd.DataFrame]", format: str, *, plain: bool = False) -> Iterator[bytes]:
    """Return, in chunks, the content of a file with the rows of one or more frames that have the same columns.

    Scores have single precision and are rounded to `DIGITS` decimals, except in Parquet. From that, pandas restores
    the original frames, unless it is `plain`: categorical columns are then text, which every reader supports.
    Raises `UserError` in the same cases as `table_parts`.
    """
    _check_format(format)
    if format == "parquet":
        return _parquet(_arrow_frames(frames, plain=plain))
    cells = (
        (list(map(str, frame)), zip(*(_cells(frame[name]) for name in frame), strict=True)) for frame in frames
    )
    return _text(cells, format)


def trace_lines(store: Store, trace_ids: Sequence[int], format: str = TRACE_FORMATS[0]) -> Iterator[bytes]:
    """Yield JSON Lines with the given traces and their gold labels.

    `format` is one of `TRACE_FORMATS`. `stepsight import` reads each back under the same name.
    """
    write = KINDS[ALIASES.get(format, format)].write
    assert write is not None
    for batch in trace_batches(store, trace_ids):
        yield _json_lines(write(trace) for trace in batch)


def _check_format(format: str) -> None:
    if format not in TABLE_FORMATS:
        raise UserError(f"There is no format {format!r:.40} of tables.", f"Expected {', '.join(TABLE_FORMATS)}.")
    if format == "parquet":
        load_pyarrow()


def _text(
    parts: Iterable[tuple[Sequence[str], Iterable[Iterable[object]]]], format: str, names: Iterable[str] = ()
) -> Iterator[bytes]:
    """Yield CSV or JSON Lines. Each part has the names of the columns and the cells of its rows; `names` are those
    of a table without parts."""
    begins = True
    for columns, rows in parts:
        if format == "csv":
            head = [columns] if begins else []
            yield csv_text(chain(head, map(tuple, rows)), begins=begins).encode()
        else:
            yield _json_lines(dict(zip(columns, row, strict=True)) for row in rows)
        begins = False
    if begins and format == "csv":
        yield csv_text([tuple(names)]).encode()


def _json_lines(rows: Iterable[Row]) -> bytes:
    return "".join(f"{json.dumps(row, ensure_ascii=False, allow_nan=False)}\n" for row in rows).encode()


def _cells(column: "pd.Series[Any]") -> list[object]:
    rounded = column.astype("float64").round(DIGITS) if column.dtype == "float32" else column
    return rounded.astype(object).where(column.notna(), None).tolist()


def _parquet(tables: Iterable[Any]) -> Iterator[bytes]:
    arrow = load_pyarrow()
    tables = iter(tables)
    first = next(tables)
    # A file, since Parquet must know how many bytes came before; its end is what the reader has yet to receive.
    with TemporaryFile() as file, arrow.PythonFile(file, mode="w") as sink:
        sent = 0
        with arrow.parquet.ParquetWriter(sink, first.schema) as writer:
            for table in chain([first], tables):
                # Some readers fail on a row group without rows.
                if table.num_rows:
                    writer.write_table(table)
                file.seek(sent)
                yield file.read()
                sent = file.tell()
        file.seek(sent)
        yield file.read()


def _arrow_rows(columns: Columns, rows: Iterable[Row]) -> Iterator[Any]:
    arrow = load_pyarrow()
    kinds = {str: arrow.string(), int: arrow.int32(), float: arrow.float64(), list: arrow.list_(arrow.string())}
    kinds[list[float]] = arrow.list_(arrow.float64())
    schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    yield schema.empty_table()
    for part in _parts(rows):
        yield arrow.Table.from_pylist(part, schema=schema)


def _arrow_frames(frames: "Iterable[pd.DataFrame]", *, plain: bool) -> Iterator[Any]:
    arrow = load_pyarrow()
    schema = None
    for frame in frames:
        table = arrow.Table.from_pandas(frame, preserve_index=False)
        if schema is None:
            # pandas makes the indices of categories as wide as one frame needs; those of the file suffice for all.
            wide = arrow.string() if plain else arrow.dictionary(arrow.int32(), arrow.string())
            kinds = [wide if arrow.types.is_dictionary(field.type) else field.type for field in table.schema]
            about = None if plain else table.schema.metadata
            schema = arrow.schema(list(zip(table.column_names, kinds, strict=True)), about)
        yield table.cast(schema)


def _parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    source = iter(rows)
    while part := list(islice(source, _PART)):
        yield part
