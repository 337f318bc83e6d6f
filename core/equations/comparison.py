"""Comparison of the two sides of an equation: exactly, up to the rounding that their notation shows, or as an
identity by expanding them.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property

from stepsight.core.equations import values
from stepsight.core.equations.chains import Member
from stepsight.core.equations.expressions import Expression, Kind, Node, evaluate, readings
from stepsight.core.equations.units import mixes_units
from stepsight.core.equations.values import ONE, AlgebraicValue, Monomial, UndecidedError


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


@dataclass(frozen=True)
class _Side:
    """A side of an equation in one of its readings (see `evaluate`)."""

    expression: Expression
    reading: int
    percent: Fraction

    @property
    def node(self) -> Node:
        return self.expression.node

    @cached_property
    def value(self) -> AlgebraicValue:
        return evaluate(self.node, self.reading, self.percent)

    @cached_property
    def number(self) -> Fraction:
        """Its value with the number for π. Raises `UndecidedError` if it contains other letters."""
        return _number(self.value)

    @property
    def may_have_rounded_parts(self) -> int:
        """The number of quotients in a sum whose values are not integers. Each of them may have been rounded."""
        if self.node.kind not in (Kind.ADD, Kind.SUBTRACT):
            return 0
        quotients = (node for node in self.node.walk() if node.kind is Kind.DIVIDE)
        sizes = [evaluate(node, self.reading, self.percent).number for node in quotients]
        return sum(size is not None and size.denominator != 1 for size in sizes)

    def slack(self, exact_texts: Collection[str]) -> Fraction:
        """Return how much the value may be off because the decimals written in it may already be rounded."""
        total = Fraction(0)
        for node in () if self.node.is_literal else self.node.walk():
            may_be_rounded = node.decimals > 2 or (node.decimals == 2 and node.name[-1] not in "05")
            if node.number is not None and may_be_rounded and node.name not in exact_texts:
                shifted = {id(node): node.number + Fraction(1, 10**node.decimals)}
                total += abs(_number(evaluate(self.node, self.reading, self.percent, shifted)) - self.number)
        return total


def _number(value: AlgebraicValue) -> Fraction:
    number = values.closed(value).number
    if number is None:
        raise UndecidedError
    return number


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
        combinations = readings(a, b)
    except UndecidedError:
        return None
    for (reading_a, reading_b), percent in combinations:
        x, y = _Side(a, reading_a, percent), _Side(b, reading_b, percent)
        try:
            verdict = _verdict(x, y, relation, exact_texts)
        except UndecidedError:
            doubtful = True
            continue
        if verdict is EquationVerdict.HOLDS:
            return Comparison(verdict, x.value, y.value)
        doubtful |= verdict is EquationVerdict.DOUBTFUL
        first = first or Comparison(verdict, x.value, y.value)
    if first is None:
        return None
    units = a.units | b.units | set(right.trailing[:3])
    doubtful = doubtful or mixes_units(units) or _is_hundredfold(first, a, b)
    return Comparison(EquationVerdict.DOUBTFUL if doubtful else EquationVerdict.FAILS, first.left, first.right)


def _verdict(a: _Side, b: _Side, relation: str, exact_texts: Collection[str]) -> EquationVerdict:
    if not values.difference(a.value, b.value).above:
        return EquationVerdict.HOLDS
    left, right, letters = a.number, b.number, a.expression.letters | b.expression.letters
    if a.expression.names_bases and b.expression.names_bases and min(left, right) < 0:
        # In another base, digits borrow from the place before them.
        return EquationVerdict.DOUBTFUL
    is_exact = a.value.exact and b.value.exact and not letters
    if not is_exact and not values.difference(values.number(left, False), values.number(right, False)).above:
        return EquationVerdict.HOLDS
    rounded = [round_to_literal(left, b.node, b.percent), round_to_literal(right, a.node, a.percent)]
    for verdict in (EquationVerdict.HOLDS, EquationVerdict.DOUBTFUL):
        if verdict in rounded:
            return verdict
    gap = abs(left - right)
    scale = max(abs(left), abs(right))
    is_whole_left, is_whole_right = left.denominator == 1, right.denominator == 1
    if is_whole_left != is_whole_right and gap < (b if is_whole_left else a).may_have_rounded_parts:
        return EquationVerdict.DOUBTFUL
    if relation == "≈" and (gap <= scale / 20 or (gap < 1 and (is_whole_left or is_whole_right))):
        return EquationVerdict.DOUBTFUL
    if ("π" in a.expression.letters) != ("π" in b.expression.letters) and gap <= scale / 200:
        return EquationVerdict.DOUBTFUL
    slack = a.slack(exact_texts) + b.slack(exact_texts)
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
        # As printed by a computer: 14.999999999999998.
        return EquationVerdict.HOLDS
    if literal.decimals:
        return EquationVerdict.HOLDS if gap <= unit / 2 else EquationVerdict.DOUBTFUL if gap < unit else None
    # An integer may be a rounded fraction, but a fraction is rarely truncated without saying so.
    return EquationVerdict.DOUBTFUL if gap <= Fraction(1, 2) and value.denominator != 1 else None


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


# The imaginary unit, the base of the natural logarithm and roots of unity: letters that are not variables.
CONSTANTS = frozenset({"i", "j", "e", "omega", "ω", "ζ", "zeta"})


def compare_identity(left: Member, right: Member) -> Comparison | None:
    """Compare the two sides of an expansion or simplification.

    Returns None if the equation could just as well be an equation to solve. It holds if the difference between its
    sides vanishes. It fails only if the two sides differ as after a slip, typically because the left side can be
    expanded, the right side cannot, and a single term is different. As an equation to solve, it would then have no
    solution or only zero.
    """
    a, b = left.expression, right.expression
    if a is None or b is None or not a.letters or not b.letters:
        return None
    first: Comparison | None = None
    try:
        for (reading_a, reading_b), percent in readings(a, b):
            x, y = evaluate(a.node, reading_a, percent), evaluate(b.node, reading_b, percent)
            if not values.difference(x, y).above:
                return Comparison(EquationVerdict.HOLDS, x, y)
            first = first or Comparison(EquationVerdict.FAILS, x, y)
    except UndecidedError:
        return None
    return first if first is not None and _is_slip(a, b, first) else None


def _is_slip(a: Expression, b: Expression, comparison: Comparison) -> bool:
    left, right = comparison.left, comparison.right
    x, y, gap = left.polynomial, right.polynomial, values.difference(left, right).polynomial
    if x is None or y is None or gap is None or not any(x) or not any(y) or a.letters != b.letters:
        return False
    if not (left.exact and right.exact) or a.letters & {*CONSTANTS, "π"}:
        return False
    if a.choices or b.choices or a.has_percent or b.has_percent or _may_be_of_rounding(x, y, gap, b.node):
        return False
    terms_a, terms_b = list(_terms(a.node)), list(_terms(b.node))
    # A side is done if each term of the polynomial is written once, as a single term.
    expanded_a = len(terms_a) == len(x) and all(map(_is_term, terms_a))
    expanded_b = len(terms_b) == len(y) and all(map(_is_term, terms_b))
    if len(x) == len(y) == 1:
        has_numbers = any(part.kind is Kind.NUMBER for part in a.node.walk())
        return x.keys() == y.keys() and not (expanded_a and expanded_b) and has_numbers
    if gap.keys() == {ONE} and not expanded_a and not _is_product(b.node) and len(terms_b) <= len(terms_a):
        # As an equation to solve, it would have no solution.
        return True
    if expanded_a == expanded_b and not (_is_product(a.node) and _is_product(b.node)):
        return False
    return (_is_product(b.node) or expanded_b) and _is_near_miss(x, y, gap)


def _is_near_miss(
    x: Mapping[Monomial, Fraction], y: Mapping[Monomial, Fraction], gap: Mapping[Monomial, Fraction]
) -> bool:
    """True if two polynomials differ in only one term or by a constant factor. `gap` is their difference."""
    if len(gap) == 1:
        return True
    if x.keys() != y.keys() or max(sum(exponent for _, exponent in key) for key in x) < 2:
        return False
    return len({value / y[key] for key, value in x.items()}) == 1


def _is_product(node: Node) -> bool:
    """True if the expression is a product or quotient with a sum among its factors."""
    if node.kind in (Kind.MULTIPLY, Kind.DIVIDE, Kind.POWER):
        return any(part.kind in (Kind.ADD, Kind.SUBTRACT) or _is_product(part) for part in node.parts)
    return node.kind is Kind.NEGATIVE and _is_product(node.parts[0])


def _may_be_of_rounding(
    x: Mapping[Monomial, Fraction], y: Mapping[Monomial, Fraction], gap: Mapping[Monomial, Fraction], node: Node
) -> bool:
    """True if the coefficients of two polynomials could differ only because they are rounded as the decimals in
    `node`, the second one, are. `gap` is the difference of the polynomials."""
    digits = max((part.decimals for part in node.walk()), default=0)
    unit = Fraction(1, 10**digits) if digits else Fraction(0)
    for term, difference in gap.items():
        left, right = x.get(term, Fraction(0)), y.get(term, Fraction(0))
        if (left.denominator == 1 and right.denominator == 1) or not left or not right:
            return False
        if abs(difference) > max(unit, abs(left) / 200):
            return False
    return True


def _terms(node: Node) -> Iterator[Node]:
    if node.kind in (Kind.ADD, Kind.SUBTRACT):
        for part in node.parts:
            yield from _terms(part)
    elif node.kind is Kind.NEGATIVE:
        yield from _terms(node.parts[0])
    else:
        yield node


def _is_term(node: Node) -> bool:
    """True if a tree is a coefficient times powers of letters, with no letter occurring twice."""
    numbers, names = 0, []
    for part in _factors(node):
        is_power = part.kind is Kind.POWER and part.parts[1].kind is Kind.NUMBER
        letter = part.parts[0] if is_power else part
        if letter.kind is Kind.LETTER:
            names.append(letter.name)
        elif part.kind is Kind.NUMBER or part.is_fraction:
            numbers += 1
        else:
            return False
    return numbers <= 1 and len(names) == len(set(names))


def _factors(node: Node) -> Iterator[Node]:
    if node.kind is Kind.MULTIPLY:
        for part in node.parts:
            yield from _factors(part)
    elif node.kind is Kind.DIVIDE and not node.is_fraction and node.parts[1].kind is Kind.NUMBER:
        yield from _factors(node.parts[0])
        if any(part.kind is Kind.NUMBER for part in _factors(node.parts[0])):
            yield node.parts[1]
    else:
        yield node


def value_of(expression: Expression | None) -> AlgebraicValue | None:
    """Return the value of an expression, or None if it is ambiguous or has no value."""
    if expression is None or expression.choices or expression.has_percent:
        return None
    if any(node.cut for node in expression.node.walk()):
        return None
    try:
        return evaluate(expression.node)
    except UndecidedError:
        return None
