"""The hindsight matrix: every step judged after every later step."""

from dataclasses import dataclass

import numpy as np

from core.scores import Floats, StepScores


@dataclass(frozen=True, eq=False)
class Hindsight:
    """`H[j, i] = p(sub-step i | q, h_1 … h_j)` for `i <= j`, 0-based.

    `rows[j]` has shape (j + 1, 3), columns neg, neu, pos. The diagonal is the online result, the last row the
    offline one. Raises `ValueError` where the rows are not a lower triangle.
    """

    rows: tuple[Floats, ...]

    def __post_init__(self) -> None:
        for length, row in enumerate(self.rows, start=1):
            if row.shape != (length, 3):
                raise ValueError(f"row {length} of the triangle has shape {row.shape}, expected ({length}, 3)")

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def constant(cls, scores: StepScores) -> "Hindsight":
        """The triangle of a causal evaluator: later steps change nothing, so each column is constant."""
        return cls(tuple(scores.probs[: j + 1] for j in range(len(scores))))

    @classmethod
    def from_packed(cls, packed: Floats) -> "Hindsight":
        """The inverse of `packed`. Raises `ValueError` where the length is no triangular number."""
        n = int((np.sqrt(8 * len(packed) + 1) - 1) / 2)
        if n * (n + 1) // 2 != len(packed):
            raise ValueError(f"{len(packed)} entries do not fill a triangle")
        starts = [j * (j + 1) // 2 for j in range(n)]
        return cls(tuple(packed[start : start + j + 1] for j, start in enumerate(starts)))

    @property
    def packed(self) -> Floats:
        """The rows one after the other, shape (n (n + 1) / 2, 3)."""
        return np.concatenate(self.rows) if self.rows else np.zeros((0, 3), np.float32)

    @property
    def online(self) -> StepScores:
        """Each sub-step judged with nothing after it: the diagonal."""
        return StepScores(np.stack([row[-1] for row in self.rows]))

    @property
    def offline(self) -> StepScores:
        """Each sub-step judged with the whole solution in view: the last row."""
        return StepScores(self.rows[-1])

    def reveal(self, i: int) -> StepScores:
        """Column `i`: the verdict on sub-step `i` after each of `h_i … h_n`, shape (n - i, 3)."""
        if not 0 <= i < len(self.rows):
            raise IndexError(f"sub-step {i} of {len(self.rows)}")
        return StepScores(np.stack([row[i] for row in self.rows[i:]]))

    @property
    def retroactive(self) -> Floats:
        """Offline minus online validity of each sub-step, `H[n, i] - H[i, i]`, shape (n,)."""
        return self.offline.validity - self.online.validity
