"""Evidence from later steps: how each sub-step changed the verdicts on earlier steps.

Verdicts are on validity. Sub-steps and steps are counted from 0, and `H` is the hindsight matrix (`Hindsight`).
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Trace


class Flip(StrEnum):
    """The kind of verdict reversal caused by later steps.

    With RIGHTED the new verdict agrees with the gold, with MISLED it contradicts the gold, and with UNJUDGED there
    is no gold.
    """

    RIGHTED = "wrong-to-right"
    MISLED = "right-to-wrong"
    UNJUDGED = "unjudged"


@dataclass(frozen=True)
class Jump:
    """The validity of sub-step `step` before and after sub-step `revealed` came into view.

    The two values are `H[revealed - 1, step]` and `H[revealed, step]`.
    """

    step: int
    revealed: int
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class Revision:
    """The change that later steps made to the verdict on one step.

    `before` and `after` are the step's validity online and offline, in each case the minimum over its sub-steps.
    `substep` is the sub-step that decides the verdict: the least valid one in the mode in which the step is less
    valid, so that it crosses the threshold if the step does. `jump` is the largest jump of that sub-step in the
    direction of the change, or None if nothing changed. `crosses` is True if the two verdicts differ. `agrees` is
    True if the change is towards the gold, and None if there is no gold or no change.
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
    """Return the largest change in a sub-step's validity caused by revealing a sub-step of a later step.

    Returns the first of equally large jumps, and None if nothing changed. Raises `IndexError` if there is no such
    sub-step.
    """
    validity, first = _after_online(hindsight, step)
    moved = np.abs(np.diff(validity))
    return _jump(validity, step, first, int(moved.argmax())) if moved.any() else None


def revisions(hindsight: Hindsight, trace: Trace, threshold: float) -> list[Revision]:
    """Return the revision of each step of the trace. A step is valid if its validity reaches `threshold`."""
    before, after = (side.by_step(trace.owners).validity for side in (hindsight.online, hindsight.offline))
    return [
        _revision(hindsight, trace, step, float(early), float(late), _single(threshold))
        for step, (early, late) in enumerate(zip(before, after, strict=True))
    ]


def largest_revision(candidates: list[Revision], flip: Flip | None = None) -> Revision | None:
    """Return the revision with the largest change, or None if there is none.

    If `flip` is given, only revisions with that kind of reversal are considered.
    """
    chosen = [revision for revision in candidates if flip is None or revision.flip == flip]
    return max(chosen, key=lambda revision: abs(revision.change), default=None)


def _single(threshold: float) -> float:
    """Round a threshold to single precision, like the validities, so that 0.7 is not below 0.7."""
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
    """Return the largest jump of a sub-step upwards (`sign` is 1) or downwards (-1)."""
    validity, first = _after_online(hindsight, step)
    return _jump(validity, step, first, int((sign * np.diff(validity)).argmax()))


def _after_online(hindsight: Hindsight, step: int) -> tuple[Floats32, int]:
    """Return a sub-step's validity in every row from the one that completes its step, and the index of that row."""
    validity, first = hindsight.reveal(step).validity, hindsight.end(step)
    return validity[first - step :], first


def _jump(validity: Floats32, step: int, first: int, place: int) -> Jump:
    return Jump(step, first + 1 + place, float(validity[place]), float(validity[place + 1]))
