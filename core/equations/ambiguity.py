"""Failing equations that are not counted as wrong, because their signs may stand for something other than an
operation."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from stepsight.core.equations.chains import Member
from stepsight.core.equations.comparison import Comparison
from stepsight.core.equations.expressions import Expression, Kind, Node, evaluate
from stepsight.core.equations.units import CONTAINERS, are_convertible, conversion, is_unknown_conversion
from stepsight.core.equations.values import UndecidedError, difference
from stepsight.core.text.signs import CURRENCY

# A range, a score or a mixed number: pages 5-9 = 5 pages, they won 3-1 = 3 points, 2-1/2 cups.
_RANGE = re.compile(r"\d[\d.,]*+(?:-\d[\d.,]*+)++(?:/\d++)?\s*+[A-Za-z ]*+")
# Years from an earlier to a later one, also with spaces: 2019 - 2021 = 3 years.
_YEARS = re.compile(r"((?:1\d|20)\d\d)\s*-\s*((?:1\d|20)\d\d)\s*")
# Numbers of equations: (1) - (2), 2 × (1) + (3).
_LABEL = r"(?:\d{1,2}\s*(?:\*|\\cdot|\\times)\s*)?[(\[]\d{1,2}[)\]]"
_LABELS = re.compile(rf"\s*{_LABEL}(?:\s*[-+]\s*{_LABEL})+\s*")
# The parts of a number in Gauß brackets or braces: [17/3] = 5, {17/3} = 2/3.
_BRACKETED = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}")
# Mixed numbers with hyphens, and dates without years: 1-1/2 + 2-1/2 = 4, 12/25 - 12/20 = 5 days.
_HYPHENATED = re.compile(r"(?<![\w./)-])\d{1,3}-\d{1,2}/\d{1,2}(?![\w.])")
_DATES = re.compile(r"\d{1,2}/\d{1,2}\s*-\s*\d{1,2}/\d{1,2}")
# Percentages that are taken off or added, or of which only the last is of a number.
_PERCENT = re.compile(r"%\s*(?:off|more|less)\b|%\s*[-+]\s*[\d.]+\s*%\s*of\b")
# In plain text a root may reach further than its sign: √36+64 = 10.
_ROOT = re.compile(r"√\d[\d.]*[-+]\d")
_CURRENCIES = frozenset([*CURRENCY, "USD", "EUR", "GBP", "CHF", "INR", "Rs", "Rs.", "Rp"]) - {"¢"}
_INTEGERS = re.compile(r"(?<![\d.,])\d{1,9}(?![\d.,]*\d)")
# The right side is much larger if it is over so many times the part; the terms of a size, which is an integer above
# two or one by it, add up to more than this; a number with so many decimals may have thousands.
_LARGER, _TERMS, _THOUSANDS = 3, 3, 3
_TEN = 10
_BEHIND = 50


def may_mean_another(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if the text of a failing equation may not be an equation at all, or may be one with other numbers."""
    return any(means(left, right, comparison, text) for means in _KINDS)


