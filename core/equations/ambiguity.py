"""Failing equations that are not counted as wrong, because their signs may stand for something other than an
operation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from stepsight.core.equations.chains import Member
from stepsight.core.equations.comparison import Comparison
from stepsight.core.equations.expressions import Expression, Kind, Node, evaluate
from stepsight.core.equations.units import CONTAINERS, are_convertible, conversion, is_unknown_conversion
from stepsight.core.equations.values import UndecidedError, difference
from stepsight.core.text.signs import CURRENCY

# A range, a score or a mixed number: pages 5-9 = 5 pages, they won 3-1 = 3 points, 2-1/2 cups.
_RANGE = re.compile(r"\d[\d.,]*+(?:-\d[\d.,]*+)++(?:/\d++)?\s*+[A-Za-z ]*+")
# A range of years, also with spaces: 2019 - 2021 = 3 years.
_YEARS = re.compile(r"((?:1\d|20)\d\d)\s*-\s*((?:1\d|20)\d\d)\s*")
# Numbers of equations: (1) - (2), 2 × (1) + (3).
_LABEL = r"(?:\d{1,2}\s*(?:\*|\\cdot|\\times)\s*)?[(\[]\d{1,2}[)\]]"
_LABELS = re.compile(rf"\s*{_LABEL}(?:\s*[-+]\s*{_LABEL})+\s*")
# The parts of a number in Gauß brackets or braces: [17/3] = 5, {17/3} = 2/3.
_BRACKETED = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}")
# Mixed numbers with hyphens, and dates without years: 1-1/2 + 2-1/2 = 4, 12/25 - 12/20 = 5 days.
_HYPHENATED = re.compile(r"(?<![\w./)-])\d{1,3}-\d{1,2}/\d{1,2}(?![\w.])")
_DATES = re.compile(r"\d{1,2}/\d{1,2}\s*-\s*\d{1,2}/\d{1,2}")
# Percentages that are added or subtracted, or of which only the last refers to a number; and roots, which in plain
# text may extend beyond what follows the sign: √36+64 = 10.
_REACHES_ON = re.compile(r"%\s*(?:off|more|less)\b|%\s*[-+]\s*[\d.]+\s*%\s*of\b|√\d[\d.]*[-+]\d")
_CURRENCIES = frozenset([*CURRENCY, "USD", "EUR", "GBP", "CHF", "INR", "Rs", "Rs.", "Rp"]) - {"¢"}
_INTEGERS = re.compile(r"(?<![\d.,])\d{1,9}(?![\d.,]*\d)")
_BITS = re.compile("[01]+")
_CARRIES = re.compile(r"\b(?:carr|borrow)")
_TEN = 10


def may_mean_another(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if the text of a failing equation may not be an equation at all, or may be one with other numbers."""
    assert left.expression is not None
    assert right.expression is not None
    equation = _Equation(left, right, comparison, text, left.expression, right.expression)
    return any(means_another(equation) for means_another in _MEANINGS)


