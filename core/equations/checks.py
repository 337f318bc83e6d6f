"""Checks of equations: whether an equation holds, also after its units are converted, as in 50 km/h × 3 days = 3600
km, and if not, which value would be correct.
"""

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from stepsight.core.equations import values
from stepsight.core.equations.ambiguity import may_mean_another
from stepsight.core.equations.assertion import DIFFERENCE, REMAINDER, WHOLE_NUMBER
from stepsight.core.equations.chains import Member
from stepsight.core.equations.comparison import (
    Comparison,
    EquationVerdict,
    compare,
    compare_identity,
    round_to_literal,
    value_of,
)
from stepsight.core.equations.expressions import Kind, Node, evaluate
from stepsight.core.equations.units import RATES, conversion, differ_in_size, singular
from stepsight.core.equations.values import UndecidedError, closed, write_number, write_value

_MEASURE = re.compile(r"\b(\d+(?:\.\d+)?)\s+([A-Za-z]+)")

Dimensions = dict[str, int]
"""The power of each kind of unit, such as 1 for length and -1 for time."""


class Method(StrEnum):
    """The kind of check: of arithmetic, of an identity (an expansion or simplification), or of an equation with
    unknowns."""

    ARITHMETIC = "arithmetic"
    IDENTITY = "identity"
    SOLUTION = "solution"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of checking one equation, `text[start:end]` of a sub-step.

    If the equation fails, `text[fault_start:fault_end]` is the faulty side, and `expected` is the correct value as
    a person would write it. If an equation contradicts several others, no single side of it is known to be correct;
    `expected` is then "".

    For an equation with unknowns that the solution of an earlier one does not fit, `sides` has the start and
    end of both sides, each with its value there, or with "" if it has no unknowns.
    """

    start: int
    end: int
    holds: bool
    method: Method
    fault_start: int = 0
    fault_end: int = 0
    expected: str = ""
    sides: tuple[tuple[int, int, str], ...] = ()


def check_pair(left: Member, right: Member, relation: str, exact_texts: Collection[str], text: str) -> Check | None:
    """Check an equation without unknowns, or an expansion or simplification.

    Returns None if the equation cannot be decided with certainty. `exact_texts` are the decimals that the problem
    states. `text` is the sub-step, which may say that a number is rounded or that a difference is given without its
    sign.
    """
    if (identity := compare_identity(left, right)) is not None:
        return _equation_check(left, right, identity, Method.IDENTITY)
    if left.is_literal and right.is_literal and not (left.names_bases and right.names_bases):
        return None
    comparison = compare(left, right, relation, exact_texts)
    if comparison is None or comparison.verdict is EquationVerdict.DOUBTFUL:
        return None
    if comparison.verdict is EquationVerdict.FAILS and (
        _runs_on(right, comparison)
        or _is_left_out(left, right, comparison, text)
        or may_mean_another(left, right, comparison, text)
    ):
        return None
    return _equation_check(left, right, comparison, Method.ARITHMETIC)


def check_units(left: Member, right: Member, text: str) -> Check | None:
    """Check a calculation whose units have to be converted, as in 50 km/h × 3 days = 3600 km. Returns None if no
    unit has to be converted, the units of the two sides do not agree, or the result is in doubt."""
    if left.expression is None or right.expression is None or not right.is_literal or left.operations == 0:
        return None
    words = right.trailing
    is_rate = len(words) > 2 and words[1] in ("per", "an", "a")
    unit_behind = f"{words[0]}/{words[2]}" if is_rate else "".join(words[:1])
    unit = right.expression.node.literal.unit or RATES.get(unit_behind, unit_behind)
    if not unit or right.expression.has_percent:
        return None
    node = _with_stated_units(left.expression.node, unit, text[: left.start])
    names = {name for part in node.walk() if part.unit for name in part.unit.split("/")}
    if not differ_in_size(names | set(unit.split("/"))):
        return None
    try:
        value, dimensions = _measure(node)
        size, unit_dimensions = _unit(unit)
    except UndecidedError:
        return None
    stated = evaluate(right.expression.node).number
    if dimensions != unit_dimensions or stated is None:
        return None
    value /= size
    rounded = round_to_literal(value, right.expression.node)
    holds = value == stated or rounded is EquationVerdict.HOLDS
    units = [part.unit for part in node.walk() if part.kind is Kind.NUMBER]
    is_of_rates = all(units) and any("/" in unit for unit in units)
    is_product = node.kind in (Kind.MULTIPLY, Kind.DIVIDE)
    if not holds and (rounded is EquationVerdict.DOUBTFUL or (is_product and not is_of_rates)):
        # In 300 minutes / 60 = 5 hours, the number converts the unit.
        return None
    return _value_check(left, right, holds, write_number(value, like_decimal=decimals_of(right) > 0))


def check_division(left: Member, right: Member, text: str) -> Check | None:
    """Check a division with remainder, such as 129 ÷ 11 = 11 with a remainder of 8. Returns None if the two sides
    and `text` do not state such a division."""
    if left.expression is None or not right.is_literal or left.expression.node.kind is not Kind.DIVIDE:
        return None
    rest, quotient = REMAINDER.match(text, right.end), value_of(right.expression)
    dividend, divisor = (
        int(part.number) if part.number is not None and part.number.denominator == 1 else None
        for part in left.expression.node.parts
    )
    if rest is None or dividend is None or not divisor or quotient is None or quotient.number is None:
        return None
    holds = divisor * quotient.number + int(rest[1]) == dividend
    return _value_check(left, right, holds, f"{dividend // divisor} with a remainder of {dividend % divisor}")


def _value_check(left: Member, right: Member, holds: bool, correct: str) -> Check:
    """Return the check of an equation whose right side should be `proper`."""
    fault = (0, 0, "") if holds else (right.start, right.end, correct)
    return Check(left.start, right.end, holds, Method.ARITHMETIC, *fault)


def _equation_check(left: Member, right: Member, comparison: Comparison, method: Method) -> Check:
    """Return the check of an equation. If it fails, the fault is the right side, unless the left side is a plain
    number and the right side is the calculation."""
    if comparison.verdict is EquationVerdict.HOLDS:
        return Check(left.start, right.end, True, method)
    at_left = left.is_literal and not right.is_literal
    fault = left if at_left else right
    correct = comparison.right if at_left else comparison.left
    written = write_value(correct, like_decimal=decimals_of(fault) > 0)
    return Check(left.start, right.end, False, method, fault.start, fault.end, written)


def _is_left_out(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if the text says that the stated number omits a part: the sign of a difference, or a fractional part."""
    if not values.add(comparison.left, comparison.right).above:
        return DIFFERENCE.search(text[max(0, left.start - 80) : right.end + 60]) is not None
    worked_out, stated = comparison.left.number, comparison.right.number
    if worked_out is None or stated is None or not comparison.left.exact:
        return False
    is_near = stated.denominator == 1 and worked_out.denominator != 1 and abs(worked_out - stated) < 1
    return is_near and WHOLE_NUMBER.search(text) is not None


