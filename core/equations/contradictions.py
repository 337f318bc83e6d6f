"""Failing equations of a solution, and the later steps that contradict them.

A later sub-step contradicts a failing equation if it has an equation that holds and does one of two things: it
repeats the calculation, or it calls the wrong value wrong ("…, not 228", "so 16 is wrong"). The rule is our own. It
misses contradictions in other wordings, and those that follow from other values.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stepsight.core.equations.checks import Check
from stepsight.core.equations.evaluator import checks_of, faults
from stepsight.core.text.signs import comparable
from stepsight.core.trace import Trace


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
    return _packed(rest).strip("="), _packed(wrong)


def _contradicts(text: str, checks: Sequence[Check], calculation: str, wrong: str) -> bool:
    held = [_packed(text[check.start : check.end]) for check in checks if check.holds]
    if not held or not wrong:
        return False
    if calculation and any(calculation in re.split("=", equation) for equation in held):
        return True
    value = rf"(?<![\w.]){re.escape(wrong)}(?![\w]|\.\d)"
    said = comparable(text).replace("$", "")
    return re.search(rf"\bnot\s+{value}|{value}\s+is\s+(?:wrong|false|incorrect)\b", said) is not None


def _packed(text: str) -> str:
    """Return a formula in a uniform spelling: with plain signs, and without white space and dollar signs."""
    return re.sub(r"[\s$]", "", re.sub(r"\\(?:cdot|times)(?![a-z])", "*", comparable(text)))
