"""Reading the rows of CSV, Parquet and Arrow files, whose columns the user assigns (see `column_mapping`)."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.storage.importers.kind import OnBad, Rows

PARQUET = b"PAR1"
_ARROW_FILE, _ARROW_STREAM = b"ARROW1", b"\xff\xff\xff\xff"
_BATCH = 500
_LONGEST_CELL = 10_000_000
_SEPARATORS = ",;\t"


def csv_rows(lines: Iterable[bytes], name: str, on_bad: OnBad | None = None) -> Rows:
    """Yield (where, row) for each row of a CSV file after its header. Every value is text.

    The separator is a comma, a semicolon or a tab, whichever is most frequent in the header. Invalid UTF-8 and
    invalid CSV raise `UserError`, because nothing after them can be read. A row with more or fewer cells than the
    header is passed to `on_bad`. Without `on_bad`, it raises `UserError`.
    """
    texts = _decoded(lines, name)
    header = next(texts, "")
    separator = max(_SEPARATORS, key=header.count)
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(_chained(header, texts), delimiter=separator, strict=True)
    number = 0
    try:
        names = next(reader, [])
        _check_header(names, name)
        for cells in reader:
            if not cells:
                continue
            number += 1
            where = f"{name} row {number}"
            if len(cells) == len(names):
                yield where, dict(zip(names, cells, strict=True))
                continue
            error = UserError(
                f"{where}: {len(cells)} cells, the header has {len(names)}.", "Put texts with separators in quotes."
            )
            if on_bad is None:
                raise error
            on_bad(where, error, separator.join(cells).encode())
    except csv.Error as error:
        raise UserError(f"{name} row {number + 1}: not CSV ({error}).", "Save the table as CSV again.") from None


def parquet_rows(lines: Iterable[bytes], name: str, on_bad: OnBad | None = None) -> Rows:
    """Yield (where, row) for each row of a Parquet file. The file is held in memory as a whole.

    Raises `UserError` if the file is not Parquet or pyarrow is missing.
    """
    return table_rows(parquet_batches(io.BytesIO(b"".join(lines))), name, "Parquet")


def table_rows(batches: Iterable[Any], name: str, format: str) -> Rows:
    """Yield (where, row) for each row of the pyarrow `batches`, converting pyarrow's errors to `UserError`."""
    arrow, _ = load_parquet()
    number = 0
    try:
        for batch in batches:
            for row in batch.to_pylist():
                number += 1
                yield f"{name} row {number}", _plain(row)
    except (arrow.ArrowException, OSError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"{name}: not {format} ({reason}).", "Fetch the file again.") from None


def parquet_batches(file: Path | io.BytesIO) -> Iterator[Any]:
    """Yield the content of a Parquet file in batches of rows. Errors of pyarrow are passed on."""
    _, parquet = load_parquet()
    with parquet.ParquetFile(file) as content:
        yield from content.iter_batches(batch_size=_BATCH)


def arrow_batches(path: Path) -> Iterator[Any]:
    """Yield the content of an Arrow file in batches of rows. Errors of pyarrow are passed on. The file can be a
    stream, as written by `datasets`, or a file with an index at its end."""
    arrow, _ = load_parquet()
    with arrow.memory_map(str(path)) as content:
        if content.read(len(_ARROW_FILE)) == _ARROW_FILE:
            indexed = arrow.ipc.open_file(content)
            batches: Iterable[Any] = map(indexed.get_batch, range(indexed.num_record_batches))
        else:
            content.seek(0)
            batches = arrow.ipc.open_stream(content)
        for batch in batches:
            # pyarrow does not check by itself that offsets are within the batch: a damaged one could crash the
            # process.
            batch.validate(full=True)
            for start in range(0, batch.num_rows, _BATCH):
                yield batch.slice(start, _BATCH)


def is_arrow(beginning: bytes) -> bool:
    """True if `beginning`, the first bytes of a file, shows that it is an Arrow file."""
    return beginning.startswith((_ARROW_FILE, _ARROW_STREAM))


def load_parquet() -> tuple[Any, Any]:
    """Return the modules `pyarrow` and `pyarrow.parquet`. Raises `UserError` if they are not installed."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise UserError("Parquet needs pyarrow.", "Run: pip install 'stepsight[parquet]'") from None
    return pyarrow, pyarrow.parquet


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Convert a row to JSON types. Dates and similar values become text."""
    value: dict[str, Any] = json.loads(json.dumps(row, default=_text), parse_constant=_constant)
    return value


def _constant(name: str) -> float | None:
    """Return None for NaN, as pandas writes it, and a float for positive and negative infinity."""
    return None if name == "NaN" else float(name)


def _text(value: object) -> str:
    # Many programs write texts as binary.
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _decoded(lines: Iterable[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name} line {number}: byte {error.start + 1} is not UTF-8.", "Save the file as UTF-8."
            ) from None


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _check_header(names: list[str], name: str) -> None:
    if len(names) < 2:
        raise UserError(
            f"{name}: the first line is not the header of a table.", "Expected the names of the columns."
        )
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise UserError(f"{name}: the column {twice[0]!r:.60} is there twice.", "Give each a name of its own.")