@dataclass(frozen=True)
class _Equation:
    """A failing equation in its text. Each method is True if the equation may mean another thing."""

    left: Member
    right: Member
    comparison: Comparison
    text: str
    work: Expression
    result: Expression

    @property
    def is_sum(self) -> bool:
        return self.work.node.kind in (Kind.ADD, Kind.SUBTRACT)

    @cached_property
    def sides(self) -> tuple[Fraction | None, Fraction | None]:
        return self.comparison.left.number, self.comparison.right.number

    def holds_with(
        self, node: Node, replaced: Mapping[int, Fraction] | None = None, undecided: bool = False
    ) -> bool:
        """True if `node`, with some numbers replaced, has the value of the right side. `undecided` is the answer
        if it has no value."""
        try:
            right = evaluate(self.result.node, replaced=replaced) if undecided else self.comparison.right
            return not difference(evaluate(node, replaced=replaced), right).above
        except UndecidedError:
            return undecided

    def is_written_otherwise(self) -> bool:
        """A side may be the whole or the broken part of a number, a mixed number with a hyphen, a difference of
        dates, a percentage of something else, or the number of an equation."""
        text, span = self.text, (self.left.start, self.left.end)
        hyphenated = (_HYPHENATED.search(text, side.start, side.end) for side in (self.left, self.right))
        return bool(
            (any(hyphenated) and " " in text[self.left.start : self.right.end])
            or _REACHES_ON.search(text, *span)
            or _LABELS.fullmatch(text, *span)
            or (_DATES.fullmatch(text, *span) and self.right.trailing[:1] in (("day",), ("days",)))
            or (not self.left.in_formula and _BRACKETED.fullmatch(text, *span))
        )

    def is_quotient_with_rest(self) -> bool:
        """The right side may be a quotient whose remainder the text states after it, as in 17/3 = 5 with 2 left."""
        numbers = [node.number or Fraction(0) for node in _numbers(self.result)]
        if self.work.node.kind is not Kind.DIVIDE or not numbers:
            return False
        dividend, divisor = (part.number for part in self.work.node.parts)
        if dividend is None or divisor is None or not 0 < (rest := dividend - numbers[0] * divisor) < divisor:
            return False
        # 20/6 = 3 (2 remain) reads like a product.
        return rest in numbers[1:] or str(rest) in _INTEGERS.findall(self.text, self.right.end, self.right.end + 50)

    def is_range(self) -> bool:
        """The left side may be a range or score, as in pages 5-9 = 5 pages: its dash has no spaces, unlike the
        equals sign, or is between two years. Formulas are excluded."""
        text, (start, end) = self.text, (self.left.start, self.left.end)
        if self.left.in_formula:
            return False
        years = _YEARS.fullmatch(text, start, end)
        if years is not None and int(years[1]) < int(years[2]):
            return True
        return text[end : end + 1].isspace() and _RANGE.fullmatch(text, start, end) is not None

    def begins_with_an_item(self) -> bool:
        """The equation holds without its first number, as in 4 - 3 + 9 = 12, or with a list number split off it,
        as in 2.3 + 4 = 7. That number may be the number of a list item or belong to a name, and the minus sign
        may be a dash."""
        before = self.text[: self.left.start].rpartition("\n")[2].split()
        first = next(iter(_numbers(self.work)), None)
        _, _, number = first.name.partition(".") if first is not None else ("", "", "")
        if not before and number.isdigit() and self.holds_with(self.work.node, {id(first): Fraction(int(number))}):
            return True
        rest = _without_first(self.work.node)
        if rest is None or rest.is_literal or self.left.in_formula or (before and before[-1][-1] in ":=,;("):
            return False
        return self.holds_with(rest)

    def is_amount_of_part(self) -> bool:
        """The equation may give the amount of a part, as in 3/4 = 60 km: the left side is a fraction, and the
        right side is an integer over three times as large."""
        part, amount = self.sides
        if not self.work.node.is_fraction or not self.right.is_literal or part is None or amount is None:
            return False
        return (part.denominator != 1 or part <= 1) and amount.denominator == 1 and abs(amount) > 3 * abs(part)

    def adds_unlike_units(self) -> bool:
        """A sum may add containers and their contents, as in 2 boxes + 3 = 27 pencils, or units of a language
        that is not known here, as in 2 Stunden + 30 Minuten = 150 Minuten."""
        units = {node.unit for node in _numbers(self.work)}
        if not self.is_sum or len(units) < 2:
            return False
        if len(units & _CURRENCIES) > 1 or not units.isdisjoint(CONTAINERS):
            return True
        result = self.sides[1]
        return result is not None and any(_counts_several(self.work, unit, result) for unit in units if unit)

    def converts(self) -> bool:
        """The equation may convert a unit, as in 24 × 60 = 1 day and 10 × 10 cents = $1: the ratio of the two
        sides is the ratio between the result's unit and another one."""
        is_turned = self.left.is_literal
        work, result = (self.result, self.work) if is_turned else (self.work, self.result)
        x, y = self.sides
        if not result.node.is_literal or not x or not y:
            return False
        ratio = abs(x / y)
        if "dozen" in work.units and are_convertible("dozen", ratio, self.text):
            # 3 dozen × 12 = 36
            return True
        is_sum = work.node.kind in (Kind.ADD, Kind.SUBTRACT)
        if is_sum and Fraction(1, 10) < ratio < 10 and not any(map(conversion, work.units)):
            # Slips of sums have small ratios too.
            return False
        trailing = (self.left if is_turned else self.right).trailing
        units = {*result.units, *trailing[:1]} - work.units
        if units and not work.units and result.node.number == 1:
            # 52 × 7 = 1 year
            return True
        # 60 Minuten × 2 = 2 Stunden
        is_foreign = bool(units and work.units) and is_unknown_conversion(units | work.units, ratio)
        return is_foreign or any(are_convertible(unit, ratio, self.text) for unit in units)

    def is_carried(self) -> bool:
        """The right side may be the digit that is written down, as in 7 + 8 = 5 (carry the 1)."""
        x, y = self.sides
        if x is None or y is None or not 0 <= y < _TEN or (x - y) % _TEN:
            return False
        return _CARRIES.search(self.text[self.right.end : self.right.end + 20]) is not None

    def has_decimal_commas(self) -> bool:
        """The equation holds, or cannot be decided, with commas as decimal points and points between thousands,
        as in 1,500 · 2 = 3."""
        swapped: dict[int, Fraction] = {}
        for node in (*_numbers(self.work), *_numbers(self.result)):
            number = node.number or Fraction(0)
            if "," in node.name:
                swapped[id(node)] = number / 1000
            elif node.decimals == 3:
                swapped[id(node)] = number * 1000
            elif node.decimals:
                return False
        return bool(swapped) and self.holds_with(self.work.node, swapped, undecided=True)

    def is_in_base_two(self) -> bool:
        """The equation holds in base two and has a number of at least three digits, as in 1011 + 1 = 1100."""
        numbers = [*_numbers(self.work), *_numbers(self.result)]
        if not all(_BITS.fullmatch(node.name) for node in numbers) or all(len(node.name) < 3 for node in numbers):
            return False
        bits = {id(node): Fraction(int(node.name, 2)) for node in numbers}
        return self.holds_with(self.work.node, bits, undecided=True)


