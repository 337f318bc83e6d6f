"""The files of the subsets: FOLDER/NAME.jsonl, rows in the order of the pool."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from stepsight.core.atomic import atomic_file
from stepsight.core.errors import UserError
from stepsight.training.experiments.filtering.candidate import Solution
from stepsight.training.experiments.filtering.pool import Pool
from stepsight.training.experiments.filtering.scores import ScoredRow, ScoreFile
from stepsight.training.experiments.filtering.subsets import Selection
from stepsight.training.runs.progress import Watch


def subset_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.jsonl"


def write_subsets(
    folder: Path, pool: Pool, scores: ScoreFile, subsets: Mapping[str, Selection], watch: Watch
) -> dict[str, str]:
    """Write each subset, whole or not at all; returns the SHA-256 of each file.

    Raises `UserError` where the pool is no longer what was scored, or a file cannot be written.
    """
    with ExitStack() as stack:
        files = {name: stack.enter_context(_open(subset_path(folder, name))) for name in subsets}
        chosen = _members(subsets, scores.rows)
        # A pool that has grown or shrunk is noticed by its hash.
        for entry, row in zip(pool, scores.scores(), strict=False):
            if isinstance(row, ScoredRow):
                if not isinstance(entry, Solution) or entry.digest != row.digest:
                    raise UserError(
                        f"row {row.row} of the pool is not what was scored.", "Start again, with another --output."
                    )
                for bit, file in enumerate(files.values()):
                    if chosen[row.row] >> bit & 1:
                        file.write(entry.line)
            watch("rows written", row.row, scores.rows)
        pool.check_unchanged()
    return {name: file.digest.hexdigest() for name, file in files.items()}


@dataclass
class _Hashed:
    """A file and the hash of what was written to it."""

    file: IO[bytes]
    digest: Any = field(default_factory=hashlib.sha256)

    def write(self, line: bytes) -> None:
        self.file.write(line)
        self.digest.update(line)


@contextmanager
def _open(path: Path) -> Iterator[_Hashed]:
    with atomic_file(path) as partial, open(partial, "wb") as file:
        yield _Hashed(file)
        file.flush()


def _members(subsets: Mapping[str, Selection], rows: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """For each row, counted from 1, a bit for each subset; shape (rows + 1,)."""
    members = np.zeros(rows + 1, np.uint8)
    for bit, subset in enumerate(subsets.values()):
        members[subset.rows] |= np.uint8(1 << bit)
    return members
