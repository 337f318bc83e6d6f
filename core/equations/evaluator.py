"""The evaluator `equations`, which calls a step wrong if one of its equations fails.

A step without equations gets no verdict. The evaluator needs no weights, and later steps never change a verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import numpy as np

from stepsight.core.equations.checker import Checker
from stepsight.core.equations.checks import Check
from stepsight.core.equations.wording import finding
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.evaluator_base import RuleEvaluator
from stepsight.core.models.location import EQUATIONS
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.trace import Trace

VERSION = 4
"""Incremented whenever checks change, so that earlier judgments are not mistaken for current ones."""

_FAILS, _HOLDS, _NOTHING = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
# The number of traces whose checks are cached, since each part of a page asks for them.
_KEPT = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class EquationsEvaluator(RuleEvaluator):
    """An evaluator that judges steps with a `Checker`.

    If a step contains equations, its sub-steps with a failing equation are wrong and its other sub-steps are right.
    The solution is wrong if any equation fails and right if all hold; without equations it gets no verdict.
    """

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


def checks_of(trace: Trace, count: int | None = None) -> tuple[tuple[Check, ...], ...]:
    """Return the checks of the first `count` sub-steps of a trace, or of all. Later sub-steps do not affect these
    checks and are not checked."""
    return _checks(trace.problem, trace.substeps).first(len(trace.substeps) if count is None else count)


class _Checks:
    """The checks of a solution, computed as far as they have been requested."""

    def __init__(self, problem: str, substeps: tuple[str, ...]) -> None:
        self._substeps = substeps
        self._checker = Checker(problem)
        self._done: list[tuple[Check, ...]] = []
        self._lock = Lock()

    def first(self, count: int) -> tuple[tuple[Check, ...], ...]:
        with self._lock:
            for text in self._substeps[len(self._done) : count]:
                self._done.append(self._checker.check(text))
            return tuple(self._done[:count])


_checks = lru_cache(_KEPT)(_Checks)


def faults(checks: Sequence[Check]) -> list[Check]:
    """Return the failing checks without those that only fail because they contain a smaller failing equation. In x
    = 112/8 = 16, for example, only the check of 112/8 = 16 is returned."""
    failing = [check for check in checks if not check.holds]

    def is_repeated(check: Check) -> bool:
        inner = [(one.start, one.end) for one in failing if (one.start, one.end) != (check.start, check.end)]
        return any(check.start <= start and end <= check.end for start, end in inner)

    return [check for check in failing if not is_repeated(check)]


def _rows(trace: Trace, checks: Sequence[Sequence[Check]]) -> list[tuple[float, float, float]]:
    owners = trace.owners.tolist()
    spoken = {owner for owner, part in zip(owners, checks, strict=True) if part}
    return [
        _FAILS if not all(check.holds for check in part) else _HOLDS if owner in spoken else _NOTHING
        for owner, part in zip(owners, checks, strict=True)
    ]


def _rationale(trace: Trace, checks: Sequence[Sequence[Check]]) -> str:
    lines = [
        f"Step {owner + 1}: {finding(trace, i, check)}."
        for i, (owner, part) in enumerate(zip(trace.owners.tolist(), checks, strict=True))
        for check in faults(part)
    ]
    return "\n".join(lines)
