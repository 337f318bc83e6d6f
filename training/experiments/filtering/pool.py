r"""A pool of solutions: the rows of some files, which can be iterated over repeatedly.

A row has a query and a response, whose steps an evaluator judges. A file contains JSON Lines or a JSON array, which
may be compressed by gzip or zstd, or is Parquet. The format is recognised by the first bytes. A row of MMIQC:

    {"instruction": "Compute $2 + 3$.", "output": "We add.\nThe answer is: 5", "source": "MATH"}
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.arrow import load_pyarrow
from stepsight.core.files.jsonl import open_input
from stepsight.core.files.text_lines import PARQUET
from stepsight.core.text.split import split_steps
from stepsight.core.trace import Trace, check_text
from stepsight.storage.importers.guesses import rival_columns
from stepsight.storage.importers.rows.fields import describe, field
from stepsight.storage.importers.rows.kind import Row, json_rows
from stepsight.training.data.leakage import Benchmarks
from stepsight.training.data.sources_config import PROBLEMS, TraceOrigin
from stepsight.training.experiments.filtering.drawing import Draw, Drawn, draw_rows

QUERY, RESPONSE = "query", "response"
"""The names of the two fields in output, whatever the pool calls them."""

Fields = tuple[str, str]
"""A file's names for the query and the response."""

FIELD_NAMES: tuple[Fields, ...] = (
    (QUERY, RESPONSE),
    ("instruction", "output"),
    ("problem", "steps"),
    ("problem", "solution"),
    ("question", "answer"),
)
"""The names used by MetaMathQA, MMIQC, the plain format, MATH and GSM8K."""

PlacedRow = tuple[str, Row | UserError]
"""The place of a row, such as `pool.jsonl line 3` or `pool.parquet row 3`, with the row or the error in it."""

# The number of rows of a Parquet file in memory at once.
_BATCH = 256
# Bad rows are kept until the next good one. This many in a row mean another kind of file.
_MOST_BAD = 10_000
# The number of rows at the start of a file from which its fields are recognised.
_FIRST = 20


@dataclass(frozen=True)
class Solution:
    """A row of a pool that holds a solution.

    `where` names the row in messages. `trace` combines the query with the steps of the response. `rest` holds the
    row's other fields.
    """

    where: str
    query: str
    response: str
    trace: Trace
    rest: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the trace's digest."""
        return self.trace.digest[:16]

    @property
    def line(self) -> bytes:
        """The row as it is written to a subset: `query`, `response`, and every other field unchanged."""
        row = {QUERY: self.query, RESPONSE: self.response, **self.rest}
        try:
            return f"{json.dumps(row, ensure_ascii=False, default=str)}\n".encode()
        except UnicodeEncodeError:
            # Half of a surrogate pair, possible in an unused field, can only be written escaped.
            return f"{json.dumps(row, default=str)}\n".encode()


def find_fields(rows: list[Row]) -> Fields | None:
    """Return the first pair of field names in `FIELD_NAMES` that a row has, for query and response, or None."""
    return next((fields for row in rows for fields in FIELD_NAMES if row.keys() >= {*fields}), None)


