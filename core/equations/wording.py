"""Failing equations in words: "180 / 2.5 is 72, not 75"."""

import re
from fractions import Fraction

from stepsight.core.equations.assertion import remainder_behind
from stepsight.core.equations.checks import Check, Method
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
    right = _formula(check.right)
    if check.method is Method.SOLUTION:
        return _of_unknown(text, check)
    before, behind = text[check.start : check.fault_start], text[check.fault_end : check.end]
    stated = _formula(_WITH_UNIT.sub(r"\1", text[check.fault_start : check.fault_end]))
    if "remainder" in right and (rest := remainder_behind(text, check.fault_end)):
        stated = text[check.fault_start : rest.end()]
    else:
        right = _like(stated, right)
    other = _AT_END.sub("", before) if before else _AT_START.sub("", behind, count=1)
    # A side that cannot be worked out further, such as x^2 + 1, is not repeated.
    is_same = re.sub(r"[\s$]", "", other) == re.sub(r"[\s$]", "", right)
    return f"{_formula(other)} is {'' if is_same else f'{right}, '}not {stated}"


def _of_unknown(text: str, check: Check) -> str:
    """Describe an equation with unknowns that an earlier one refutes. `check.right` is the solution of that one, or
    the equation itself if its solutions are not rational."""
    written = _formula(text[check.start : check.end])
    name, _, values = check.right.partition(" = ")
    if not check.right:
        return f"{written} contradicts the equations before it"
    if not name.isalpha():
        return f"{written} does not follow from {_formula(check.right)}"
    solution = f"{name} is {values.replace(f'{name} = ', '')}"
    if check.sides:
        sides = " and ".join(f"{_formula(text[a:b])} is {value}" for a, b, value in check.sides if value)
        others = [f"not {_formula(text[a:b])}" for a, b, value in check.sides if not value]
        return ", ".join([f"{solution}, so {sides}", *others])
    if check.fault_start == check.start:
        return f"{written} does not fit, since {solution}"
    return f"{solution}, not {_formula(text[check.fault_start : check.fault_end])}"


def _like(stated: str, right: str) -> str:
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