_MEANINGS = (
    _Equation.is_written_otherwise,
    _Equation.is_quotient_with_rest,
    _Equation.is_range,
    _Equation.begins_with_an_item,
    _Equation.is_amount_of_part,
    _Equation.adds_unlike_units,
    _Equation.converts,
    _Equation.is_carried,
    _Equation.has_decimal_commas,
    _Equation.is_in_base_two,
)


def _numbers(expression: Expression) -> list[Node]:
    return [node for node in expression.node.walk() if node.kind is Kind.NUMBER]


def _without_first(node: Node) -> Node | None:
    """Return a sum without its first number and the minus sign after that number. Returns None if the sum does not
    begin in this way."""
    if node.kind not in (Kind.ADD, Kind.SUBTRACT):
        return None
    first, second = node.parts
    if first.kind is Kind.NUMBER:
        return second if node.kind is Kind.SUBTRACT else None
    rest = _without_first(first)
    return replace(node, parts=(rest, second)) if rest else None


def _counts_several(expression: Expression, unit: str, result: Fraction) -> bool:
    """True if an expression has the value `result` once its numbers with the unit `unit` are multiplied or divided
    by an integer above two."""
    zeros = {id(node): Fraction(0) for node in _numbers(expression) if node.unit == unit}
    try:
        rest = evaluate(expression.node, replaced=zeros).number
        amount = evaluate(expression.node).number
    except UndecidedError:
        return False
    if rest is None or amount is None or amount == rest or result == rest:
        return False
    size = (result - rest) / (amount - rest)
    return size > 0 and 1 in (size.numerator, size.denominator) and size.numerator + size.denominator > 3
