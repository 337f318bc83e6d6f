"""The scores of a pool: a file with a JSON line for each row, in order, written chunk by chunk.

{"row": 1, "digest": "9f86d081884c7d65", "steps": 4, "validity": 0.93, "redundancy": 0.02}
{"row": 2, "left_out": "pool.jsonl line 2: the field 'output' is empty. Give it a text."}
{"row": 3, "problem_of": "32840b3bbf342e56"}
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.training.runs.row_file import RowFile

SCORES = "scores.jsonl"


@dataclass(frozen=True)
class ScoredRow:
    """A row, counted from 1, with the scores of its solution.

    `redundancy` is None if the evaluator does not give it.
    """

    row: int
    digest: str
    steps: int
    validity: float
    redundancy: float | None


@dataclass(frozen=True)
class UnscoredRow:
    """A row that is too long or does not hold a solution. `left_out` names the row and says what is wrong."""

    row: int
    left_out: str


@dataclass(frozen=True)
class OverlappingRow:
    """A row whose query is a benchmark problem. `problem_of` is the hash of the benchmark."""

    row: int
    problem_of: str


ScoreRow = ScoredRow | UnscoredRow | OverlappingRow


def score_row(values: Mapping[str, Any]) -> ScoreRow | None:
    """Parse the values of a line as a scored, unscored or overlapping row, or return None if they are invalid."""
    kind = UnscoredRow if "left_out" in values else OverlappingRow if "problem_of" in values else ScoredRow
    try:
        return kind(**values)
    except TypeError:
        return None


class ChunkedScores(RowFile):
    """The file scores.jsonl in `folder`, to which rows are added in chunks of `size` until the file has `total`
    rows.

    The last chunk may be shorter. A partial chunk that a killed process left behind is removed, so that chunks are
    always scored as a whole. Raises `UserError` if the file cannot be written.
    """

    def __init__(self, folder: Path, size: int, total: int) -> None:
        super().__init__(folder / SCORES)
        self.size, self.total = size, total
        rows = self._count()
        self.rows = rows if rows == total else rows // size * size
        self.keep(self.rows)

    @property
    def chunks(self) -> int:
        """The number of chunks written so far."""
        return -(-self.rows // self.size)

    @property
    def planned(self) -> int:
        """The total number of chunks in the pool."""
        return -(-self.total // self.size)

    @property
    def is_whole(self) -> bool:
        return self.rows == self.total

    def add_chunk(self, rows: Sequence[ScoreRow]) -> None:
        """Append the next chunk. Raises `UserError` if these are not its rows, or if the disk is full."""
        expected = range(self.rows + 1, min(self.rows + self.size, self.total) + 1)
        if [row.row for row in rows] != [*expected]:
            raise UserError(
                f"{len(rows)} scores came back for the rows {expected.start} to {expected.stop - 1} of the pool.",
                "It has changed meanwhile; start again, with another --output.",
            )
        self.add(map(asdict, rows))
        self.rows += len(rows)

    def scores(self) -> Iterator[ScoreRow]:
        """Yield the rows of the file, one for each row of the pool, in order."""
        for values in self:
            row = score_row(values)
            assert row is not None
            yield row

    def _count(self) -> int:
        """Return the number of rows up to the first one that is invalid or out of order."""
        number = 0
        for number, values in enumerate(self, 1):
            row = score_row(values)
            if row is None or row.row != number or number > self.total:
                return number - 1
        return number


def copy_scores(source: Path, target: Path) -> None:
    """Copy the score file from one folder to another.

    Raises `UserError` if there is no score file or no room for the copy.
    """
    try:
        shutil.copyfile(source / SCORES, target / SCORES)
    except OSError as error:
        raise UserError(f"{source / SCORES}: cannot be copied ({error.strerror}).", "Check the folder.") from None
