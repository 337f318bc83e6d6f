"""The scores of a trace: the probabilities of each sub-step, verdicts at thresholds, and the hindsight matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stepsight.core.arrays import AnyInts, Floats32, Ints
from stepsight.core.errors import UserError
from stepsight.core.trace import Label


@dataclass(frozen=True, eq=False)
class StepScores:
    """The label probabilities of each sub-step (paper, eq. 1). `probs` is float32 of shape (n, 3) with columns neg,
    neu, pos.

    An ensemble also gives `spread`, of shape (n,): the standard deviation of its members' validity, a measure of
    uncertainty. Raises `ValueError` if an array has any other shape.
    """

    probs: Floats32
    spread: Floats32 | None = None

    def __post_init__(self) -> None:
        probs = np.ascontiguousarray(self.probs, dtype=np.float32)
        if probs.ndim != 2 or probs.shape[1] != len(Label):
            raise ValueError(f"probabilities of shape {probs.shape}, expected (n, 3)")
        if self.spread is not None and self.spread.shape != probs.shape[:1]:
            raise ValueError(f"a spread of shape {self.spread.shape}, expected ({len(probs)},)")
        probs.setflags(write=False)
        object.__setattr__(self, "probs", probs)

    @classmethod
    def from_rows(cls, rows: Floats32) -> "StepScores":
        """Build scores from a model's output of shape (n, 3), or (n, 4) if the last column is the spread."""
        return cls(rows[:, : len(Label)], rows[:, len(Label)] if rows.shape[1] > len(Label) else None)

    def __len__(self) -> int:
        return len(self.probs)

    @property
    def neg(self) -> Floats32:
        return self.probs[:, Label.NEG]

    @property
    def neu(self) -> Floats32:
        return self.probs[:, Label.NEU]

    @property
    def pos(self) -> Floats32:
        return self.probs[:, Label.POS]

    @property
    def validity(self) -> Floats32:
        """The validity `s_val = p_pos + p_neu` of each sub-step, with shape (n,)."""
        return self.pos + self.neu

    @property
    def redundancy(self) -> Floats32:
        """The redundancy `s_red = p_neu` of each sub-step, with shape (n,)."""
        return self.neu

    def by_step(self, owners: ArrayLike) -> "StepScores":
        """Return one row per step, taken from its least valid sub-step (ReasonEval's rule, the minimum of `s_val`).

        `owners` gives the step of each sub-step (`Trace.owners`). If several sub-steps are equally valid, the first
        is used.
        """
        least = least_valid(self.validity, np.asarray(owners))
        return StepScores(self.probs[least], None if self.spread is None else self.spread[least])


def least_valid(validity: Floats32, owners: AnyInts) -> Ints:
    """Return the index of the least valid sub-step of each step, with shape (steps,).

    If several are equally valid, the first is chosen. `owners` gives the step of each sub-step, in ascending order.
    """
    order: Ints = np.lexsort((np.arange(len(owners)), validity, owners))
    return order[first_of_steps(owners)]


def first_of_steps(owners: AnyInts) -> Ints:
    """Return the index of the first sub-step of each step, with shape (steps,). `owners` gives the step of each
    sub-step, in ascending order."""
    # `np.diff` with a prepended value would take three times as long for a trace.
    return np.flatnonzero(owners != np.append(-1, owners[:-1]))


@dataclass(frozen=True)
class Thresholds:
    """The thresholds for verdicts (paper, §3.1). A step or solution is valid if `s_val >= validity`, and redundant
    if `s_red >= redundancy`."""

    validity: float = 0.5
    redundancy: float = 0.15

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Thresholds":
        """Build thresholds from a mapping. Raises `UserError` if a key is unknown or a value is not between 0 and
        1."""
        for key, value in values.items():
            if key not in cls.__dataclass_fields__:
                raise UserError(f"there is no threshold {key!r}.", "The thresholds are validity and redundancy.")
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise UserError(f"the threshold {key} is {value!r:.40}, expected a number from 0 to 1.")
        return cls(**values)


@dataclass(frozen=True)
class Verdict:
    """The scores of a whole solution, `min_i s_val` and `max_i s_red`, and its verdicts at the thresholds."""

    validity: float
    redundancy: float
    valid: bool
    redundant: bool


def judge_solution(scores: StepScores, thresholds: Thresholds | None = None) -> Verdict:
    """Return the verdict on the whole solution (paper, eq. 1). Raises `ValueError` if there are no steps."""
    thresholds = thresholds or Thresholds()
    if not len(scores):
        raise ValueError("a solution without steps has no verdict")
    validity, redundancy = scores.validity.min(), scores.redundancy.max()
    # In single precision, like every comparison with a threshold, so that 0.7 is not below 0.7.
    valid, redundant = validity >= thresholds.validity, redundancy >= thresholds.redundancy
    return Verdict(float(validity), float(redundancy), bool(valid), bool(redundant))


