"""Evidence from later steps: how each newly revealed sub-step changed the verdicts on earlier steps.

Verdicts here concern validity. Sub-steps and steps are counted from 0, and `H` is the hindsight matrix
(`Hindsight`).
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stepsight.core.scores import Hindsight
from stepsight.core.trace import Trace


class Flip(StrEnum):
    """The kind of verdict reversal caused by later steps.

    RIGHTED means that the new verdict agrees with the gold label, MISLED that it contradicts the gold label, and
    UNJUDGED that there is no gold label.
    """

    RIGHTED = "wrong-to-right"
    MISLED = "right-to-wrong"
    UNJUDGED = "unjudged"


@dataclass(frozen=True)
class Jump:
    """The validity of sub-step `step` just before (`before`) and just after (`after`) the evaluator is shown
    sub-step `revealed`: `H[revealed - 1, step]` and `H[revealed, step]`."""

    step: int
    revealed: int
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class Revision:
    """The change in the verdict on one step caused by later steps.

    `before` and `after` are the step's online and offline validity, each the minimum over its sub-steps. `substep`
    is the sub-step that decides the verdict: the least valid one in the mode, online or offline, in which the step
    has the lower validity, so that it crosses the threshold if the step does. `jump` is the largest jump of that
    sub-step in the direction of the change, or None if nothing changed. `crosses` is True if the online and offline
    verdicts differ. `agrees` is True if the change is towards the gold label, and None if there is no gold label or
    no change.
    """

    step: int
    substep: int
    before: float
    after: float
    jump: Jump | None
    crosses: bool
    agrees: bool | None

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def flip(self) -> Flip | None:
        """The kind of reversal, or None if the verdict did not change."""
        if not self.crosses:
            return None
        return {True: Flip.RIGHTED, False: Flip.MISLED, None: Flip.UNJUDGED}[self.agrees]


def largest_jump(hindsight: Hindsight, step: int) -> Jump | None:
    """Return the largest change in the validity of sub-step `step` caused by revealing a sub-step of a later step.

    If several changes are equally large, the first is returned. Returns None if the validity never changed. Raises
    `IndexError` if there is no sub-step `step`.
    """
    if not 0 <= step < len(hindsight):
        raise IndexError(f"sub-step {step} of {len(hindsight)}")
    moved = np.abs(np.diff(hindsight.column(step)))
    return _jump(hindsight, step, int(moved.argmax())) if moved.any() else None


def revisions(hindsight: Hindsight, trace: Trace, threshold: float) -> list[Revision]:
    """Return the revision of each step of the trace. A step counts as valid if its validity reaches `threshold`."""
    before, after = (side.by_step(trace.owners).validity for side in (hindsight.online, hindsight.offline))
    return [
        _revision(hindsight, trace, step, float(early), float(late), _single(threshold))
        for step, (early, late) in enumerate(zip(before, after, strict=True))
    ]


def largest_revision(candidates: list[Revision], flip: Flip | None = None) -> Revision | None:
    """Return the candidate with the largest change, or None if there is no candidate. If `flip` is given, only
    candidates with that kind of reversal are considered."""
    chosen = [revision for revision in candidates if flip is None or revision.flip == flip]
    return max(chosen, key=lambda revision: abs(revision.change), default=None)


def _single(threshold: float) -> float:
    """Round a threshold to single precision, like the validities, so that a validity of 0.7 reaches a threshold of
    0.7."""
    return float(np.float32(threshold))


def _revision(
    hindsight: Hindsight, trace: Trace, step: int, before: float, after: float, threshold: float
) -> Revision:
    own = np.flatnonzero(trace.owners == step)
    fell = after < before
    deciding = hindsight.offline if fell else hindsight.online
    substep = int(own[deciding.validity[own].argmin()])
    gold = trace.steps[step].valid
    return Revision(
        step,
        substep,
        before,
        after,
        _jump_along(hindsight, substep, -1 if fell else 1) if after != before else None,
        (before >= threshold) != (after >= threshold),
        None if gold is None or after == before else gold is not fell,
    )


def _jump_along(hindsight: Hindsight, step: int, sign: int) -> Jump:
    """Return the largest upward (`sign` is 1) or downward (`sign` is -1) jump of sub-step `step`."""
    return _jump(hindsight, step, int((sign * np.diff(hindsight.column(step))).argmax()))


def _jump(hindsight: Hindsight, step: int, place: int) -> Jump:
    validity = hindsight.column(step)
    revealed = hindsight.end(step) + 1 + place
    return Jump(step, revealed, float(validity[place]), float(validity[place + 1]))
