"""Choosing the four subsets of a pool, which all have the same number of solutions (paper, §6.1).

    val+red   solutions in which every step is valid and none is redundant, by the thresholds
    val       the solutions with the highest validity
    red       the solutions with the lowest redundancy
    random    a uniform sample

If scores are equal at the cut-off, or more solutions qualify than are needed, a hash of the seed, the subset and
the row decides. The choice therefore does not depend on anything else, such as the order of scoring.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.errors import UserError
from stepsight.core.scores import Thresholds

BOTH, VALIDITY, REDUNDANCY, RANDOM = "val+red", "val", "red", "random"
SUBSETS = (BOTH, VALIDITY, REDUNDANCY, RANDOM)

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class PoolScores:
    """The row numbers, counted from 1, and the scores of all scored solutions of a pool, in arrays of shape (n,).
    Redundancy is NaN if the evaluator does not give it."""

    rows: Rows
    validity: NDArray[np.float64]
    redundancy: NDArray[np.float64]

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
    available = int(passing.sum()) if rule.match is None or BOTH in rule.by else len(scores)
    if not available:
        valid, redundant = rule.thresholds.validity, rule.thresholds.redundancy
        raise UserError(
            f"of {len(scores):,} solutions none is valid (from {valid:g}) and not redundant ({redundant:g}).",
            "Give other thresholds, or --by val, red or random with --match N; the scores are stored.",
        )
    size = min(available, rule.match or available)
    chosen = {}
    for name in rule.by:
        chance = _chance(scores.rows, f"{rule.seed} {name}")
        # In ascending order, so that validity is negated.
        ranked = {BOTH: ~passing, RANDOM: chance, VALIDITY: -scores.validity, REDUNDANCY: scores.redundancy}[name]
        order = np.lexsort((scores.rows, chance, ranked))[:size]
        rows = np.sort(scores.rows[order])
        if name in (BOTH, RANDOM):
            chosen[name] = ChosenSubset(rows)
        else:
            values = scores.validity if name == VALIDITY else scores.redundancy
            edge = float(values[order[-1]])
            chosen[name] = ChosenSubset(rows, edge, int((values == edge).sum()))
    return chosen


def overlaps(subsets: Mapping[str, ChosenSubset]) -> dict[str, int]:
    """Return the number of rows that each pair of subsets has in common."""
    return {
        f"{first} and {second}": len(np.intersect1d(subsets[first].rows, subsets[second].rows, assume_unique=True))
        for first, second in combinations(subsets, 2)
    }


def _chance(rows: Rows, salt: str) -> NDArray[np.uint64]:
    """Return a pseudo-random number for each row. It is derived from `salt` and the same on every machine."""
    hashes = (hashlib.blake2b(f"{salt} {row}".encode(), digest_size=8).digest() for row in rows)
    return np.fromiter((int.from_bytes(digest) for digest in hashes), np.uint64, len(rows))
