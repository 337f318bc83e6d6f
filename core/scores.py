"""What an evaluator says of a trace in one pass: three probabilities for each sub-step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import UserError
from core.label import Label

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class StepScores:
    """Probabilities of shape (n, 3), float32, columns neg, neu, pos (paper, eq. 1).

    Raises `ValueError` on another shape.
    """

    probs: Floats

    def __post_init__(self) -> None:
        probs = np.ascontiguousarray(self.probs, dtype=np.float32)
        if probs.ndim != 2 or probs.shape[1] != len(Label):
            raise ValueError(f"probabilities of shape {probs.shape}, expected (n, 3)")
        probs.setflags(write=False)
        object.__setattr__(self, "probs", probs)

    def __len__(self) -> int:
        return len(self.probs)

    @property
    def neg(self) -> Floats:
        return self.probs[:, Label.NEG]

    @property
    def neu(self) -> Floats:
        return self.probs[:, Label.NEU]

    @property
    def pos(self) -> Floats:
        return self.probs[:, Label.POS]

    @property
    def validity(self) -> Floats:
        """`s_val = p_pos + p_neu` of each sub-step, shape (n,)."""
        return self.pos + self.neu

    @property
    def redundancy(self) -> Floats:
        """`s_red = p_neu` of each sub-step, shape (n,)."""
        return self.neu

    def by_step(self, owners: ArrayLike) -> "StepScores":
        """One row per step: that of its least valid sub-step (ReasonEval's rule, min of `s_val`).

        `owners` gives the step of each sub-step (`Trace.owners`). The first of equal rows is taken.
        """
        owner = np.asarray(owners)
        order = np.lexsort((np.arange(len(owner)), self.validity, owner))
        first = np.unique(owner[order], return_index=True)[1]
        return StepScores(self.probs[order[first]])


@dataclass(frozen=True)
class Thresholds:
    """A step or solution is valid if `s_val >= validity`, redundant if `s_red >= redundancy` (paper, §3.1)."""

    validity: float = 0.5
    redundancy: float = 0.15

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Thresholds":
        """Raises `UserError` on an unknown key or a value outside 0 to 1."""
        for key, value in values.items():
            if key not in cls.__dataclass_fields__:
                raise UserError(f"there is no threshold {key!r}.", "The thresholds are validity and redundancy.")
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise UserError(f"the threshold {key} is {value!r:.40}, expected a number from 0 to 1.")
        return cls(**values)


@dataclass(frozen=True)
class Verdict:
    """A solution's scores, `min_i s_val` and `max_i s_red`, and what the thresholds make of them."""

    validity: float
    redundancy: float
    valid: bool
    redundant: bool


def judge_solution(scores: StepScores, thresholds: Thresholds | None = None) -> Verdict:
    """The verdict on the whole solution (paper, eq. 1). Raises `ValueError` where there is no step."""
    thresholds = thresholds or Thresholds()
    if not len(scores):
        raise ValueError("a solution without steps has no verdict")
    validity, redundancy = scores.validity.min(), scores.redundancy.max()
    # In single precision, as every comparison with a threshold is: 0.7 is not below 0.7.
    valid, redundant = validity >= thresholds.validity, redundancy >= thresholds.redundancy
    return Verdict(float(validity), float(redundancy), bool(valid), bool(redundant))
