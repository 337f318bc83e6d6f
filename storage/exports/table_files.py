"""Writing tables and traces to files while holding only a few rows in memory.

Rows and pandas frames become CSV, Parquet or JSON Lines. Traces are written in the plain format.
"""

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from stepsight.core.arrays import DIGITS
from stepsight.core.errors import UserError
from stepsight.core.escaping import csv_text
from stepsight.core.files.arrow import load_pyarrow
from stepsight.core.files.jsonl import format_trace
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import trace_batches

if TYPE_CHECKING:
    # Not loaded to write rows.
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

# The rows held in memory, and in a row group of Parquet.
_PART = 5_000


def table_parts(columns: Columns, rows: Iterable[Row], format: str) -> Iterator[bytes]:
    """Return the content of a file with these rows, in chunks. Each row has the keys of `columns`, in order.

    CSV cells are escaped so that a spreadsheet never interprets them as formulas (`core.escaping`). An empty cell
    becomes null in JSON Lines. Raises `UserError` immediately if the format is unknown, or if it is Parquet and
    pyarrow is missing.
    """
    writers: dict[str, Callable[[Columns, Iterable[Row]], Iterator[bytes]]]
    writers = {"csv": _csv, "parquet": _parquet, "jsonl": _jsonl}
    _check_format(format)
    return writers[format](columns, rows)


def frame_parts(frames: "Iterable[pd.DataFrame]", format: str) -> Iterator[bytes]:
    """Return, in chunks, the content of a file with the rows of one or more frames that have the same columns.

    Scores have single precision and are rounded to `DIGITS` decimals, except in Parquet, from which pandas restores
    the original frames. Raises `UserError` in the same cases as `table_parts`.
    """
    writers = {"csv": _frames_csv, "parquet": _frames_parquet, "jsonl": _frames_jsonl}
    _check_format(format)
    return writers[format](frames)


def plain_parquet_parts(frames: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
    """Like `frame_parts` for Parquet, but with categorical columns as plain text, which every Parquet reader
    supports."""
    load_pyarrow()
    return _frames_parquet(frames, plain=True)


def trace_lines(store: Store, trace_ids: Sequence[int], format: str = TRACE_FORMATS[0]) -> Iterator[bytes]:
    """Yield JSON Lines with the given traces and their gold labels.

    `format` is one of `TRACE_FORMATS`. `stepsight import` reads each back under the same name.
    """
    write = format_trace if format == TRACE_FORMATS[0] else _stepwise
    for batch in trace_batches(store, trace_ids):
        rows = (write(trace) for trace in batch)
        yield "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


def _stepwise(trace: Trace) -> Row:
    """Return a trace as TRL's stepwise supervision: its shares if it has any, and otherwise its validities."""
    labels = [step.share if trace.has_shares else step.valid for step in trace.steps]
    return {"prompt": trace.problem, "completions": [step.text for step in trace.steps], "labels": labels}


def _check_format(format: str) -> None:
    if format not in TABLE_FORMATS:
        raise UserError(f"There is no format {format!r:.40} of tables.", f"Expected {', '.join(TABLE_FORMATS)}.")
    if format == "parquet":
        load_pyarrow()


def _csv(columns: Columns, rows: Iterable[Row]) -> Iterator[bytes]:
    yield csv_text([tuple(columns)]).encode()
    for part in _parts(rows):
        yield csv_text((tuple(row.values()) for row in part), begins=False).encode()


def _jsonl(columns: Columns, rows: Iterable[Row]) -> Iterator[bytes]:
    for part in _parts(rows):
        yield "".join(f"{json.dumps(row, ensure_ascii=False, allow_nan=False)}\n" for row in part).encode()


def _parquet(columns: Columns, rows: Iterable[Row]) -> Iterator[bytes]:
    arrow = load_pyarrow()
    kinds = {str: arrow.string(), int: arrow.int32(), float: arrow.float64(), list: arrow.list_(arrow.string())}
    kinds[list[float]] = arrow.list_(arrow.float64())
    schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    sink = _Sink()
    with arrow.parquet.ParquetWriter(arrow.PythonFile(sink, mode="w"), schema) as writer:
        for part in _parts(rows):
            writer.write_table(arrow.Table.from_pylist(part, schema=schema))
            yield sink.take()
    yield sink.take()


def _frames_csv(frames: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
    for number, frame in enumerate(frames):
        if not number:
            yield csv_text([tuple(frame)]).encode()
        columns = [_cells(_rounded(frame[name])) for name in frame]
        yield csv_text(zip(*columns, strict=True), begins=False).encode()


def _cells(column: "pd.Series[Any]") -> list[object]:
    """Return the cells of a column, in which None stands for what is missing."""
    return column.astype(object).where(column.notna(), None).tolist()


def _rounded(column: "pd.Series[Any]") -> "pd.Series[Any]":
    return column.astype("float64").round(DIGITS) if column.dtype == "float32" else column


def _frames_jsonl(frames: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
    for frame in (one for one in frames if len(one)):
        lines = frame.apply(_rounded).to_json(orient="records", lines=True, double_precision=15, force_ascii=False)
        # pandas escapes every slash.
        yield lines.replace("\\/", "/").encode()


def _frames_parquet(frames: "Iterable[pd.DataFrame]", *, plain: bool = False) -> Iterator[bytes]:
    arrow = load_pyarrow()
    sink, writer = _Sink(), None
    for frame in frames:
        table = arrow.Table.from_pandas(frame, preserve_index=False)
        if writer is None:
            # pandas makes the indices of categories as wide as one frame needs; those of the file suffice for any.
            wide = arrow.string() if plain else arrow.dictionary(arrow.int32(), arrow.string())
            kinds = [wide if arrow.types.is_dictionary(field.type) else field.type for field in table.schema]
            about = None if plain else table.schema.metadata
            schema = arrow.schema(list(zip(table.column_names, kinds, strict=True)), about)
            writer = arrow.parquet.ParquetWriter(arrow.PythonFile(sink, mode="w"), schema)
        writer.write_table(table.cast(schema))
        yield sink.take()
    if writer is not None:
        writer.close()
        yield sink.take()


def _parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    source = iter(rows)
    while part := list(islice(source, _PART)):
        yield part


class _Sink(io.RawIOBase):
    """A write-only file whose content can be taken out in chunks while it is being written."""

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
        """Return the bytes written since the last call."""
        taken = bytes(self._waiting)
        self._waiting.clear()
        return taken
