"""The rows of a pool's files: JSON Lines or a JSON array, gzipped or not, or Parquet.

The kind is recognised by the first bytes.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.jsonl import open_input
from stepsight.storage.importers.kind import Row, json_rows

_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"
# Rows of a Parquet file held at once.
_BATCH = 256
# Bad rows are kept until the next good one. So many in a row are another kind of file.
_MOST_BAD = 10_000

Found = tuple[str, Row | UserError]
"""Where a row stands, such as `pool.jsonl line 3` or `pool.parquet row 3`, and the row or what is wrong with it."""


def read_rows(path: Path, name: str) -> Iterator[Found]:
    """Yield what stands in each row of a file called `name`, blank lines left out.

    Raises `UserError` where nothing more of the file can be read: it is not there, damaged or cut short, or Parquet
    without pyarrow.
    """
    with open_input(path) as file:
        start = file.read(4)
        file.seek(0)
        if start == _PARQUET:
            yield from _parquet_rows(path, name)
        elif start.startswith(_GZIP):
            with gzip.open(file) as lines:
                yield from _lines(_unzipped(lines, name), name)
        else:
            yield from _lines(file, name)


def _lines(lines: Iterable[bytes], name: str) -> Iterator[Found]:
    """Rows that can be read and rows that cannot, in their order."""
    bad: list[Found] = []

    def keep(where: str, error: UserError, _: object) -> None:
        bad.append((where, error))
        if len(bad) > _MOST_BAD:
            raise UserError(f"{name}: {len(bad):,} rows one after the other are no JSON objects.", "Is it a pool?")

    for where, row in json_rows(lines, name, keep):
        yield from bad
        bad.clear()
        yield where, row
    yield from bad


def _unzipped(lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    try:
        yield from lines
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{name}: cannot be unzipped ({error}).", "Fetch the file again.") from None


def _parquet_rows(path: Path, name: str) -> Iterator[Found]:
    arrow, parquet = _libraries()
    number = 0
    try:
        # Without pre-buffering a row group is read piece by piece, however large it is.
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{name} row {number}", row
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"{name}: not Parquet ({reason}).", "Fetch the file again.") from None


def _libraries() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError("Parquet needs pyarrow.", "Run: pip install 'stepsight[parquet]'") from None
    return pyarrow, pyarrow.parquet
