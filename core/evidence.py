"""Evidence from later steps: how each sub-step changed the verdicts on earlier ones.

Verdicts are on validity. Sub-steps and steps are counted from 0, and `H` is the hindsight matrix (`Hindsight`).
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Trace


class Flip(StrEnum):
    """A verdict that later steps reversed: now right by the gold, now wrong, or without gold."""

    RIGHTED = "wrong-to-right"
    MISLED = "right-to-wrong"
    UNJUDGED = "unjudged"


@dataclass(frozen=True)
class Jump:
    """The validity of sub-step `step` before and after sub-step `revealed` came into view: `H[revealed - 1, step]`
    and `H[revealed, step]`."""

    step: int
    revealed: int
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class Revision:
    """The change of one step's verdict by later steps.

    `before` and `after` are its validity online and offline, the least of its sub-steps each. `substep` is the one
    that decides: the least valid in the mode in which the step is less valid, so that it crosses the threshold if
    the step does. `jump` is its largest in the direction of the change, None if nothing changed. `crosses` is True
    if the verdicts differ, `agrees` if the change is towards the gold; the latter is None without gold or change.
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
        """The kind of reversal, None if the verdict stayed."""
        if not self.crosses:
            return None
        return {True: Flip.RIGHTED, False: Flip.MISLED, None: Flip.UNJUDGED}[self.agrees]


def largest_jump(hindsight: Hindsight, step: int) -> Jump | None:
    """The largest change in a sub-step's validity when a sub-step of a later step was revealed, the first of equal
    ones; None if there was no change. Raises `IndexError` if there is no such sub-step."""
    validity, first = _after_online(hindsight, step)
    moved = np.abs(np.diff(validity))
    return _jump(validity, step, first, int(moved.argmax())) if moved.any() else None


def revisions(hindsight: Hindsight, trace: Trace, threshold: float) -> list[Revision]:
    """The revision of each step of the trace; a step is valid if its validity reaches `threshold`."""
    before, after = (side.by_step(trace.owners).validity for side in (hindsight.online, hindsight.offline))
    return [
        _revision(hindsight, trace, step, float(early), float(late), _single(threshold))
        for step, (early, late) in enumerate(zip(before, after, strict=True))
    ]


def largest_revision(candidates: list[Revision], flip: Flip | None = None) -> Revision | None:
    """The revision with the largest change, among those with the given `flip` if any; None if there is none."""
    chosen = [revision for revision in candidates if flip is None or revision.flip == flip]
    return max(chosen, key=lambda revision: abs(revision.change), default=None)


def _single(threshold: float) -> float:
    """A threshold in single precision, as validities are: 0.7 is not below 0.7."""
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
    """A sub-step's largest jump up (`sign` 1) or down (-1)."""
    validity, first = _after_online(hindsight, step)
    return _jump(validity, step, first, int((sign * np.diff(validity)).argmax()))


def _after_online(hindsight: Hindsight, step: int) -> tuple[Floats32, int]:
    """A sub-step's validity in each row from the one that completes its step, and the index of that row."""
    validity, first = hindsight.reveal(step).validity, hindsight.end(step)
    return validity[first - step :], first


def _jump(validity: Floats32, step: int, first: int, place: int) -> Jump:
    return Jump(step, first + 1 + place, float(validity[place]), float(validity[place + 1]))
