"""Choosing the four subsets of a pool, which all have the same number of solutions (paper, §6.1).

    val+red   solutions in which every step is valid and none is redundant, by the thresholds
    val       the solutions with the highest validity
    red       the solutions with the lowest redundancy
    random    a uniform sample

If scores are equal at the cut-off, or more solutions qualify than are needed, a hash of the seed, the subset and
the row decides. The choice therefore does not depend on anything else, such as the order of scoring.
"""

import hashlib
import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.errors import UserError
from stepsight.core.scores import Thresholds
from stepsight.training.experiments.filtering.scores import ScoredRow, ScoreRow

BOTH, VALIDITY, REDUNDANCY, RANDOM = "val+red", "val", "red", "random"
SUBSETS = (BOTH, VALIDITY, REDUNDANCY, RANDOM)

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class PoolScores:
    """The row numbers, counted from 1, and the scores of all scored solutions, in arrays of shape (n,). The arrays
    take 24 bytes per solution. Redundancy is NaN if the evaluator does not give it."""

    rows: Rows
    validity: NDArray[np.float64]
    redundancy: NDArray[np.float64]

    @classmethod
    def read(cls, score_rows: Iterable[ScoreRow]) -> "PoolScores":
        rows, validity, redundancy = array("q"), array("d"), array("d")
        for row in score_rows:
            if isinstance(row, ScoredRow):
                rows.append(row.row)
                validity.append(row.validity)
                redundancy.append(math.nan if row.redundancy is None else row.redundancy)
        return cls(np.array(rows, np.int64), np.array(validity, np.float64), np.array(redundancy, np.float64))

    def __len__(self) -> int:
        return len(self.rows)

    def passing(self, thresholds: Thresholds) -> NDArray[np.bool_]:
        """Return a mask that selects the solutions that are valid and not redundant by the thresholds."""
        return (self.validity >= thresholds.validity) & (self.redundancy < thresholds.redundancy)


@dataclass(frozen=True)
class SubsetRule:
    """A rule for choosing subsets. `by` names the subsets. Each subset gets `match` solutions or, if `match` is
    None, as many as val+red has. `seed` decides between equally good solutions."""

    by: tuple[str, ...] = SUBSETS
    match: int | None = None
    seed: int = 0
    thresholds: Thresholds = Thresholds()  # noqa: RUF009 (it is frozen)

    @property
    def needs_redundancy(self) -> bool:
        return self.match is None or BOTH in self.by or REDUNDANCY in self.by


@dataclass(frozen=True)
class ChosenSubset:
    """The rows of a subset, in the order of the pool.

    If the rows were chosen by a score, `edge` is the worst score among them, and `tied` is the number of solutions
    in the whole pool with exactly that score.
    """

    rows: Rows
    edge: float | None = None
    tied: int | None = None

    def as_json(self) -> dict[str, Any]:
        ranked = {} if self.edge is None else {"edge": self.edge, "tied_at_edge": self.tied}
        return {"rows": len(self.rows)} | ranked


def choose(scores: PoolScores, rule: SubsetRule) -> dict[str, ChosenSubset]:
    """Choose the subsets that the rule names, all of the same size.

    The size is `match`, or the number of solutions that qualify if that is smaller. Raises `UserError` if no
    solution qualifies for val+red and the size depends on it.
    """
    passing = scores.passing(rule.thresholds)
    size = subset_size(scores, rule)
    chosen = {}
    for name in rule.by:
        chance = _chance(scores.rows, f"{rule.seed} {name}")
        if name == BOTH:
            chosen[name] = ChosenSubset(_first(scores.rows, [chance, ~passing], size))
        elif name == RANDOM:
            chosen[name] = ChosenSubset(_first(scores.rows, [chance], size))
        else:
            # Validity is negated, so that ascending order puts the best first.
            values = -scores.validity if name == VALIDITY else scores.redundancy
            edge = np.sort(values)[size - 1]
            shown = float(-edge if name == VALIDITY else edge)
            chosen[name] = ChosenSubset(
                _first(scores.rows, [chance, values], size), shown, int((values == edge).sum())
            )
    return chosen


def subset_size(scores: PoolScores, rule: SubsetRule) -> int:
    """Return the number of solutions in each subset. Raises `UserError` if no solution qualifies."""
    there = int(scores.passing(rule.thresholds).sum())
    if rule.match is None or BOTH in rule.by:
        if not there:
            valid, redundant = rule.thresholds.validity, rule.thresholds.redundancy
            raise UserError(
                f"of {len(scores):,} solutions none is valid (from {valid:g}) and not redundant ({redundant:g}).",
                "Give other thresholds, or --by val, red or random with --match N, and another --output; with "
                "--scores it need not score again.",
            )
        return min(there, rule.match or there)
    return min(len(scores), rule.match)


def overlaps(subsets: Mapping[str, ChosenSubset]) -> dict[str, int]:
    """Return the number of rows that each pair of subsets has in common."""
    names = [*subsets]
    return {
        f"{one} and {other}": len(np.intersect1d(subsets[one].rows, subsets[other].rows, assume_unique=True))
        for number, one in enumerate(names)
        for other in names[number + 1 :]
    }


def _first(rows: Rows, keys: Sequence[NDArray[Any]], size: int) -> Rows:
    """Return the `size` rows with the smallest last key, in the pool's order. Earlier keys break ties."""
    return np.sort(rows[np.lexsort((rows, *keys))[:size]])


def _chance(rows: Rows, salt: str) -> NDArray[np.uint64]:
    """Return a pseudo-random number for each row. It is derived from `salt` and the same on every machine."""
    hashes = (hashlib.blake2b(f"{salt} {row}".encode(), digest_size=8).digest() for row in rows)
    return np.fromiter((int.from_bytes(digest) for digest in hashes), np.uint64, len(rows))
