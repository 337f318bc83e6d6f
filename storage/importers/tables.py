"""Rows of CSV and Parquet, whose columns a person says the meaning of (see `columns`)."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.parquet import load_parquet
from stepsight.storage.importers.kind import OnBad, Rows

PARQUET = b"PAR1"
_BATCH = 500
_LONGEST_CELL = 10_000_000
_SEPARATORS = ",;\t"


def csv_rows(lines: Iterable[bytes], name: str, on_bad: OnBad | None = None) -> Rows:
    """(where, row) of each row of a CSV file below its header; every value is a text, and a formula is one too.

    The separator is a comma, a semicolon or a tab, whichever the header has most of. Raises `UserError` at what is
    not UTF-8 or no CSV, after which nothing can be read, and at a row that is not as long as the header, or tells
    `on_bad` of it.
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
    """(where, row) of each row of a Parquet file, which is held in memory as it is stored. Raises `UserError` where
    it is none or pyarrow is missing."""
    arrow, parquet = load_parquet()
    number = 0
    try:
        with parquet.ParquetFile(io.BytesIO(b"".join(lines))) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{name} row {number}", _plain(row)
    except (arrow.ArrowException, OSError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"{name}: not Parquet ({reason}).", "Fetch the file again.") from None


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row in the values of JSON: dates and the like become texts."""
    value: dict[str, Any] = json.loads(json.dumps(row, default=_text))
    return value


def _text(value: object) -> str:
    # Many write texts as binary.
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
        raise UserError(f"{name}: the first line is no header of a table.", "Expected the names of the columns.")
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise UserError(f"{name}: the column {twice[0]!r:.60} is there twice.", "Give each a name of its own.")