def parse_solution(row: Row, fields: Fields, where: str) -> Solution:
    """Parse a row as a solution.

    A response that is a list of texts is taken as a list of steps, and any other response is split into steps.
    Raises `UserError`, with a message that starts with `where`, if the query or the response is missing, empty or
    not a text, or if there are no steps.
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
    """Yield (place, row) for each row of a file, where an unreadable row is replaced by its error. Blank lines are
    skipped.

    `name` is the file's name in messages. Raises `UserError` if the file cannot be read to its end because it is
    missing, damaged or truncated, or because it is Parquet and pyarrow is not installed.
    """
    with open_input(path) as file:
        start = file.read(4)
        file.seek(0)
        if start == PARQUET:
            yield from _parquet_rows(path, name)
        else:
            yield from _lines(file, name)


def _lines(lines: Iterable[bytes], name: str) -> Iterator[PlacedRow]:
    """Yield the readable rows and, in place of each unreadable row, its error, in order. Raises `UserError` if many
    consecutive rows are not JSON objects."""
    bad: list[PlacedRow] = []

    def keep(where: str, error: UserError, _: object) -> None:
        bad.append((where, error))
        if len(bad) > _MOST_BAD:
            raise UserError(f"{name}: {len(bad):,} consecutive rows are not JSON objects.", "Is it a pool?")

    for where, row in json_rows(lines, name, keep):
        yield from bad
        bad.clear()
        yield where, row
    yield from bad


def _parquet_rows(path: Path, name: str) -> Iterator[PlacedRow]:
    arrow = load_pyarrow()
    number = 0
    try:
        # Without pre-buffering, a row group of any size is read piece by piece.
        with arrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{name} row {number}", row
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"{name}: not Parquet ({reason}).", "Fetch the file again.") from None


@dataclass(frozen=True)
class BadRow:
    """A row that does not hold a solution."""

    where: str
    error: UserError


@dataclass(frozen=True)
class Overlap:
    """A row whose query, or the question that its query was derived from, is a benchmark problem.

    `benchmark` is the first 16 hexadecimal digits of the SHA-256 of the benchmark's file.
    """

    where: str
    benchmark: str


Entry = Solution | BadRow | Overlap


@dataclass(frozen=True)
class PoolFile:
    """A file of a pool. `path` is absolute, and `name` is the file's name in messages."""

    path: Path
    name: str
    fields: Fields
    sha256: str

    def rows(self) -> Iterator[Row | UserError]:
        """Iterate over the rows of the file. An unreadable row is replaced by its error."""
        return (row for _, row in read_rows(self.path, self.name))


@dataclass(frozen=True)
class Pool:
    """The rows of `files`, one file after another, or only those marked by `drawn`. Blank lines do not count as
    rows.

    A row whose query is a problem of one of the `benchmarks` becomes an `Overlap`, because a model trained on it
    would be tested on a problem that it has learnt by heart.
    """

    files: tuple[PoolFile, ...]
    benchmarks: Mapping[str, Benchmarks] = dataclasses.field(default_factory=dict)
    draw: Draw = Draw()  # noqa: RUF009 (it is frozen)
    drawn: Drawn | None = None

    @classmethod
    def open(
        cls,
        paths: Sequence[Path],
        fields: Fields | None = None,
        benchmarks: Sequence[Path] = (),
        draw: Draw | None = None,
    ) -> "Pool":
        """Open the pool that consists of the given files.

        `fields` gives the names of the query and response fields; if it is None, they are recognised. `benchmarks`
        are files with a problem or question on each line. With a `draw`, the files are read once more to choose
        rows. Raises `UserError` if a file cannot be read, is given twice, or has no known field names, or if too
        few rows meet the `draw`.
        """
        whole = [path.resolve() for path in paths]
        for path in whole:
            if whole.count(path) > 1:
                raise UserError(f"{path.name} is given twice.", "Each of its rows would be in the pool twice.")
        plain = len({path.name for path in whole}) == len(whole)
        names = [path.name if plain else str(name) for name, path in zip(paths, whole, strict=True)]
        files = [
            PoolFile(path, name, fields or _find_fields(path, name), _sha256(path))
            for path, name in zip(whole, names, strict=True)
        ]
        draw = draw or Draw()
        drawn = None if draw.takes_all else draw_rows((file.rows() for file in files), draw)
        return cls(tuple(files), read_benchmarks(benchmarks), draw, drawn)

    def __iter__(self) -> Iterator[Entry]:
        for place, file in enumerate(self.files):
            for number, (where, row) in enumerate(read_rows(file.path, file.name)):
                if self.drawn is not None and not self.drawn.chosen[place][number]:
                    continue
                try:
                    if isinstance(row, UserError):
                        raise row
                    yield self._checked(parse_solution(row, file.fields, where))
                except UserError as error:
                    yield BadRow(where, error)

    def _checked(self, solution: Solution) -> Entry:
        if not self.benchmarks:
            return solution
        # A rewritten question may have the original in another field, as in MetaMathQA.
        asked = replace(solution.trace, meta=dict(solution.rest))
        for digest, benchmark in self.benchmarks.items():
            if benchmark.overlaps(asked):
                return Overlap(solution.where, digest)
        return solution

    def check_unchanged(self) -> None:
        """Raise `UserError`, naming the file, if a file has changed since the pool was opened."""
        for file in self.files:
            if _sha256(file.path) != file.sha256:
                raise UserError(f"{file.name} has changed meanwhile.", "Start again, with another --output.")

    @property
    def sha256(self) -> list[str]:
        """The hashes of the files, in order. Together they identify the pool."""
        return [file.sha256 for file in self.files]

    def as_json(self) -> list[dict[str, Any]]:
        return [{"name": file.name, "sha256": file.sha256, "fields": list(file.fields)} for file in self.files]


