"""Parquet and Arrow files, read a few rows at a time by pyarrow, which is an optional dependency.

A few bytes of such a file may encode any number of values, so rows are taken from it within bounds.
"""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError

_ARROW_FILE, _ARROW_STREAM = b"ARROW1", b"\xff\xff\xff\xff"
MOST_IN_ROW = 1_000_000
"""The largest number of values in a row, including those in lists and objects."""
MOST_ROWS = 20_000_000
"""The largest number of rows in a Parquet file, in which any number of equal rows may take only a few bytes."""
# The largest number of rows, and of values in a column, that are decoded at once.
_BATCH, _VALUES = 500, 5_000_000


def load_pyarrow(what: str = "Parquet") -> Any:
    """Return the module `pyarrow` with its `parquet` loaded.

    Raises `UserError`, saying that `what` needs it, if it is not installed.
    """
    try:
        import pyarrow.parquet
    except ImportError:
        raise UserError(f"{what} needs pyarrow.", "Run: pip install 'stepsight[parquet]'") from None
    return pyarrow


def parquet_batches(file: Path | io.BytesIO) -> Iterator[Any]:
    """Yield the content of a Parquet file in batches of rows. Errors of pyarrow are passed on. Raises `ValueError`
    before it decodes more than `MOST_ROWS` rows, or rows that have more than `MOST_IN_ROW` values each."""
    with load_pyarrow().parquet.ParquetFile(file) as content:
        if content.metadata.num_rows > MOST_ROWS:
            raise ValueError(f"it has over {MOST_ROWS:,} rows")
        for number in range(content.num_row_groups):
            # Reading zero rows rejects a damaged column, on which pyarrow 26 crashes in `group.column`.
            list(content.reader.iter_batches(0, [number]))
            group = content.metadata.row_group(number)
            values = max((group.column(place).num_values for place in range(group.num_columns)), default=0)
            if values > MOST_IN_ROW * group.num_rows:
                raise ValueError(f"its rows have over {MOST_IN_ROW:,} values each")
            size = max(1, min(_BATCH, _VALUES * group.num_rows // max(1, values)))
            yield from content.iter_batches(batch_size=size, row_groups=[number])


def arrow_batches(path: Path) -> Iterator[Any]:
    """Yield the content of an Arrow file in batches of rows. Errors of pyarrow are passed on. The file can be a
    stream, as written by `datasets`, or a file with an index at its end."""
    arrow = load_pyarrow()
    with arrow.memory_map(str(path)) as content:
        if content.read(len(_ARROW_FILE)) == _ARROW_FILE:
            indexed = arrow.ipc.open_file(content)
            batches: Iterable[Any] = map(indexed.get_batch, range(indexed.num_record_batches))
        else:
            content.seek(0)
            batches = arrow.ipc.open_stream(content)
        for batch in batches:
            # pyarrow does not check on its own that offsets are within the batch; a damaged offset could crash the
            # process.
            batch.validate(full=True)
            for start in range(0, batch.num_rows, _BATCH):
                yield batch.slice(start, _BATCH)


def is_arrow(beginning: bytes) -> bool:
    """True if `beginning`, the first bytes of a file, shows that it is an Arrow file."""
    return beginning.startswith((_ARROW_FILE, _ARROW_STREAM))


MOST_COLUMNS = 10_000
"""The largest number of columns in a table."""
# The number of bytes of rows held at once, and the overhead of a value in bytes.
_MOST_AT_ONCE, _OF_VALUE = 50_000_000, 50
# The Arrow types in which several rows may share a value.
_SHARED = ("dictionary", "run_end_encoded", "_view")


def batch_rows(batch: Any, name: str, before: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch, a few at a time if they have many values. Raises `UserError` if one has too many;
    `before` is the number of rows before the batch."""
    values = sum(map(_count, batch.columns))
    # Where rows share values, each gets its own copy.
    copies = batch.num_rows if any(word in str(batch.schema.types) for word in _SHARED) else 1
    if batch.num_rows <= 1 or batch.nbytes * copies + values * _OF_VALUE <= _MOST_AT_ONCE:
        if values > MOST_IN_ROW * batch.num_rows:
            raise UserError(
                f"{name} row {before + 1}: over {MOST_IN_ROW:,} values.", "Remove columns that are not text."
            )
        yield from batch.to_pylist()
        return
    half = batch.num_rows // 2
    yield from batch_rows(batch.slice(0, half), name, before)
    yield from batch_rows(batch.slice(half), name, before + half)


def _count(array: Any) -> int:
    """Return the number of values in an Arrow array and in the lists and objects in it."""
    if hasattr(array, "flatten") and hasattr(array.type, "value_type"):
        return len(array) + _count(array.flatten())
    fields = array.flatten() if hasattr(array, "field") and array.type.num_fields else []
    return len(array) + sum(map(_count, fields))


def check_columns(count: int, name: str) -> None:
    """Raise `UserError` if a table has more columns than any table of solutions."""
    if count > MOST_COLUMNS:
        raise UserError(f"{name}: {count:,} columns; at most {MOST_COLUMNS:,} are read.", "Remove the others.")
