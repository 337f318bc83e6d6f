"""Units that convert: values of expressions with several units of a kind, as in 50 km/h × 3 days = 150 km."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from stepsight.core.equations.chains import Member
from stepsight.core.equations.numbers import EquationVerdict, round_to_literal
from stepsight.core.equations.parsing.expressions import Kind, Node, evaluate
from stepsight.core.equations.parsing.units import conversion, singular
from stepsight.core.equations.parsing.values import UndecidedError

_MEASURE = re.compile(r"\b(\d+(?:\.\d+)?)\s+([A-Za-z]+)")

Dimensions = Mapping[str, int]
"""The power of each kind of unit, such as 1 for length and -1 for time."""


def convert(left: Member, right: Member, text: str) -> tuple[bool, Fraction] | None:
    """Return whether the left side comes to the literal on the right, and its value in the right side's unit.

    Returns None if no unit has to be converted, if the units of both sides do not agree, or if it is in doubt.
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
    """Return a sum of bare numbers with the units in which the text before it states them.

    After "grew 3 inches", 4 + 3 = 7 feet adds inches to feet. Any other expression is returned as it is.
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
    """Return the unit that the words after a number begin with: miles, or miles/hour."""
    if len(words) > 2 and words[1] in ("per", "an", "a"):
        return f"{words[0]}/{words[2]}"
    return words[0] if words else ""


def _is_of_rates(node: Node) -> bool:
    """True if every number of a product has a unit, and one of them is a rate such as km/h."""
    units = [part.unit for part in node.walk() if part.kind is Kind.NUMBER]
    return all(units) and any("/" in unit for unit in units)


def _is_mixed(expression: Node, unit: str) -> bool:
    """True if two units of an equation, of which `unit` is one, are different sizes of the same kind."""
    names = {name for node in expression.walk() if node.unit for name in node.unit.split("/")}
    found: dict[int, set[int]] = {}
    for name in names | set(unit.split("/")):
        for system, size in conversion(name):
            found.setdefault(system, set()).add(size)
    return any(len(sizes) > 1 for sizes in found.values())


def _measure(node: Node) -> tuple[Fraction, Dimensions]:
    """Return the value of an expression in the smallest units, with its dimensions."""
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
    """Return the size of a unit, which may be a rate such as km/h, with its dimensions."""
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
