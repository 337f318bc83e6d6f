"""The evaluator `equations`: a step is wrong in which an equation fails, and of a step without equations it says
nothing. It needs no weights, and no later step changes what it says of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from stepsight.core.equations.checker import check_steps
from stepsight.core.equations.checks import Check
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.abstract import RuleEvaluator
from stepsight.core.models.location import EQUATIONS
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.trace import Trace

VERSION = 1
"""Counted up when checks change, so that judgments of before are not taken for what they say now."""

_FAILS, _HOLDS, _NOTHING = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
# Traces whose checks are kept: a page asks for the same one for every part of it.
_KEPT = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class EquationsEvaluator(RuleEvaluator):
    """Judges by `check_steps`. Where a step has an equation, its sub-steps are right but for those in which one
    fails. The solution is wrong where an equation fails, right where all of them hold, and without a verdict where
    there is none."""

    name: str = EQUATIONS
    format: str = EQUATIONS
    outputs: Outputs = Outputs.CHECKS

    @property
    def fingerprint(self) -> str:
        return f"{EQUATIONS}:{VERSION}"

    @property
    def attention(self) -> str:
        return "causal"

    @property
    def described(self) -> str:
        return f"{self.name}: works out the equations of each step, and says nothing of a step without any."

    def judge(self, trace: Trace, mode: Mode) -> Judgment:
        checks = checks_of(trace)
        scores = StepScores(np.array(_rows(trace, checks), np.float32))
        said = [check.holds for part in checks for check in part]
        result = Hindsight.constant(scores) if mode == Mode.HINDSIGHT else scores
        return Judgment(trace, mode, result, float(all(said)) if said else None, _rationale(trace, checks))


def checks_of(trace: Trace) -> tuple[tuple[Check, ...], ...]:
    """The checks of each sub-step of a trace."""
    return _checks(trace.problem, trace.substeps)


@lru_cache(_KEPT)
def _checks(problem: str, substeps: tuple[str, ...]) -> tuple[tuple[Check, ...], ...]:
    return tuple(check_steps(problem, substeps))


def faults(checks: Sequence[Check]) -> list[Check]:
    """Those that fail, but for one that says of a longer stretch what is wrong within it: of x = 112/8 = 16 the
    quotient alone counts."""
    failing = [check for check in checks if not check.holds]

    def is_repeated(check: Check) -> bool:
        inner = [(one.start, one.end) for one in failing if (one.start, one.end) != (check.start, check.end)]
        return any(check.start <= start and end <= check.end for start, end in inner)

    return [check for check in failing if not is_repeated(check)]


def finding(text: str, check: Check) -> str:
    """What is wrong with an equation of a text: "74 − 5 = 70: is 69"."""
    equation = " ".join(text[check.start : check.end].split())
    return f"{equation}: is {check.right}" if check.right else f"{equation}: does not hold"


def _rows(trace: Trace, checks: Sequence[Sequence[Check]]) -> list[tuple[float, float, float]]:
    owners = trace.owners.tolist()
    spoken = {owner for owner, part in zip(owners, checks, strict=True) if part}
    return [
        _FAILS if not all(check.holds for check in part) else _HOLDS if owner in spoken else _NOTHING
        for owner, part in zip(owners, checks, strict=True)
    ]


def _rationale(trace: Trace, checks: Sequence[Sequence[Check]]) -> str:
    lines = [
        f"Step {owner + 1}: {finding(text, check)}."
        for owner, text, part in zip(trace.owners.tolist(), trace.substeps, checks, strict=True)
        for check in faults(part)
    ]
    return "\n".join(lines)
