"""Exact values of limited size: fractions of polynomials with rational coefficients, and how a person would write
them.

A number is a polynomial without letters. Irrational roots are kept to 30 decimal places, and the results of
functions to the precision of a float. Such approximations are marked as inexact and compared within a tolerance. A
value that exceeds the limits raises `UndecidedError`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]

ONE: Monomial = ()
PI = Fraction("3.14159265358979323846264338327950288419716939937510")
MAX_BITS = 1_500
MAX_TERMS = 48
MAX_DEGREE = 24
MAX_FACTORIAL = 120
TOLERANCE = Fraction(1, 10**10)


class UndecidedError(Exception):
    """Raised for an expression without a usable value, because it is too large, undefined or not understood."""


@dataclass(frozen=True, slots=True)
class AlgebraicValue:
    """The quotient of two polynomials, `above / below`. `exact` is False if a root or function was approximated."""

    above: Mapping[Monomial, Fraction]
    below: Mapping[Monomial, Fraction]
    exact: bool = True

    @property
    def number(self) -> Fraction | None:
        """The value as a number, or None if it contains letters."""
        if any(self.above) or any(self.below):
            return None
        return self.above.get(ONE, Fraction(0)) / self.below[ONE]

    @property
    def polynomial(self) -> Mapping[Monomial, Fraction] | None:
        """The value as a polynomial, or None if its denominator contains letters."""
        if any(self.below):
            return None
        divisor = self.below[ONE]
        return self.above if divisor == 1 else {key: value / divisor for key, value in self.above.items()}

    @property
    def letters(self) -> frozenset[str]:
        return frozenset(name for part in (self.above, self.below) for key in part for name, _ in key)


def number(value: Fraction | int, exact: bool = True) -> AlgebraicValue:
    """Convert a number to an `AlgebraicValue`. Raises `UndecidedError` if it has too many digits."""
    fraction = Fraction(value)
    if fraction.numerator.bit_length() + fraction.denominator.bit_length() > MAX_BITS:
        raise UndecidedError
    return AlgebraicValue({ONE: fraction} if fraction else {}, {ONE: Fraction(1)}, exact)


def letter(name: str) -> AlgebraicValue:
    return AlgebraicValue({((name, 1),): Fraction(1)}, {ONE: Fraction(1)})


def add(left: AlgebraicValue, right: AlgebraicValue) -> AlgebraicValue:
    exact = left.exact and right.exact
    if (a := left.number) is not None and (b := right.number) is not None:
        return number(a + b, exact)
    if left.below == right.below:
        return _quotient(_collect([*left.above.items(), *right.above.items()]), left.below, exact)
    sides = _product(left.above, right.below), _product(right.above, left.below)
    return _quotient(_collect([*sides[0].items(), *sides[1].items()]), _product(left.below, right.below), exact)


def subtract(left: AlgebraicValue, right: AlgebraicValue) -> AlgebraicValue:
    negative = {key: -value for key, value in right.above.items()}
    return add(left, AlgebraicValue(negative, right.below, right.exact))


def multiply(left: AlgebraicValue, right: AlgebraicValue) -> AlgebraicValue:
    exact = left.exact and right.exact
    if (a := left.number) is not None and (b := right.number) is not None:
        return number(a * b, exact)
    return _quotient(_product(left.above, right.above), _product(left.below, right.below), exact)


def divide(left: AlgebraicValue, right: AlgebraicValue) -> AlgebraicValue:
    """Return `left / right`. Raises `UndecidedError` if `right` is zero."""
    if not right.above:
        raise UndecidedError
    return multiply(left, AlgebraicValue(right.below, right.above, right.exact))


def power(base: AlgebraicValue, exponent: AlgebraicValue) -> AlgebraicValue:
    """Return `base` raised to a rational power. Raises `UndecidedError` for 0^0, for roots of letters, for even
    roots of negative numbers, and for an exponent that is not an exact number."""
    e, b = exponent.number, base.number
    if e is None or not exponent.exact:
        raise UndecidedError
    if e.denominator != 1:
        if e.denominator > 24 or b is None:
            raise UndecidedError
        return root(power(base, number(e.numerator)), e.denominator)
    times = abs(e.numerator)
    if b is not None:
        if not b and e <= 0:
            raise UndecidedError
        if b in (1, -1):
            return number(b if times % 2 else 1, base.exact)
        if b and max(b.numerator.bit_length(), b.denominator.bit_length()) * times > MAX_BITS:
            raise UndecidedError
        return number(b**e.numerator, base.exact)
    if times > MAX_DEGREE:
        raise UndecidedError
    result = number(1)
    for _ in range(times):
        result = multiply(result, base)
    return result if e >= 0 else divide(number(1), result)


def root(value: AlgebraicValue, degree: int) -> AlgebraicValue:
    """Return a root of a number. It is exact if it is a fraction. Raises `UndecidedError` for letters, and for even
    roots of negative numbers."""
    radicand = value.number
    if radicand is None or not 2 <= degree <= 24:
        raise UndecidedError
    if radicand < 0:
        if degree % 2 == 0:
            raise UndecidedError
        inner = root(number(-radicand, value.exact), degree)
        return multiply(number(-1), inner)
    above, below = _integer_root(radicand.numerator, degree), _integer_root(radicand.denominator, degree)
    if above**degree == radicand.numerator and below**degree == radicand.denominator:
        return number(Fraction(above, below), value.exact)
    scale = 10**30
    return number(Fraction(_integer_root(int(radicand * scale**degree), degree), scale), exact=False)


def _integer_root(value: int, degree: int) -> int:
    """Return the greatest integer whose `degree`-th power does not exceed `value`."""
    if value < 2:
        return value
    if degree == 2:
        return math.isqrt(value)
    guess = 1 << -(-value.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better


def factorial(value: AlgebraicValue) -> AlgebraicValue:
    n = value.number
    if n is None or n.denominator != 1 or not 0 <= n <= MAX_FACTORIAL:
        raise UndecidedError
    return number(math.factorial(int(n)))


def binomial(above: AlgebraicValue, below: AlgebraicValue) -> AlgebraicValue:
    n, k = above.number, below.number
    if n is None or k is None or n.denominator != 1 or k.denominator != 1 or not 0 <= k <= n <= 1000:
        raise UndecidedError
    return number(math.comb(int(n), int(k)))


def absolute(value: AlgebraicValue) -> AlgebraicValue:
    if value.number is None:
        raise UndecidedError
    return number(abs(value.number), value.exact)


def function(name: str, value: AlgebraicValue, base: AlgebraicValue | None = None) -> AlgebraicValue:
    """Compute a sine, cosine or tangent (in radians) or a logarithm, to the precision of a float. Raises
    `UndecidedError` if the function has no value there or `value` contains letters."""
    inner = value.number
    if inner is None or abs(inner) > 10**12:
        raise UndecidedError
    if name in ("log", "ln"):
        base_number = Fraction(10) if name == "log" else Fraction(math.e)
        if base is not None:
            base_number = base.number or Fraction(0)
        if not 0 < base_number < 10**12 or base_number == 1 or inner <= 0 or float(inner) == 0.0:
            raise UndecidedError
        result = math.log(inner) / math.log(float(base_number))
    elif name == "tan" and abs(math.cos(inner)) < 1e-9:
        raise UndecidedError
    else:
        result = {"sin": math.sin, "cos": math.cos, "tan": math.tan}[name](inner)
    return number(Fraction(result).limit_denominator(10**13), exact=False)


def substitute(value: AlgebraicValue, letters: Mapping[str, AlgebraicValue]) -> AlgebraicValue:
    """Return a value in which the letters that are keys of `letters` are replaced by the values given for them."""
    if value.letters.isdisjoint(letters):
        return value
    parts = []
    for polynomial in (value.above, value.below):
        total = number(0)
        for key, coefficient in polynomial.items():
            term = number(coefficient)
            for name, exponent in key:
                term = multiply(term, power(letters.get(name) or letter(name), number(exponent)))
            total = add(total, term)
        parts.append(total)
    result = divide(*parts)
    return AlgebraicValue(result.above, result.below, result.exact and value.exact)


def closed(value: AlgebraicValue) -> AlgebraicValue:
    """Return a value in which the letter π is replaced by its approximate number."""
    return substitute(value, {"π": number(PI, exact=False)})


def _collect(terms: Iterable[tuple[Monomial, Fraction]]) -> Polynomial:
    """Add up the terms of a polynomial."""
    result: Polynomial = {}
    for key, value in terms:
        result[key] = result.get(key, Fraction(0)) + value
    return {key: value for key, value in result.items() if value}


def _product(left: Mapping[Monomial, Fraction], right: Mapping[Monomial, Fraction]) -> Polynomial:
    if len(left) * len(right) > 8 * MAX_TERMS:
        raise UndecidedError
    return _collect((_monomials(a, b), x * y) for a, x in left.items() for b, y in right.items())


def _monomials(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    exponents = dict(left)
    for name, exponent in right:
        exponents[name] = exponents.get(name, 0) + exponent
    return tuple(sorted(exponents.items()))


def _quotient(above: Polynomial, below: Mapping[Monomial, Fraction], exact: bool) -> AlgebraicValue:
    """Build the value `above / below`, cancelling common factors if `below` has a single term. Raises
    `UndecidedError` if the result is too large."""
    if not above:
        return AlgebraicValue({}, {ONE: Fraction(1)}, exact)
    if len(above) > MAX_TERMS or len(below) > MAX_TERMS:
        raise UndecidedError
    if len(below) == 1:
        # Factors that the denominator shares with all terms of the numerator.
        ((key, divisor),) = below.items()
        common = {name: min(exponent, *(dict(term).get(name, 0) for term in above)) for name, exponent in key}
        above = {_remove_factors(term, common): value / divisor for term, value in above.items()}
        below = {_remove_factors(key, common): Fraction(1)}
    for part in (above, below):
        for key, value in part.items():
            size = value.numerator.bit_length() + value.denominator.bit_length()
            if size > MAX_BITS or sum(exponent for _, exponent in key) > MAX_DEGREE:
                raise UndecidedError
    return AlgebraicValue(above, below, exact)


def _remove_factors(key: Monomial, common: Mapping[str, int]) -> Monomial:
    left = ((name, exponent - common.get(name, 0)) for name, exponent in key)
    return tuple((name, exponent) for name, exponent in left if exponent)


def difference(left: AlgebraicValue, right: AlgebraicValue) -> AlgebraicValue:
    """Return `left - right`, with mere approximation errors treated as zero."""
    result = subtract(left, right)
    if result.exact:
        return result
    scale = 1 + max((abs(value) for part in (left, right) for value in part.above.values()), default=Fraction(0))
    terms = {key: value for key, value in result.above.items() if abs(value) > TOLERANCE * scale}
    return AlgebraicValue(terms, result.below, False)


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
        return f"{sign}{_group_digits(size.numerator)}"
    places = _decimal_places(size.denominator)
    if exact and places is not None and places <= (6 if like_decimal else 4):
        return f"{sign}{_decimal(size, places)}"
    if exact and not like_decimal and size.denominator < 10_000:
        return f"{sign}{size.numerator}/{size.denominator}"
    return f"{sign}{_significant(size)}"


def _group_digits(value: int) -> str:
    text = str(value)
    if len(text) > 24:
        return f"{text[0]}.{text[1:4]} · 10^{len(text) - 1}"
    return f"{value:,}" if value >= 10_000 else text


def _decimal_places(denominator: int) -> int | None:
    """Return how many decimal places a fraction with this denominator needs, or None if its decimals never end."""
    places = 0
    for factor in (10, 2, 5):
        while denominator % factor == 0:
            denominator, places = denominator // factor, places + 1
    return places if denominator == 1 else None


def _decimal(value: Fraction, places: int) -> str:
    scaled = round(value * 10**places)
    text = f"{_group_digits(scaled // 10**places)}.{scaled % 10**places:0{places}d}"
    return text.rstrip("0").rstrip(".")


def _significant(value: Fraction) -> str:
    """Format a number with four decimals if it is at least 1, and with about four significant digits if it is
    smaller."""
    if not value:
        return "0"
    places = 4 if value >= 1 else 3 + len(str(value.denominator // value.numerator))
    return f"{float(value):.4g}" if places > 12 or value > 10**15 else _decimal(value, places)


def _write_polynomial(terms: Mapping[Monomial, Fraction], exact: bool, like_decimal: bool = False) -> str:
    if not terms:
        return "0"
    written = ""
    by_degree = sorted(terms.items(), key=lambda item: (-sum(exponent for _, exponent in item[0]), item[0]))
    for key, coefficient in by_degree:
        sign = "-" if coefficient < 0 else "+"
        number = write_number(abs(coefficient), exact, like_decimal)
        letters = "".join(name if exponent == 1 else f"{name}^{exponent}" for name, exponent in key)
        if key and abs(coefficient) == 1:
            number = ""
        term = f"({number}){letters}" if letters and "/" in number else f"{number}{letters}"
        written += f" {sign} {term}" if written else f"{'-' if sign == '-' else ''}{term}"
    return written
