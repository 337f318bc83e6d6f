"""The evaluator `equations`, which calls a step wrong if one of its equations fails, and words for what fails.

A step without equations gets no verdict. The evaluator needs no weights, and later steps never change a verdict.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from threading import Lock

import numpy as np

from stepsight.core.equations.assertion import REMAINDER
from stepsight.core.equations.checker import Checker
from stepsight.core.equations.checks import Check, Method
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.evaluator_base import RuleEvaluator
from stepsight.core.models.location import EQUATIONS
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.text.signs import comparable
from stepsight.core.trace import Trace

_RELATION = r"(?:[=≈]|\\approx(?![a-z])|\b[a-z]+\b)"
_AT_START = re.compile(rf"(?<![\s$&])[\s$&]*{_RELATION}[\s$&]*")
_AT_END = re.compile(f"{_AT_START.pattern}$")
_WITH_UNIT = re.compile(r"^([-−]?\d[\d.,]*)\s+[A-Za-z][^\d=]*$")
_DECIMAL = re.compile(r"-?\d+\.\d+")
_FRACTION = re.compile(r"-?\d+/\d+")
_TEX = re.compile(r"[\\^_{}]")
_LONG_POWER = re.compile(r"\^(-?\d{2,})")
_ENDS_OF_CELLS = re.compile(r"(?<![\\\s&])(?:\\\\|[\s&])+$")


def finding(trace: Trace, i: int, check: Check) -> str:
    """Say in a clause what is right in place of a failing equation of sub-step `i`, for example "74 − 5 is 69, not
    70". Formulas in LaTeX stand between dollar signs."""
    text = trace.substeps[i]
    right = _formula(check.expected)
    if check.method is Method.SOLUTION:
        return _describe_unknown(text, check)
    before, after = text[check.start : check.fault_start], text[check.fault_end : check.end]
    stated = _formula(_WITH_UNIT.sub(r"\1", text[check.fault_start : check.fault_end]))
    if "remainder" in right and (rest := REMAINDER.match(text, check.fault_end)):
        stated = text[check.fault_start : rest.end()]
    else:
        right = _write_like(stated, right)
    other = _AT_END.sub("", before) if before else _AT_START.sub("", after, count=1)
    # A side that cannot be worked out further, such as x^2 + 1, is not repeated.
    is_same = re.sub(r"[\s$]", "", other) == re.sub(r"[\s$]", "", right)
    return f"{_formula(other)} is {'' if is_same else f'{right}, '}not {stated}"


def _describe_unknown(text: str, check: Check) -> str:
    """Describe an equation with unknowns that an earlier one refutes. `check.expected` is the solution of that one,
    or the equation itself if its solutions are not rational."""
    written = _formula(text[check.start : check.end])
    name, _, values = check.expected.partition(" = ")
    if not check.expected:
        return f"{written} contradicts the equations before it"
    if not name.isalpha():
        return f"{written} does not follow from {_formula(check.expected)}"
    solution = f"{name} is {values.replace(f'{name} = ', '')}"
    if check.sides:
        sides = " and ".join(f"{_formula(text[a:b])} is {value}" for a, b, value in check.sides if value)
        others = [f"not {_formula(text[a:b])}" for a, b, value in check.sides if not value]
        return ", ".join([f"{solution}, so {sides}", *others])
    if check.fault_start == check.start:
        return f"{written} does not fit, since {solution}"
    return f"{solution}, not {_formula(text[check.fault_start : check.fault_end])}"


def _write_like(stated: str, right: str) -> str:
    """Return a number written like another: with as many decimals, or as a fraction."""
    is_fraction = "/" in stated or "frac" in stated
    if _FRACTION.fullmatch(right) and not is_fraction:
        return f"about {float(Fraction(right)):.{max(2, len(stated.partition('.')[2]))}f}"
    if not _DECIMAL.fullmatch(right):
        return right
    if is_fraction:
        return str(Fraction(right))
    decimals = stated.partition(".")[2]
    return right + "0" * (len(decimals) - len(right.partition(".")[2])) if decimals.isdecimal() else right


def _formula(text: str) -> str:
    """Return a piece of a text on one line, between dollar signs if it is in LaTeX."""
    piece = " ".join(_ENDS_OF_CELLS.sub("", text).split())
    if "$" in piece.strip("$ ") or not _TEX.search(piece):
        return piece
    formula = _LONG_POWER.sub(r"^{\1}", piece.strip("$ "))
    return f"${formula}$"


VERSION = 4
"""Incremented whenever checks change, so that earlier judgments are not mistaken for current ones."""

_FAILS, _HOLDS, _NOTHING = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
# The number of traces whose checks are cached, since every part of a page needs them.
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
        return f"{self.name}: checks the equations of each step, and gives no verdict on a step without equations."

    def judge(self, trace: Trace, mode: Mode) -> Judgment:
        checks = checks_of(trace)
        scores = StepScores(np.array(_rows(trace, checks), np.float32))
        holds = [check.holds for part in checks for check in part]
        result = Hindsight.constant(scores) if mode == Mode.HINDSIGHT else scores
        return Judgment(trace, mode, result, float(all(holds)) if holds else None, _rationale(trace, checks))


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
    places = {(check.start, check.end) for check in failing}

    def is_repeated(check: Check) -> bool:
        others = places - {(check.start, check.end)}
        return any(check.start <= start and end <= check.end for start, end in others)

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


@dataclass(frozen=True)
class FailingEquation:
    """A failing equation of sub-step `substep`. `contradicted` holds the later sub-steps that contradict it. Both
    count from 0."""

    substep: int
    check: Check
    contradicted: tuple[int, ...]


def failing_equations(trace: Trace) -> list[FailingEquation]:
    """Return the failing equations of a solution in order, each with the later sub-steps that contradict it."""
    checks, texts = checks_of(trace), trace.substeps
    return [
        FailingEquation(
            place,
            check,
            tuple(
                later
                for later in range(place + 1, len(texts))
                if _contradicts(texts[later], checks[later], *_sides(texts[place], check))
            ),
        )
        for place, part in enumerate(checks)
        for check in faults(part)
    ]


def _sides(text: str, check: Check) -> tuple[str, str]:
    """Return the calculation in a failing equation and its wrong value, or two empty strings if no side is known to
    be at fault."""
    wrong = text[check.fault_start : check.fault_end]
    if not wrong:
        return "", ""
    is_last = check.end - check.fault_end < check.fault_start - check.start
    rest = text[check.start : check.fault_start] if is_last else text[check.fault_end : check.end]
    return _normalise_formula(rest).strip("="), _normalise_formula(wrong)


def _contradicts(text: str, checks: Sequence[Check], calculation: str, wrong: str) -> bool:
    correct = [_normalise_formula(text[check.start : check.end]) for check in checks if check.holds]
    if not correct or not wrong:
        return False
    if calculation and any(calculation in re.split("=", equation) for equation in correct):
        return True
    value = rf"(?<![\w.]){re.escape(wrong)}(?![\w]|\.\d)"
    denial = rf"\bnot\s+{value}|{value}\s+is\s+(?:wrong|false|incorrect)\b"
    return re.search(denial, comparable(text).replace("$", "")) is not None


def _normalise_formula(text: str) -> str:
    """Return a formula in a uniform spelling: with plain signs, and without white space and dollar signs."""
    return re.sub(r"[\s$]", "", re.sub(r"\\(?:cdot|times)(?![a-z])", "*", comparable(text)))
