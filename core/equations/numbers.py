"""Comparison of expressions without unknowns: exactly, or up to the rounding that their notation shows."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from stepsight.core.equations.chains import Member
from stepsight.core.equations.parsing import values
from stepsight.core.equations.parsing.expressions import Expression, Kind, Node, evaluate, readings
from stepsight.core.equations.parsing.units import mixes_units
from stepsight.core.equations.parsing.values import AlgebraicValue, UndecidedError

_PI = {"π": values.number(values.PI, exact=False)}


class EquationVerdict(Enum):
    """The verdict on an equation. A doubtful equation counts as neither right nor wrong."""

    HOLDS = "holds"
    FAILS = "fails"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True)
class Comparison:
    """The verdict on an equation, and the values of both sides."""

    verdict: EquationVerdict
    left: AlgebraicValue
    right: AlgebraicValue


def compare(left: Member, right: Member, relation: str, exact_texts: Collection[str]) -> Comparison | None:
    """Compare the two sides of an equation without unknowns. Returns None if a side contains an unknown.

    `exact_texts` are the decimals that the problem states. Any other long decimal may itself be rounded.
    """
    a, b = left.expression, right.expression
    if a is None or b is None or not a.letters | b.letters <= {"π", "π/180"}:
        return None
    if "°" in a.units | b.units and "π" in a.letters | b.letters:
        # Degrees and radians.
        return None
    first: Comparison | None = None
    doubtful = False
    try:
        ways = readings(a, b)
    except UndecidedError:
        return None
    for (reading_a, reading_b), percent in ways:
        try:
            x, y = evaluate(a.node, reading_a, percent), evaluate(b.node, reading_b, percent)
            verdict = _verdict(a, b, x, y, relation, exact_texts, reading_a, reading_b, percent)
        except UndecidedError:
            doubtful = True
            continue
        if verdict is EquationVerdict.HOLDS:
            return Comparison(verdict, x, y)
        doubtful |= verdict is EquationVerdict.DOUBTFUL
        first = first or Comparison(verdict, x, y)
    if first is None:
        return None
    doubtful = doubtful or _has_mixed_units(left, right) or _is_hundredfold(first, a, b)
    return Comparison(EquationVerdict.DOUBTFUL if doubtful else EquationVerdict.FAILS, first.left, first.right)


def _verdict(
    a: Expression,
    b: Expression,
    x: AlgebraicValue,
    y: AlgebraicValue,
    relation: str,
    exact_texts: Collection[str],
    reading_a: int,
    reading_b: int,
    percent: Fraction,
) -> EquationVerdict:
    if not values.difference(x, y).above:
        return EquationVerdict.HOLDS
    left, right = (values.substitute(value, _PI).number for value in (x, y))
    if left is None or right is None:
        raise UndecidedError
    if a.names_bases and b.names_bases and min(left, right) < 0:
        # In another base, digits are borrowed from the place before.
        return EquationVerdict.DOUBTFUL
    if not values.difference(values.number(left, False), values.number(right, False)).above and not (
        x.exact and y.exact and not a.letters | b.letters
    ):
        return EquationVerdict.HOLDS
    rounded = [round_to_literal(left, b.node, percent), round_to_literal(right, a.node, percent)]
    if EquationVerdict.HOLDS in rounded:
        return EquationVerdict.HOLDS
    if EquationVerdict.DOUBTFUL in rounded:
        return EquationVerdict.DOUBTFUL
    gap = abs(left - right)
    scale = max(abs(left), abs(right))
    if (left.denominator == 1) != (right.denominator == 1):
        broken, reading = (b, reading_b) if left.denominator == 1 else (a, reading_a)
        if broken.node.kind in (Kind.ADD, Kind.SUBTRACT) and gap < _parts_rounded(broken, reading, percent):
            return EquationVerdict.DOUBTFUL
    if relation == "≈" and (gap <= scale / 20 or (gap < 1 and 1 in (left.denominator, right.denominator))):
        return EquationVerdict.DOUBTFUL
    if ("π" in a.letters) != ("π" in b.letters) and gap <= scale / 200:
        return EquationVerdict.DOUBTFUL
    slack = _slack(a, reading_a, percent, exact_texts, x) + _slack(b, reading_b, percent, exact_texts, y)
    literal = next((node.literal for node in (b.node, a.node) if node.is_literal), None)
    if slack and literal is not None:
        slack += Fraction(1, 10**literal.decimals)
    return EquationVerdict.DOUBTFUL if gap <= slack else EquationVerdict.FAILS


def round_to_literal(value: Fraction, node: Node, percent: Fraction = Fraction(1, 100)) -> EquationVerdict | None:
    """Return the verdict on an equation between `value` and a literal that may be a rounded form of it.

    The equation holds if the literal was rounded to the nearest value, and is doubtful if digits were cut off.
    Returns None if the literal is not a rounded form of `value`.
    """
    if not node.is_literal:
        return None
    literal = node.literal
    assert literal.number is not None
    unit = Fraction(1, 10**literal.decimals)
    gap = abs(abs(value) - literal.number)
    if node.kind is Kind.PERCENT or (node.parts and node.parts[0].kind is Kind.PERCENT):
        gap = abs(abs(value) / percent - literal.number)
    if (value < 0) != (node.kind is Kind.NEGATIVE) and gap < 2 * literal.number:
        return None
    if literal.cut:
        return EquationVerdict.HOLDS if gap <= unit else None
    if literal.decimals >= 8 and gap <= abs(value) / 10**10:
        # As a computer writes it: 14.999999999999998.
        return EquationVerdict.HOLDS
    if literal.decimals:
        return EquationVerdict.HOLDS if gap <= unit / 2 else EquationVerdict.DOUBTFUL if gap < unit else None
    # An integer may be a rounded fraction; a fraction is rarely cut off without a word.
    return EquationVerdict.DOUBTFUL if gap <= Fraction(1, 2) and value.denominator != 1 else None


def _parts_rounded(expression: Expression, reading: int, percent: Fraction) -> int:
    """Count the quotients in an expression whose values are not integers. Each of them may have been rounded."""
    count = 0
    for node in expression.node.walk():
        if node.kind is Kind.DIVIDE:
            value = evaluate(node, reading, percent).number
            count += value is not None and value.denominator != 1
    return count


def _slack(
    expression: Expression, reading: int, percent: Fraction, exact_texts: Collection[str], value: AlgebraicValue
) -> Fraction:
    """Return how much the value of an expression may be off because the decimals written in it may already be
    rounded."""
    total = Fraction(0)
    if expression.node.is_literal:
        return total
    base = values.substitute(value, _PI).number
    for node in expression.node.walk():
        if node.kind is Kind.NUMBER and node.decimals and _may_be_rounded(node.name, node.decimals, exact_texts):
            assert node.number is not None
            moved = {id(node): node.number + Fraction(1, 10**node.decimals)}
            other = values.substitute(evaluate(expression.node, reading, percent, replaced=moved), _PI).number
            if other is not None and base is not None:
                total += abs(other - base)
    return total


def _may_be_rounded(text: str, decimals: int, exact_texts: Collection[str]) -> bool:
    if text in exact_texts or decimals == 1:
        return text in exact_texts and f"~{text}" in exact_texts
    return decimals > 2 or text[-1] not in "05"


def _has_mixed_units(left: Member, right: Member) -> bool:
    words = set(right.trailing[:3])
    for member in (left, right):
        if member.expression is not None:
            words |= member.expression.units
    return mixes_units(frozenset(words))


def _is_hundredfold(comparison: Comparison, a: Expression, b: Expression) -> bool:
    """True if one side is a hundred times the other and the factor may come from a percentage or from dollars and
    cents."""
    left, right = comparison.left.number, comparison.right.number
    if not left or not right or left / right not in (100, Fraction(1, 100)):
        return False
    return a.has_percent or b.has_percent or left.denominator != 1 or right.denominator != 1


_DECIMAL = re.compile(r"(?<!\d)\d+\.\d+")


def decimals_in(text: str) -> set[str]:
    """Return the decimal numbers in a text as they are written."""
    return set(_DECIMAL.findall(text))
