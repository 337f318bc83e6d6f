"""Evidence: how later sub-steps changed the verdict on earlier ones, and which of them did.

Verdicts are on validity. Sub-steps and steps are counted from 0, and `H` is the hindsight matrix (`Hindsight`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Floats, Hindsight, StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace


class Turn(StrEnum):
    """What gold says of a verdict that later steps turned: right now, wrong now, or nothing."""

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
    """What later steps made of the verdict on one step.

    `before` and `after` are its validity online and offline, the least of its sub-steps each. `substep` is the one
    that decides: the least valid in the mode in which the step is less valid, so that it crosses the threshold if
    the step does. `jump` is that one's largest in the direction of the change, None where nothing changed.
    `crosses`: the verdicts differ. `agrees`: whether the change is towards gold, None where gold is silent or
    nothing changed.
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
    def turn(self) -> Turn | None:
        """None where the verdict stayed what it was."""
        if not self.crosses:
            return None
        return {True: Turn.RIGHTED, False: Turn.MISLED, None: Turn.UNJUDGED}[self.agrees]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What a trace looks like offline without one of its sub-steps.

    `rows[k]` are the probabilities of sub-steps `0 … k` in the trace without sub-step `k + 1`, shape (k + 1, 3):
    a triangle of n - 1 rows for n sub-steps. What stands after the one left out is not kept.
    """

    rows: tuple[Floats, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def packed(self) -> Floats:
        """The rows one after the other, shape (n (n - 1) / 2, 3)."""
        return Hindsight(self.rows).packed

    def without(self, step: int) -> StepScores:
        """Sub-step `step` with each later one left out, in their order, shape (n - 1 - step, 3)."""
        return StepScores(np.array([row[step] for row in self.rows[step:]], np.float32).reshape(-1, 3))


@dataclass(frozen=True)
class Removal:
    """The validity of sub-step `step` offline, in the trace without the later sub-step `left_out`.

    `restores`: the verdict is then the online one again, which the whole trace had turned.
    """

    step: int
    left_out: int
    validity: float
    restores: bool


def jumps(hindsight: Hindsight) -> Floats:
    """`H[j, i] - H[j - 1, i]` of the validities at `[j, i]`, shape (n, n); 0 where `j <= i`."""
    n = len(hindsight)
    validity = np.zeros((n, n), np.float32)
    validity[np.tril_indices(n)] = StepScores(hindsight.packed).validity
    moved = np.zeros_like(validity)
    moved[1:] = np.diff(validity, axis=0)
    return np.tril(moved, -1)


def largest_jump(hindsight: Hindsight, step: int) -> Jump | None:
    """The largest change, up or down, of one sub-step as a later one was revealed, the first of equal ones; None
    where none changed it. Raises `IndexError` where there is no such sub-step."""
    validity = hindsight.reveal(step).validity
    moved = np.abs(np.diff(validity))
    return _jump(validity, step, int(moved.argmax())) if moved.any() else None


def revisions(hindsight: Hindsight, trace: Trace, threshold: float) -> list[Revision]:
    """A revision for each step of the trace; valid is what has at least the validity `threshold`."""
    before, after = (side.by_step(trace.owners).validity for side in (hindsight.online, hindsight.offline))
    return [
        _revision(hindsight, trace, step, float(early), float(late), _single(threshold))
        for step, (early, late) in enumerate(zip(before, after, strict=True))
    ]


def largest_revision(found: list[Revision], turn: Turn | None = None) -> Revision | None:
    """The one with the largest change, among those of a turn where it is given; None where there is none."""
    among = [revision for revision in found if turn is None or revision.turn == turn]
    return max(among, key=lambda revision: abs(revision.change), default=None)


def leave_one_out(scorer: Scorer, trace: Trace) -> LeftOut:
    """Score the trace offline without each of its sub-steps but the first: n - 1 passes for n sub-steps, whatever
    the number of earlier ones that are looked at. Raises `UserError` where the trace is too long."""
    judged = scorer.score(_shortened(trace), Mode.OFFLINE)
    return LeftOut(tuple(_offline(judgment)[:left_out] for left_out, judgment in enumerate(judged, start=1)))


def removals(hindsight: Hindsight, left_out: LeftOut, step: int, threshold: float) -> list[Removal]:
    """What leaving out each later sub-step does to one, that first which brings it nearest to, or furthest beyond,
    its online validity. Raises `ValueError` where the two are of traces of different length."""
    if len(left_out) != len(hindsight) - 1:
        raise ValueError(f"{len(left_out)} rows for {len(hindsight)} sub-steps, expected one less")
    online, offline = (float(side.validity[step]) for side in (hindsight.online, hindsight.offline))
    threshold = _single(threshold)
    turned = (online >= threshold) != (offline >= threshold)
    found = [
        Removal(step, later, float(value), turned and (value >= threshold) == (online >= threshold))
        for later, value in enumerate(left_out.without(step).validity, start=step + 1)
    ]
    back = 1 if online >= offline else -1
    return sorted(found, key=lambda removal: -back * removal.validity)


def _single(threshold: float) -> float:
    """A threshold as validities are: in single precision, where 0.7 is not below 0.7."""
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


def _jump_along(hindsight: Hindsight, step: int, sign: int) -> Jump | None:
    """The largest jump of a sub-step that goes up (1) or down (-1), None where there is none."""
    validity = hindsight.reveal(step).validity
    moved = sign * np.diff(validity)
    return _jump(validity, step, int(moved.argmax())) if (moved > 0).any() else None


def _jump(validity: Floats, step: int, place: int) -> Jump:
    return Jump(step, step + 1 + place, float(validity[place]), float(validity[place + 1]))


def _shortened(trace: Trace) -> Iterator[Trace]:
    texts = trace.substeps
    for left_out in range(1, len(texts)):
        yield Trace.of(trace.problem, [*texts[:left_out], *texts[left_out + 1 :]], id=trace.id)


def _offline(judgment: Judgment) -> Floats:
    assert judgment.offline is not None
    return judgment.offline.probs
