"""The scores of a pool: a JSON line for each row, in order, added chunk by chunk.

{"row": 1, "digest": "9f86d081884c7d65", "steps": 4, "validity": 0.93, "redundancy": 0.02}
{"row": 2, "left_out": "pool.jsonl line 2: the field 'output' is empty. Give it a text."}
{"row": 3, "problem_of": "32840b3bbf342e56"}
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from stepsight.core.errors import UserError

SCORES = "scores.jsonl"


@dataclass(frozen=True)
class Scored:
    """A row, counted from 1: its solution's least validity, and its largest redundancy where the evaluator says
    anything of that."""

    row: int
    digest: str
    steps: int
    validity: float
    redundancy: float | None


@dataclass(frozen=True)
class LeftOut:
    """A row that is no candidate, or too long: `left_out` says where and why."""

    row: int
    left_out: str


@dataclass(frozen=True)
class Overlapping:
    """A row whose query is a problem of the benchmark `problem_of`, told by its hash."""

    row: int
    problem_of: str


ScoreRow = Scored | LeftOut | Overlapping


def format_row(row: ScoreRow) -> str:
    """Its line, with the line break."""
    return f"{json.dumps(asdict(row), ensure_ascii=True)}\n"


def parse_row(line: bytes) -> ScoreRow | None:
    """What `format_row` wrote, None where the line is not whole or something else."""
    try:
        values: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        kind = LeftOut if "left_out" in values else Overlapping if "problem_of" in values else Scored
        return kind(**values)
    except (ValueError, TypeError):
        return None


class ScoreFile:
    """`folder`/scores.jsonl, held by one process at a time; use it in a `with` block.

    Chunks have `size` rows, the last of `total` may be shorter. What a process that was killed left of a chunk is
    cut off, so that a chunk is always scored as a whole. Raises `UserError` where another process holds the file,
    or it cannot be written.
    """

    def __init__(self, folder: Path, size: int, total: int) -> None:
        self.path = folder / SCORES
        self._size, self.total = size, total
        try:
            self._file = open(self.path, "a+b")  # noqa: SIM115 (it is closed by __exit__)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written ({error.strerror}).", "Check the folder.") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise UserError(f"{folder}: another process is at it.", "Wait until it has ended.") from None
        self.rows = self._whole()

    def __enter__(self) -> "ScoreFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    @property
    def chunks(self) -> int:
        """Chunks that are there."""
        return -(-self.rows // self._size)

    @property
    def planned(self) -> int:
        """Chunks of the whole pool."""
        return -(-self.total // self._size)

    @property
    def is_whole(self) -> bool:
        return self.rows == self.total

    def append(self, lines: Sequence[str]) -> None:
        """Add the lines of the next chunk. Raises `UserError` where they are not its rows or the disk is full."""
        expected = range(self.rows + 1, min(self.rows + self._size, self.total) + 1)
        found = [row.row if (row := parse_row(line.encode())) else None for line in lines]
        if found != [*expected]:
            raise UserError(
                f"{len(lines)} scores came back for the rows {expected.start} to {expected.stop - 1} of the pool.",
                "It has changed meanwhile; start again, with another --output.",
            )
        try:
            self._file.write("".join(lines).encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be written ({error.strerror}).", "The same command goes on."
            ) from None
        self.rows += len(lines)

    def __iter__(self) -> Iterator[ScoreRow]:
        with open(self.path, "rb") as file:
            for line in file:
                row = parse_row(line)
                assert row is not None
                yield row

    def _whole(self) -> int:
        """Cut off what follows the last whole chunk; returns the rows that are left."""
        rows = stop = rows_kept = kept = 0
        with open(self.path, "rb") as file:
            for line in file:
                found = parse_row(line)
                if found is None or found.row != rows + 1 or rows == self.total:
                    break
                rows, stop = rows + 1, stop + len(line)
                if rows % self._size == 0 or rows == self.total:
                    rows_kept, kept = rows, stop
        self._file.truncate(kept)
        return rows_kept


def copy_scores(source: Path, target: Path) -> None:
    """Take over the scores of another folder. Raises `UserError` where there are none, or no room for them."""
    try:
        shutil.copyfile(source / SCORES, target / SCORES)
    except OSError as error:
        raise UserError(f"{source / SCORES}: cannot be copied ({error.strerror}).", "Check the folder.") from None
