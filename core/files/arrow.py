"""Parquet and Arrow files, read a few rows at a time by pyarrow, which is an optional dependency."""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError

_ARROW_FILE, _ARROW_STREAM = b"ARROW1", b"\xff\xff\xff\xff"
MOST_IN_ROW = 1_000_000
"""The most values of a row, those in lists and objects included."""
MOST_ROWS = 20_000_000
"""The most rows of a Parquet file, which may take a few bytes for any number of equal ones."""
# The most rows and values of a column that are decoded at once.
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
            # pyarrow does not check by itself that offsets are within the batch: a damaged one could crash the
            # process.
            batch.validate(full=True)
            for start in range(0, batch.num_rows, _BATCH):
                yield batch.slice(start, _BATCH)


def is_arrow(beginning: bytes) -> bool:
    """True if `beginning`, the first bytes of a file, shows that it is an Arrow file."""
    return beginning.startswith((_ARROW_FILE, _ARROW_STREAM))
