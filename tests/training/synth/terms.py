"""A term: the tree of a mathematical expression, its exact value, and the same in SymPy."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import sympy

Tree = tuple[Any, ...]
"""`("num", value)`, `("var", name)`, or a sign or function with its parts: `("+", a, b)`, `("sqrt", a)`."""

# Pi stays a factor, so what holds at one number that is no ratio of small ones holds.
PI = Fraction(31415927, 10000019)


class NoValueError(Exception):
    """A letter without a value, a division by zero, a root that is no ratio."""


def letters(tree: Tree) -> set[str]:
    if tree[0] == "var":
        return {tree[1]}
    return {name for part in tree[1:] if isinstance(part, tuple) for name in letters(part)}


def value(tree: Tree, known: Mapping[str, Fraction]) -> Fraction:
    """Exact. Raises `NoValueError` where there is none, or none that is a ratio."""
    match tree:
        case ("num", Fraction() as number):
            return number
        case ("var", "π"):
            return PI
        case ("var", name):
            if name not in known:
                raise NoValueError(name)
            return known[name]
        case (sign, *parts):
            return apply(sign, [value(part, known) for part in parts])
    raise AssertionError(tree)


def apply(sign: str, parts: list[Fraction]) -> Fraction:
    if sign not in _APPLY:
        raise NoValueError(sign)
    found: Fraction = _APPLY[sign](*parts)
    return found


def _over(a: Fraction, b: Fraction) -> Fraction:
    if b == 0:
        raise NoValueError("division by zero")
    return a / b


def _power(a: Fraction, b: Fraction) -> Fraction:
    if b.denominator != 1 or abs(b) > 64 or (a == 0 and b < 0):
        raise NoValueError("power")
    return Fraction(a ** int(b))


def _root(a: Fraction) -> Fraction:
    if a < 0:
        raise NoValueError("root of a negative number")
    root = Fraction(math.isqrt(a.numerator), math.isqrt(a.denominator))
    if root * root != a:
        raise NoValueError("irrational root")
    return root


def _whole(a: Fraction) -> int:
    if a.denominator != 1 or abs(a) > 10**15:
        raise NoValueError("not whole")
    return int(a)


def _natural(a: Fraction) -> int:
    if a < 0 or a > 200:
        raise NoValueError("not natural")
    return _whole(a)


def _mod(a: Fraction, b: Fraction) -> Fraction:
    if b == 0:
        raise NoValueError("modulus 0")
    return Fraction(_whole(a) % _whole(b))


def _log(base: Fraction, number: Fraction) -> Fraction:
    power = Fraction(1)
    for exponent in range(64):
        if power == number:
            return Fraction(exponent)
        power *= base
    raise NoValueError("logarithm")


_APPLY: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _over,
    "^": _power,
    "neg": lambda a: -a,
    "!": lambda a: Fraction(math.factorial(_natural(a))),
    "gcd": lambda *parts: Fraction(math.gcd(*map(_whole, parts))),
    "lcm": lambda *parts: Fraction(math.lcm(*map(_whole, parts))),
    "binom": lambda n, k: Fraction(math.comb(_natural(n), _natural(k))),
    "perm": lambda n, k: Fraction(math.perm(_natural(n), _natural(k))),
    "max": max,
    "min": min,
    "mod": _mod,
    "log": _log,
    "abs": abs,
    "sqrt": _root,
    "percent": lambda rate, whole: rate * whole / 100,
    "floor": lambda a: Fraction(math.floor(a)),
    "ceil": lambda a: Fraction(math.ceil(a)),
}


def symbol(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, real=True)


def expression(tree: Tree) -> sympy.Expr:
    """The tree in SymPy, letters as symbols."""
    match tree:
        case ("num", number):
            return sympy.Rational(number.numerator, number.denominator)
        case ("var", "π"):
            return sympy.pi
        case ("var", name):
            return symbol(name)
        case (sign, *parts):
            return _SYMPY[sign](*(expression(part) for part in parts))
    raise AssertionError(tree)


_SYMPY: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": lambda a, b: a**b,
    "neg": lambda a: -a,
    "!": sympy.factorial,
    "gcd": sympy.gcd,
    "lcm": sympy.lcm,
    "binom": sympy.binomial,
    "perm": sympy.ff,
    "max": sympy.Max,
    "min": sympy.Min,
    "mod": sympy.Mod,
    "log": lambda base, number: sympy.log(number, base),
    "abs": sympy.Abs,
    "sqrt": sympy.sqrt,
    "percent": lambda rate, whole: rate * whole / 100,
    "floor": sympy.floor,
    "ceil": sympy.ceiling,
}