@dataclass(frozen=True, eq=False)
class Hindsight:
    """The hindsight matrix: `H[j, i] = p(sub-step i | q, h_1 … h_j)` for `i <= j`, 0-based.

    `rows[j]` has the shape (j + 1, 3), with columns neg, neu, pos. The last row is the offline result. Online, a
    sub-step is judged once its step is complete, because the paper's prefixes `(q, h_1 … h_i)` end with labelled
    steps. `ends[i]` is the row in which the step of sub-step `i` is complete (`Trace.step_ends`). If `ends` is
    None, the steps have no sub-steps and the online result is the diagonal. `spread` has the shape (n,) and is the
    spread of a causal ensemble (see `StepScores`), which is the same in every row.

    Raises `ValueError` if the rows are not a lower triangle.
    """

    rows: tuple[Floats32, ...]
    spread: Floats32 | None = None
    ends: Ints | None = None

    def __post_init__(self) -> None:
        for length, row in enumerate(self.rows, start=1):
            if row.shape != (length, 3):
                raise ValueError(f"row {length} of the triangle has shape {row.shape}, expected ({length}, 3)")

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def constant(cls, scores: StepScores) -> "Hindsight":
        """Build the hindsight matrix of a causal evaluator. Its columns are constant, because later steps change
        nothing."""
        return cls(tuple(scores.probs[: j + 1] for j in range(len(scores))), scores.spread)

    @classmethod
    def from_packed(cls, packed: Floats32, spread: Floats32 | None = None) -> "Hindsight":
        """Rebuild a triangle from its `packed` array. Raises `ValueError` if the length does not fit."""
        n = int((np.sqrt(8 * len(packed) + 1) - 1) / 2)
        if n * (n + 1) // 2 != len(packed):
            raise ValueError(f"{len(packed)} entries do not fill a triangle")
        starts = [j * (j + 1) // 2 for j in range(n)]
        return cls(tuple(packed[start : start + j + 1] for j, start in enumerate(starts)), spread)

    @property
    def packed(self) -> Floats32:
        """The rows, concatenated, with shape (n (n + 1) / 2, 3)."""
        return np.concatenate(self.rows) if self.rows else np.zeros((0, 3), np.float32)

    @cached_property
    def _validity(self) -> Floats32:
        return StepScores(self.packed).validity

    def column(self, i: int) -> Floats32:
        """Return the validity of sub-step `i` in each row, starting with the one in which its own step is
        complete."""
        rows = np.arange(self.end(i), len(self))
        return self._validity[rows * (rows + 1) // 2 + i]

    @cached_property
    def online(self) -> StepScores:
        """The scores of each sub-step when the evaluator sees nothing after the sub-step's own step."""
        return StepScores(
            np.concatenate([self.rows[self.end(i)][i : i + 1] for i in range(len(self))]), self.spread
        )

    def end(self, i: int) -> int:
        """Return the index of the row that holds the online scores of sub-step `i`."""
        return i if self.ends is None else int(self.ends[i])

    @property
    def offline(self) -> StepScores:
        """The scores of each sub-step when the evaluator sees the whole solution. This is the last row."""
        return StepScores(self.rows[-1], self.spread)

    def reveal(self, i: int) -> StepScores:
        """Return column `i`: the scores of sub-step `i` after each of `h_i … h_n` is revealed, with shape (n - i,
        3). Raises `IndexError` if there is no sub-step `i`."""
        if not 0 <= i < len(self.rows):
            raise IndexError(f"sub-step {i} of {len(self.rows)}")
        return StepScores(np.concatenate([row[i : i + 1] for row in self.rows[i:]]))

    @property
    def retroactive(self) -> Floats32:
        """The offline minus the online validity of each sub-step, `H[n, i] - H[end(i), i]`, with shape (n,)."""
        return self.offline.validity - self.online.validity


class Outputs(StrEnum):
    """The kind of output that an evaluator gives.

    - `three-way`: probabilities of neg, neu and pos for each sub-step.
    - `validity`: one number for each sub-step, taken as `s_val`.
    - `solution`: one number for the whole solution.
    - `verdict`: a verdict on the whole solution, and the steps that make it wrong.
    - `checks`: for some steps, "wrong" or "everything that was checked is right"; nothing for the other steps.

    Only three-way outputs and verdicts can express redundancy.
    """

    THREE_WAY = "three-way"
    VALIDITY = "validity"
    SOLUTION = "solution"
    VERDICT = "verdict"
    CHECKS = "checks"

    @property
    def has_redundancy(self) -> bool:
        """True if the evaluator can call a solution redundant."""
        return self in (Outputs.THREE_WAY, Outputs.VERDICT)

    @property
    def has_steps(self) -> bool:
        return self != Outputs.SOLUTION

    @property
    def has_scores(self) -> bool:
        """True if the evaluator gives scores that can be ranked. Verdicts alone have no ROC curve."""
        return not self.in_words

    @property
    def in_words(self) -> bool:
        """True if the evaluator only calls steps right or wrong, without giving a number."""
        return self in (Outputs.VERDICT, Outputs.CHECKS)


def verdict_word(probs: Sequence[float] | Floats32, thresholds: Thresholds, outputs: Outputs) -> str:
    """Return the verdict on a sub-step with the probabilities `probs`: "valid", "redundant" or "not valid"."""
    # In single precision, as in `judge_solution`.
    _, neu, pos = np.asarray(probs, np.float32)
    if neu + pos < thresholds.validity:
        return "not valid"
    return "redundant" if outputs == Outputs.THREE_WAY and neu >= thresholds.redundancy else "valid"