def read_benchmarks(paths: Sequence[Path]) -> dict[str, Benchmarks]:
    """Read the problems of benchmark files, keyed by the first 16 hexadecimal digits of each file's SHA-256. Raises
    `UserError` if a file cannot be read, if a row has no problem, or if two files have the same content."""
    benchmarks: dict[str, Benchmarks] = {}
    for path in paths:
        benchmark = _read_benchmark(path)
        digest = benchmark.records[0]["files"][0]["sha256"][:16]
        if digest in benchmarks:
            raise UserError(f"the benchmark {path} is given twice.")
        benchmarks[digest] = benchmark
    return benchmarks


def _read_benchmark(path: Path) -> Benchmarks:
    if not path.is_file():
        raise UserError(f"there is no file {path}.", "Check the path of the benchmark.")
    whole = path.resolve()
    # A benchmark's file is often just called test.jsonl: its folder identifies it.
    named = TraceOrigin(PROBLEMS, path=f"{whole.parent.name}/{whole.name}")
    try:
        return Benchmarks([named], whole.parent.parent)
    except UserError as error:
        raise UserError(error.message, "A benchmark is JSON Lines, with problem or question in each.") from None


class Chunks:
    """The pool in chunks of `size` rows. The last chunk may be shorter. Request chunks in ascending order, because
    going back means reading the pool again from its start."""

    def __init__(self, pool: Pool, size: int) -> None:
        self._pool, self._size = pool, size
        self._entries, self._next = iter(pool), 0

    def __getitem__(self, number: int) -> list[Entry]:
        if number < self._next:
            self._entries, self._next = iter(self._pool), 0
        skipped = (number - self._next) * self._size
        next(islice(self._entries, skipped, skipped), None)
        self._next = number + 1
        return list(islice(self._entries, self._size))


def _find_fields(path: Path, name: str) -> Fields:
    rows = [row for _, row in islice(read_rows(path, name), _FIRST) if not isinstance(row, UserError)]
    fields = find_fields(rows)
    if fields is None:
        pairs = ", ".join(" and ".join(pair) for pair in FIELD_NAMES)
        there = f"it has {', '.join(list(rows[0])[:12])}" if rows else "no row can be read"
        raise UserError(
            f"{name}: its first rows have no query and response that are known by name ({pairs}); {there}.",
            "Name the two with --fields.",
        )
    rivals = rival_columns(rows, fields[1]) if fields[1] != "steps" else []
    if rivals:
        raise UserError(
            f"{name}: {fields[1]!r} and {rivals[0]!r:.60} may each hold the response.",
            "Name the two with --fields.",
        )
    return fields


def _sha256(path: Path) -> str:
    with open_input(path) as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
        return digest.hexdigest()