def _is_written_otherwise(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if a side may be the whole or the broken part of a number, a mixed number with a hyphen, a difference
    of dates, or a percentage of something else."""
    if any(
        _HYPHENATED.search(text, side.start, side.end) and " " in text[left.start : right.end]
        for side in (left, right)
    ):
        return True
    if _PERCENT.search(text, left.start, left.end) or _ROOT.search(text, left.start, left.end):
        return True
    if _DATES.fullmatch(text, left.start, left.end) and right.trailing[:1] in (("day",), ("days",)):
        return True
    return not left.in_formula and _BRACKETED.fullmatch(text, left.start, left.end) is not None


def _is_quotient_with_rest(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if the right side is a quotient whose remainder the text states after it, as in 17/3 = 5 with 2 left."""
    assert left.expression is not None
    assert right.expression is not None
    stated = [node.number or Fraction(0) for node, _ in _numbers(right.expression)]
    if left.expression.node.kind is not Kind.DIVIDE or not stated:
        return False
    dividend, divisor = (part.number for part in left.expression.node.parts)
    if dividend is None or divisor is None or not 0 < (rest := dividend - stated[0] * divisor) < divisor:
        return False
    # 20/6 = 3 (2 remain) reads like a product.
    return rest in stated[1:] or str(rest) in _INTEGERS.findall(text, right.end, right.end + _BEHIND)


def _is_range(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if the left side may be a range or score, as in pages 5-9 = 5 pages: its dash has no spaces, unlike the
    equals sign, or is between two years. Formulas are excluded."""
    if left.in_formula:
        return False
    years = _YEARS.fullmatch(text, left.start, left.end)
    if years is not None and int(years[1]) < int(years[2]):
        return True
    return text[left.end : left.end + 1].isspace() and _RANGE.fullmatch(text, left.start, left.end) is not None


def _names_equations(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    return _LABELS.fullmatch(text, left.start, left.end) is not None


def _begins_with_an_item(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if the equation holds without its first number, as in 4 - 3 + 9 = 12. That number may be the number of a
    list item or belong to a name, and the minus sign may be a dash."""
    assert left.expression is not None
    before = text[: left.start].rpartition("\n")[2].split()
    if not before and _holds_without_item(left.expression, comparison):
        return True
    rest = _without_first(left.expression.node)
    if rest is None or rest.is_literal or left.in_formula or (before and before[-1][-1] in ":=,;("):
        return False
    try:
        return not difference(evaluate(rest), comparison.right).above
    except UndecidedError:
        return False


def _holds_without_item(expression: Expression, comparison: Comparison) -> bool:
    """True if the equation holds once its first number is read as a list number and another number, as in 2.3 + 4 =
    7."""
    node, _ = next(_numbers(expression), (None, ""))
    _, point, number = node.name.partition(".") if node is not None else ("", "", "")
    if node is None or not point or not number.isdigit():
        return False
    try:
        value = evaluate(expression.node, replaced={id(node): Fraction(int(number))})
        return not difference(value, comparison.right).above
    except UndecidedError:
        return False


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


def _is_amount_of_part(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if the equation may give the amount of a part, as in 3/4 = 60 km: the left side is a fraction, and the
    right side is a much larger integer."""
    assert left.expression is not None
    part, amount = comparison.left.number, comparison.right.number
    if not left.expression.node.is_fraction or not right.is_literal or part is None or amount is None:
        return False
    return (part.denominator != 1 or part <= 1) and amount.denominator == 1 and abs(amount) > _LARGER * abs(part)


def _adds_unlike_units(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if a sum may add containers and their contents, as in 2 boxes + 3 = 27 pencils, or units of a language
    that is not known here, as in 2 Stunden + 30 Minuten = 150 Minuten."""
    assert left.expression is not None
    if left.expression.node.kind not in (Kind.ADD, Kind.SUBTRACT):
        return False
    units = {unit for _, unit in _numbers(left.expression)}
    if len(units) < 2:
        return False
    if len(units & _CURRENCIES) > 1:
        return True
    result = comparison.right.number
    return not units.isdisjoint(CONTAINERS) or (
        result is not None and any(_holds_several(left.expression, unit, result) for unit in units if unit)
    )


def _holds_several(expression: Expression, unit: str, result: Fraction) -> bool:
    """True if an expression has the value `result` once its numbers with the unit `unit` are multiplied or divided
    by an integer above two."""
    numbers = {id(node): node.number or Fraction(0) for node, name in _numbers(expression) if name == unit}
    try:
        without = evaluate(expression.node, replaced=dict.fromkeys(numbers, Fraction(0))).number
        amount = evaluate(expression.node).number
    except UndecidedError:
        return False
    if without is None or amount is None or amount == without or result == without:
        return False
    size = (result - without) / (amount - without)
    return size > 0 and 1 in (size.numerator, size.denominator) and size.numerator + size.denominator > _TERMS


def _converts(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if the equation may convert a unit, as in 24 × 60 = 1 day and 10 × 10 cents = $1: the ratio of the two
    sides is the ratio between the result's unit and another one."""
    work, result = (right, left) if left.is_literal else (left, right)
    assert work.expression is not None
    assert result.expression is not None
    x, y = comparison.left.number, comparison.right.number
    if not result.is_literal or not x or not y:
        return False
    ratio = abs(x / y)
    if "dozen" in work.expression.units and are_convertible("dozen", ratio, text):
        # 3 dozen × 12 = 36
        return True
    is_sum = work.expression.node.kind in (Kind.ADD, Kind.SUBTRACT)
    if is_sum and Fraction(1, 10) < ratio < 10 and not any(map(conversion, work.expression.units)):
        # Slips of sums have small ratios too.
        return False
    units = {*result.expression.units, *result.trailing[:1]} - work.expression.units
    if units and not work.expression.units and result.expression.node.number == 1:
        # 52 × 7 = 1 year
        return True
    return any(are_convertible(unit, ratio, text) for unit in units) or (
        # 60 Minuten × 2 = 2 Stunden
        bool(units) and bool(work.expression.units) and is_unknown_conversion(units | work.expression.units, ratio)
    )


def _is_carried(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if the right side is the digit that is written down, as in 7 + 8 = 5 (carry the 1)."""
    x, y = comparison.left.number, comparison.right.number
    if x is None or y is None or not 0 <= y < _TEN or (x - y) % _TEN:
        return False
    return re.search(r"\b(?:carr|borrow)", text[right.end : right.end + 20]) is not None


def _has_decimal_commas(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if the equation holds, or cannot be decided, with commas as decimal points and points between thousands,
    as in 1,500 · 2 = 3."""
    assert left.expression is not None
    assert right.expression is not None
    swapped: dict[int, Fraction] = {}
    for expression in (left.expression, right.expression):
        for node, _ in _numbers(expression):
            assert node.number is not None
            if "," in node.name:
                swapped[id(node)] = node.number / 1000
            elif node.decimals == _THOUSANDS:
                swapped[id(node)] = node.number * 1000
            elif node.decimals:
                return False
    if not swapped:
        return False
    try:
        x, y = (evaluate(one.node, replaced=swapped) for one in (left.expression, right.expression))
        return not difference(x, y).above
    except UndecidedError:
        return True


_KINDS: tuple[Callable[[Member, Member, Comparison, str], bool], ...] = (
    _is_written_otherwise,
    _is_quotient_with_rest,
    _is_range,
    _names_equations,
    _begins_with_an_item,
    _is_amount_of_part,
    _adds_unlike_units,
    _converts,
    _is_carried,
    _has_decimal_commas,
)


def _numbers(expression: Expression) -> Iterator[tuple[Node, str]]:
    return ((node, node.unit) for node in expression.node.walk() if node.kind is Kind.NUMBER)
