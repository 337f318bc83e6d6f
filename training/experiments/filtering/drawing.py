"""Choosing the rows of a pool from its files: all rows that meet some conditions, or a random sample of these rows.

The paper's pool is a random sample of 10,000 MATH problems with solutions, taken from MMIQC (section 6.1).
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.errors import UserError
from stepsight.core.files.row_conditions import RowConditions, parse_conditions
from stepsight.storage.importers.rows.kind import Row

Chosen = tuple[NDArray[np.bool_], ...]
"""For each file, True for each row that is in the pool."""


@dataclass(frozen=True)
class Draw:
    """The rule that says which rows of the files belong to a pool.

    A row must meet all conditions in `where`, which have the syntax of `core.files.row_conditions`. `size` is the
    number of these rows to choose at random, using `seed`, or None to take them all.
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
    """The result of choosing the rows of a pool.

    `chosen` marks the rows of the pool, file by file. `read` is the total number of rows, `met` is the number that
    meet all conditions, and `left_out` maps each condition to the number of rows that it excluded.
    """

    chosen: Chosen
    read: int
    met: int
    left_out: dict[str, int] = field(default_factory=dict)


def draw_rows(files: Iterable[Iterable[Row | UserError]], draw: Draw) -> Drawn:
    """Choose rows of the files by the rule `draw`. An unreadable row is chosen only if every row is.

    Raises `UserError` if a condition is invalid, if no row meets all conditions, or if the sample is to be larger
    than the number of rows that do.
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
    """Reduce the masks `met` in place to a random sample of `draw.size` rows. Every subset of that size is equally
    likely."""
    assert draw.size is not None
    drawn = np.zeros(sum(counts), np.bool_)
    drawn[random.Random(f"pool:{draw.seed}").sample(range(len(drawn)), draw.size)] = True
    start = 0
    for part, count in zip(met, counts, strict=True):
        part[part] = drawn[start : start + count]
        start += count
