"""Calculations in which units have to be converted, as in 50 km/h × 3 days = 3600 km."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from stepsight.core.equations.chains import Member
from stepsight.core.equations.numbers import EquationVerdict, round_to_literal
from stepsight.core.equations.parsing.expressions import Kind, Node, evaluate
from stepsight.core.equations.parsing.units import RATES, conversion, singular
from stepsight.core.equations.parsing.values import UndecidedError

_MEASURE = re.compile(r"\b(\d+(?:\.\d+)?)\s+([A-Za-z]+)")

Dimensions = Mapping[str, int]
"""The power of each kind of unit, such as 1 for length and -1 for time."""


def convert(left: Member, right: Member, text: str) -> tuple[bool, Fraction] | None:
    """Return True if the left side equals the number on the right after conversion, else False, together with the
    left side's value in the unit of the right side.

    Returns None if no unit has to be converted, if the units of the two sides do not agree, or if the result is in
    doubt.
    """
    if left.expression is None or right.expression is None or not right.is_literal or left.operations == 0:
        return None
    unit = right.expression.node.literal.unit or _behind(right.trailing)
    if not unit or right.expression.has_percent:
        return None
    node = _with_stated_units(left.expression.node, unit, text[: left.start])
    if not _is_mixed(node, unit):
        return None
    try:
        value, dimensions = _measure(node)
        size, of_unit = _unit(unit)
    except UndecidedError:
        return None
    stated = evaluate(right.expression.node).number
    if dimensions != of_unit or stated is None:
        return None
    value /= size
    rounded = round_to_literal(value, right.expression.node)
    if value == stated or rounded is EquationVerdict.HOLDS:
        return True, value
    if rounded is EquationVerdict.DOUBTFUL or (
        node.kind in (Kind.MULTIPLY, Kind.DIVIDE) and not _is_of_rates(node)
    ):
        # In 300 minutes / 60 = 5 hours, the number converts.
        return None
    return False, value


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


def _behind(words: tuple[str, ...]) -> str:
    """Return the unit at the beginning of the words that follow a number, such as miles or miles/hour, or "" if
    there are no words."""
    if len(words) > 2 and words[1] in ("per", "an", "a"):
        return f"{words[0]}/{words[2]}"
    return RATES.get(words[0], words[0]) if words else ""


def _is_of_rates(node: Node) -> bool:
    """True if every number in an expression has a unit, and at least one unit is a rate such as km/h."""
    units = [part.unit for part in node.walk() if part.kind is Kind.NUMBER]
    return all(units) and any("/" in unit for unit in units)


def _is_mixed(expression: Node, unit: str) -> bool:
    """True if an expression and `unit` contain two units of the same kind but of different sizes, such as hours and
    days."""
    names = {name for node in expression.walk() if node.unit for name in node.unit.split("/")}
    found: dict[int, set[int]] = {}
    for name in names | set(unit.split("/")):
        for system, size in conversion(name):
            found.setdefault(system, set()).add(size)
    return any(len(sizes) > 1 for sizes in found.values())


def _measure(node: Node) -> tuple[Fraction, Dimensions]:
    """Return the value of an expression in the smallest units of its kinds, and its dimensions. Raises
    `UndecidedError` if units do not fit."""
    if node.kind is Kind.NUMBER and node.number is not None:
        size, dimensions = _unit(node.unit) if node.unit else (Fraction(1), {})
        return node.number * size, dimensions
    if node.kind not in (Kind.ADD, Kind.SUBTRACT, Kind.MULTIPLY, Kind.DIVIDE):
        raise UndecidedError
    (x, a), (y, b) = (_measure(part) for part in node.parts)
    if node.kind in (Kind.ADD, Kind.SUBTRACT):
        if a != b:
            raise UndecidedError
        return (x + y if node.kind is Kind.ADD else x - y), a
    if node.kind is Kind.MULTIPLY:
        return x * y, _joined(a, b, 1)
    if not y:
        raise UndecidedError
    return x / y, _joined(a, b, -1)


def _unit(name: str) -> tuple[Fraction, Dimensions]:
    """Return the size of a unit in the smallest units of its kind, and its dimensions. The unit may be a rate such
    as km/h."""
    above, _, below = name.partition("/")
    size, dimensions = _single(above)
    if not below:
        return size, dimensions
    divisor, others = _single(below)
    return size / divisor, _joined(dimensions, others, -1)


def _single(name: str) -> tuple[Fraction, Dimensions]:
    systems = conversion(name)
    if len(systems) > 1:
        # A pound is a weight or money.
        raise UndecidedError
    if systems:
        system, size = systems[0]
        return Fraction(size), {str(system): 1}
    return Fraction(1), {singular(name): 1}


def _joined(a: Dimensions, b: Dimensions, sign: int) -> Dimensions:
    total = Counter(a)
    for name, power in b.items():
        total[name] += sign * power
    return {name: power for name, power in total.items() if power}
