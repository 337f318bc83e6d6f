"""A pool of solutions: files in order, read row by row as often as needed."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.jsonl import open_input
from stepsight.training.data.leakage import Benchmarks
from stepsight.training.data.sources_config import PROBLEMS, TraceOrigin
from stepsight.training.experiments.filtering.solutions import (
    FIELD_NAMES,
    Fields,
    Solution,
    find_fields,
    parse_solution,
    read_rows,
)

# Rows at the start of a file that may tell what it calls its fields.
_FIRST = 20


@dataclass(frozen=True)
class BadRow:
    """A row that is no solution."""

    where: str
    error: UserError


@dataclass(frozen=True)
class Overlap:
    """A row whose query, or the question it was made from, is a problem of a benchmark, named by the first 16
    digits of its file's SHA-256."""

    where: str
    benchmark: str


Entry = Solution | BadRow | Overlap


@dataclass(frozen=True)
class PoolFile:
    """A file of a pool: `path` is absolute, and places in it bear its `name`."""

    path: Path
    name: str
    fields: Fields
    sha256: str


@dataclass(frozen=True)
class Pool:
    """The rows of `files`, one file after the other; blank lines are no rows.

    Rows whose query is a problem of `benchmarks` are not chosen from: a model that had learnt from them would be
    measured on what it knows.
    """

    files: tuple[PoolFile, ...]
    benchmarks: Mapping[str, Benchmarks] = field(default_factory=dict)

    @classmethod
    def open(cls, paths: Sequence[Path], fields: Fields | None = None, benchmarks: Sequence[Path] = ()) -> "Pool":
        """The pool of those files; `fields` are what they call query and response, recognised where None.

        `benchmarks` are files with a problem or question in each line. Raises `UserError` where a file cannot be
        read, is given twice, or has no fields with a known name.
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
        return cls(tuple(files), read_benchmarks(benchmarks))

    def __iter__(self) -> Iterator[Entry]:
        for file in self.files:
            for where, row in read_rows(file.path, file.name):
                try:
                    if isinstance(row, UserError):
                        raise row
                    yield self._checked(parse_solution(row, file.fields, where))
                except UserError as error:
                    yield BadRow(where, error)

    def _checked(self, solution: Solution) -> Entry:
        if not self.benchmarks:
            return solution
        # Rewritten questions come with the original one in another field, as MetaMathQA's do.
        asked = replace(solution.trace, meta=dict(solution.rest))
        for digest, benchmark in self.benchmarks.items():
            if benchmark.overlaps(asked):
                return Overlap(solution.where, digest)
        return solution

    def check_unchanged(self) -> None:
        """Raises `UserError` naming a file that is no longer what it was when the pool was opened."""
        for file in self.files:
            if _sha256(file.path) != file.sha256:
                raise UserError(f"{file.name} has changed meanwhile.", "Start again, with another --output.")

    @property
    def sha256(self) -> list[str]:
        """Of each file: what tells one pool from another."""
        return [file.sha256 for file in self.files]

    def as_json(self) -> list[dict[str, Any]]:
        return [{"name": file.name, "sha256": file.sha256, "fields": list(file.fields)} for file in self.files]


def read_benchmarks(paths: Sequence[Path]) -> dict[str, Benchmarks]:
    """The problems of each file, by the first 16 digits of its SHA-256.

    Raises `UserError` where a file cannot be read, a row of it has no problem, or two are the same.
    """
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
    # A benchmark's file is often called no more than test.jsonl: its folder tells which one it is.
    named = TraceOrigin(PROBLEMS, path=f"{whole.parent.name}/{whole.name}")
    try:
        return Benchmarks([named], whole.parent.parent)
    except UserError as error:
        raise UserError(error.message, "A benchmark is JSON Lines, with problem or question in each.") from None


class Chunks:
    """The pool in chunks of `size` rows, the last of which may be shorter.

    Meant for numbers that go up: a chunk before the last one asked for is reached from the start of the pool.
    """

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
    return fields


def _sha256(path: Path) -> str:
    with open_input(path) as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
        return digest.hexdigest()
