"""Drawing a pool: the rows of its files that meet the conditions, or a sample of those rows.

The paper's pool is a random sample of 10,000 MATH problems with solutions of MMIQC (section 6.1).
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.errors import UserError
from stepsight.core.row_conditions import RowConditions, parse_conditions
from stepsight.storage.importers.kind import Row

Chosen = tuple[NDArray[np.bool_], ...]
"""For each file, True for each row that is in the pool."""


@dataclass(frozen=True)
class Draw:
    """The rule by which the rows of a pool are drawn from its files.

    `where` holds conditions in the syntax of `core.row_conditions`; a row must meet all of them. `size` is the
    number of such rows to draw with `seed`, None for all.
    """

    where: tuple[str, ...] = ()
    size: int | None = None
    seed: int = 0

    @property
    def takes_all(self) -> bool:
        return not self.where and self.size is None

    def as_json(self) -> dict[str, Any]:
        return {"where": list(self.where), "size": self.size, "seed": self.seed}


@dataclass
class Drawn:
    """The result of drawing a pool.

    `chosen` marks the rows of the pool. `read` is the number of all rows, `met` the number that meet the
    conditions, and `left_out` the number left out by each condition.
    """

    chosen: Chosen
    read: int
    met: int
    left_out: dict[str, int] = field(default_factory=dict)


def draw_rows(files: Iterable[Iterable[Row | UserError]], draw: Draw) -> Drawn:
    """Choose among the rows of files. An unreadable row is chosen only if every row is.

    Raises `UserError` if a condition is invalid, if no row meets all conditions, or if fewer rows do than are to be
    drawn.
    """
    conditions = parse_conditions(draw.where)
    met = [_met(rows, conditions) for rows in files]
    conditions.check()
    counts = [int(part.sum()) for part in met]
    read, there = sum(len(part) for part in met), sum(counts)
    if draw.size is not None:
        if draw.size > there:
            raise UserError(
                f"a sample of {draw.size:,} rows is requested, but only {there:,} of {read:,} rows qualify.",
                "Lower --sample, or loosen --where.",
            )
        _keep(met, counts, draw)
    return Drawn(tuple(met), read, there, dict(conditions.left_out))


def _met(rows: Iterable[Row | UserError], conditions: RowConditions) -> NDArray[np.bool_]:
    found = (not isinstance(row, UserError) and conditions.hold(row) for row in rows)
    return np.fromiter(found, np.bool_)


def _keep(met: Sequence[NDArray[np.bool_]], counts: Sequence[int], draw: Draw) -> None:
    """Reduce the rows that meet the conditions to a sample drawn by the seed.

    Every subset of that size is equally likely.
    """
    assert draw.size is not None
    drawn = np.zeros(sum(counts), np.bool_)
    drawn[random.Random(f"pool:{draw.seed}").sample(range(len(drawn)), draw.size)] = True
    start = 0
    for part, count in zip(met, counts, strict=True):
        part[part] = drawn[start : start + count]
        start += count
