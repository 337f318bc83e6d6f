"""The solutions of a pool's files: rows with a query and a response, whose steps an evaluator judges.

Files are JSON Lines or a JSON array, gzipped or not, or Parquet, recognised by their first bytes.

MMIQC: {"instruction": "Compute $2 + 3$.", "output": "We add.\\nThe answer is: 5", "source": "MATH"}
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.jsonl import open_input
from stepsight.core.split import split_steps
from stepsight.core.trace import Trace, check_text
from stepsight.storage.importers.fields import describe, field
from stepsight.storage.importers.kind import Row, json_rows

QUERY, RESPONSE = "query", "response"
"""What the two are called in what is written, whatever the pool calls them."""

Fields = tuple[str, str]
"""What a file calls the query and the response."""

FIELD_NAMES: tuple[Fields, ...] = (
    (QUERY, RESPONSE),
    ("instruction", "output"),
    ("problem", "steps"),
    ("problem", "solution"),
    ("question", "answer"),
)
"""MetaMathQA's, MMIQC's, the plain format's, MATH's and GSM8K's."""

PlacedRow = tuple[str, Row | UserError]
"""Where a row stands, such as `pool.jsonl line 3` or `pool.parquet row 3`, and the row or what is wrong with it."""

_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"
# Rows of a Parquet file held at once.
_BATCH = 256
# Bad rows are kept until the next good one. So many in a row are another kind of file.
_MOST_BAD = 10_000


@dataclass(frozen=True)
class Solution:
    """`trace` is the query with the response's steps; `rest` are the row's other fields."""

    where: str
    query: str
    response: str
    trace: Trace
    rest: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Of what is judged, 16 hexadecimal digits."""
        return self.trace.digest[:16]

    @property
    def line(self) -> bytes:
        """The row as it is written: `query`, `response`, and every other field as it was."""
        row = {QUERY: self.query, RESPONSE: self.response, **self.rest}
        try:
            return f"{json.dumps(row, ensure_ascii=False, default=str)}\n".encode()
        except UnicodeEncodeError:
            # Half of a surrogate pair, in a field that nobody reads, has no other spelling.
            return f"{json.dumps(row, default=str)}\n".encode()


def find_fields(rows: list[Row]) -> Fields | None:
    """The first pair of `FIELD_NAMES` that a row has both of, None where there is none."""
    return next((fields for row in rows for fields in FIELD_NAMES if row.keys() >= {*fields}), None)


def parse_solution(row: Row, fields: Fields, where: str) -> Solution:
    """A row as a solution; a response that is a list of texts is one of steps, any other is split into them.

    Raises `UserError` that starts with `where` where query or response is missing, empty or no text, or there is no
    step.
    """
    try:
        query = check_text(field(row, fields[0]), f"the field {fields[0]!r}")
        answer = field(row, fields[1])
        trace = Trace.of(query, _steps(answer, f"the field {fields[1]!r}"))
        rest = {key: value for key, value in row.items() if key not in fields}
        if taken := rest.keys() & {QUERY, RESPONSE}:
            raise UserError(
                f"the row has a field {min(taken)!r} too, which is what {' and '.join(fields)} are written as.",
                "Name the right two with --fields.",
            )
    except UserError as error:
        raise error.at(where) from None
    response = answer if isinstance(answer, str) else "\n".join(trace.substeps)
    return Solution(where, query, response, trace, rest)


def _steps(response: object, what: str) -> Sequence[str | list[str]]:
    if not isinstance(response, list):
        return split_steps(check_text(response, what))
    for number, step in enumerate(response, start=1):
        parts = step if isinstance(step, list) else [step]
        if not all(isinstance(part, str) for part in parts):
            raise UserError(f"step {number} of {what} is {describe(step)}, expected a text or a list of texts.")
    return response


def read_rows(path: Path, name: str) -> Iterator[PlacedRow]:
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


def _lines(lines: Iterable[bytes], name: str) -> Iterator[PlacedRow]:
    """Rows that can be read and rows that cannot, in their order."""
    bad: list[PlacedRow] = []

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


def _parquet_rows(path: Path, name: str) -> Iterator[PlacedRow]:
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
