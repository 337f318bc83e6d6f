"""Formatting values as a person would write them: 69, 0.25, 8/3, 2.5x + 15."""

from collections.abc import Mapping
from fractions import Fraction

from stepsight.core.equations.parsing.values import ONE, PI, AlgebraicValue, Monomial, number, substitute

_MAX_LENGTH = 60


def write_value(value: AlgebraicValue, like_decimal: bool = False) -> str:
    """Format a value as text. Numbers are written as decimals if they are short or if `like_decimal` is True, and
    as fractions otherwise."""
    above, below = dict(value.above), dict(value.below)
    if any(below):
        text = f"({_write_polynomial(above, value.exact)})/({_write_polynomial(below, value.exact)})"
    else:
        divisor = below[ONE]
        text = _write_polynomial({key: part / divisor for key, part in above.items()}, value.exact, like_decimal)
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


def write_number(value: Fraction, exact: bool = True, like_decimal: bool = False) -> str:
    """Format a number as text, such as 12, -0.75 or 8/3. A number that is not exact is rounded."""
    sign, size = ("-" if value < 0 else ""), abs(value)
    if size.denominator == 1 and exact:
        return f"{sign}{_grouped(size.numerator)}"
    places = _decimal_places(size.denominator)
    if exact and places is not None and places <= (6 if like_decimal else 4):
        return f"{sign}{_decimal(size, places)}"
    if exact and not like_decimal and size.denominator < 10_000:
        return f"{sign}{size.numerator}/{size.denominator}"
    return f"{sign}{_significant(size)}"


def _grouped(value: int) -> str:
    text = str(value)
    if len(text) > 24:
        return f"{text[0]}.{text[1:4]} · 10^{len(text) - 1}"
    return f"{value:,}" if value >= 10_000 else text


def _decimal_places(denominator: int) -> int | None:
    """Return how many decimal places a fraction with this denominator needs, or None if its decimals never end."""
    places = 0
    while denominator % 10 == 0:
        denominator, places = denominator // 10, places + 1
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator, places = denominator // prime, places + 1
    return places if denominator == 1 else None


def _decimal(value: Fraction, places: int) -> str:
    scaled = round(value * 10**places)
    text = f"{_grouped(scaled // 10**places)}.{scaled % 10**places:0{places}d}"
    return text.rstrip("0").rstrip(".")


def _significant(value: Fraction) -> str:
    """Format a number with four decimals if it is at least 1, and with about four significant digits if it is
    smaller."""
    if not value:
        return "0"
    places = 4 if value >= 1 else 3 + len(str(value.denominator // value.numerator))
    if places > 12 or value > 10**15:
        return f"{float(value):.4g}"
    return _decimal(value, places)


def _write_polynomial(terms: Mapping[Monomial, Fraction], exact: bool, like_decimal: bool = False) -> str:
    if not terms:
        return "0"
    written = ""
    for key, coefficient in sorted(terms.items(), key=_rank):
        sign = "-" if coefficient < 0 else "+"
        number = write_number(abs(coefficient), exact, like_decimal)
        letters = "".join(_power(name, exponent) for name, exponent in key)
        if key and abs(coefficient) == 1:
            number = ""
        term = f"({number}){letters}" if letters and "/" in number else f"{number}{letters}"
        written += f" {sign} {term}" if written else f"{'-' if sign == '-' else ''}{term}"
    return written


def _rank(item: tuple[Monomial, Fraction]) -> tuple[int, Monomial]:
    return -sum(exponent for _, exponent in item[0]), item[0]


def _power(name: str, exponent: int) -> str:
    written = f"{name} " if len(name) > 1 and "_" not in name else name
    return written.strip() if exponent == 1 else f"{written.strip()}^{exponent}"


def closed(value: AlgebraicValue) -> AlgebraicValue:
    """Return a value in which the letter π is replaced by its approximate number."""
    return substitute(value, {"π": number(PI, exact=False)})