_BEGINNINGS = (Kind.ADD, Kind.SUBTRACT, Kind.MULTIPLY, Kind.DIVIDE, Kind.EITHER, Kind.POWER, Kind.PERCENT)


def _runs_on(right: Member, comparison: Comparison) -> bool:
    """True if the right side begins with the value of the left side and continues, as in `5 + 3 = 8 * 2 = 16`."""
    if right.expression is None:
        return False
    node = right.expression.node
    if node.is_literal or (node.kind is Kind.DIVIDE and not node.parts[1].is_literal):
        # A fraction whose denominator is simplified as well: 3!/(2! · 1!) = 3/(2 · 1).
        return False
    try:
        while node.parts and node.kind in _BEGINNINGS:
            node = node.parts[0]
            if not values.difference(closed(evaluate(node)), closed(comparison.left)).above:
                return True
    except UndecidedError:
        pass
    return False


def decimals_of(member: Member) -> int:
    """Return the largest number of decimal places among the numbers in a member."""
    if member.expression is None:
        return 0
    return max((node.decimals for node in member.expression.node.walk() if node.kind is Kind.NUMBER), default=0)


def _with_stated_units(node: Node, unit: str, before: str) -> Node:
    """Return a sum of bare numbers in which each number has the unit stated for it in the text before the sum.

    After "grew 3 inches", 4 + 3 = 7 feet adds inches to feet. A number without a stated unit gets `unit`. Any other
    expression is returned unchanged.
    """
    if node.kind not in (Kind.ADD, Kind.SUBTRACT) or not conversion(unit):
        return node
    if any(part.unit or part.kind not in (Kind.ADD, Kind.SUBTRACT, Kind.NUMBER) for part in node.walk()):
        return node
    sentence = before[max(before.rfind(". "), before.rfind("\n")) + 1 :]
    stated: dict[str, set[str]] = {}
    for match in _MEASURE.finditer(sentence):
        stated.setdefault(match[1], set()).add(match[2].lower())

    def given(part: Node) -> Node:
        if part.kind is not Kind.NUMBER:
            return replace(part, parts=tuple(map(given, part.parts)))
        units = stated.get(part.name, set())
        return replace(part, unit=next(iter(units)) if len(units) == 1 else unit)

    return given(node)


def _measure(node: Node) -> tuple[Fraction, Dimensions]:
    """Return the value of an expression in the smallest units of its kinds, and its dimensions. Raises
    `UndecidedError` if units do not fit."""
    if node.kind is Kind.NUMBER and node.number is not None:
        size, dimensions = _unit(node.unit) if node.unit else (Fraction(1), {})
        return node.number * size, dimensions
    if node.kind not in (Kind.ADD, Kind.SUBTRACT, Kind.MULTIPLY, Kind.DIVIDE):
        raise UndecidedError
    (x, a), (y, b) = (_measure(part) for part in node.parts)
    if node.kind is Kind.MULTIPLY:
        return x * y, _combine_dimensions(a, b, 1)
    if node.kind is Kind.DIVIDE and y:
        return x / y, _combine_dimensions(a, b, -1)
    if node.kind is Kind.DIVIDE or a != b:
        raise UndecidedError
    return (x + y if node.kind is Kind.ADD else x - y), a


def _unit(name: str) -> tuple[Fraction, Dimensions]:
    """Return the size of a unit in the smallest units of its kind, and its dimensions. The unit may be a rate such
    as km/h. Raises `UndecidedError` if it may be of several kinds, as a pound is a weight or money."""
    size, dimensions = Fraction(1), Dimensions()
    for part, power in zip(name.split("/", 1), (1, -1), strict=False):
        systems = conversion(part)
        if len(systems) > 1:
            raise UndecidedError
        system, own_size = systems[0] if systems else (singular(part), 1)
        size *= Fraction(own_size) ** power
        dimensions = _combine_dimensions(dimensions, {str(system): 1}, power)
    return size, dimensions


def _combine_dimensions(a: Dimensions, b: Dimensions, sign: int) -> Dimensions:
    total = Counter(a)
    for name, power in b.items():
        total[name] += sign * power
    return {name: power for name, power in total.items() if power}
