"""Formulas: calculations on named quantities, evaluated exactly and written as plain text or LaTeX.

The kinds of planted errors are here too, with the wrong number or formula that replaces the right one.
"""

import ast
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache, cached_property
from types import CodeType
from typing import Any

from stepsight.training.synth.style import Number, Style, Values

PI = "π"

_LARGEST_POWER = 12
_LARGEST_WHOLE = 10**12
_SUM, _PRODUCT, _POWER, _ATOM = range(4)
_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Formula:
    """A calculation on named quantities and whole numbers, in Python's notation.

    It may use `+ - * / **` and the functions `gcd lcm binom factorial mod floor ceil log sqrt abs percent`.
    `percent(r, p)` is r percent of p, and `log(b, x)` is the logarithm of x to the base b. A condition compares
    such calculations, such as `a + b < c` or `1 < a <= b`.
    """

    text: str
    tree: ast.expr

    @cached_property
    def names(self) -> frozenset[str]:
        called = {id(node.func) for node in ast.walk(self.tree) if isinstance(node, ast.Call)}
        return frozenset(n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and id(n) not in called)

    @cached_property
    def _code(self) -> CodeType:
        return compile(_exact_code(self.tree, condition=True), self.text, "eval")

    def value(self, values: Values) -> Number | None:
        """Return the exact value, or None if it is undefined, as in a division by zero or an irrational root."""
        try:
            value: Number = eval(self._code, _SCOPE, values)
        except ArithmeticError:
            return None
        return value

    def holds(self, values: Values) -> bool:
        """True if the condition holds for `values`, and False if it fails or a side is undefined."""
        return bool(self.value(values))

    def written(self, values: Values, style: Style) -> str:
        """Return the formula as written with `values` filled in, without the delimiters of `style.math`."""
        return _write(self.tree, values, style, first=True)[0]

    def substitute(self, name: str, inner: "Formula") -> "Formula":
        """Return a copy of the formula in which `name` is replaced by the formula `inner`."""
        tree = replaced(self.tree, lambda n: inner.tree if isinstance(n, ast.Name) and n.id == name else None)
        return Formula(ast.unparse(tree), tree)

    def operands(self, values: Values) -> tuple[str, Number, Number] | None:
        """Return `(sign, left, right)` if the formula is a single operation `+ - * / %`, and None otherwise."""
        match self.tree:
            case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.Pow):
                sign = _SIGNS[type(op)]
            case ast.Call(func=ast.Name(id="percent"), args=[right, left]):
                sign = "%"
            case _:
                return None
        if not isinstance(left, ast.Name | ast.Constant) or not isinstance(right, ast.Name | ast.Constant):
            return None
        return sign, _quantity(left, values), _quantity(right, values)


@cache
def parse_formula(text: str) -> Formula:
    """Parse a calculation. The same text gives the same object. Raises `ValueError` if the text is none."""
    formula = Formula(text, _parse(text))
    _exact_code(formula.tree)
    return formula


@cache
def parse_condition(text: str) -> Formula:
    """Parse a condition. Raises `ValueError` if the text is not a comparison."""
    condition = Formula(text, _parse(text))
    if not isinstance(condition.tree, ast.Compare) or any(type(sign) not in _SIGNS for sign in condition.tree.ops):
        raise ValueError(f"{text!r} is not a comparison with < <= > >= == !=")
    _exact_code(condition.tree, condition=True)
    return condition


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ValueError(f"{text!r} is not a formula") from None


def replaced(tree: ast.expr, replace: Callable[[ast.expr], ast.expr | None]) -> ast.expr:
    """Return a copy of a formula with every part, from the outside in, for which `replace` returns another one
    replaced by that one."""
    if (new := replace(tree)) is not None:
        return new
    match tree:
        case ast.BinOp(left=left, op=op, right=right):
            return ast.BinOp(replaced(left, replace), op, replaced(right, replace))
        case ast.UnaryOp(op=op, operand=operand):
            return ast.UnaryOp(op, replaced(operand, replace))
        case ast.Call(func=func, args=args):
            return ast.Call(func, [replaced(arg, replace) for arg in args], [])
    return tree


def _require_whole(value: Number, largest: int = _LARGEST_WHOLE, least: int = 0) -> int:
    if value.denominator != 1 or not least <= value <= largest:
        raise ArithmeticError
    return int(value)


def _divide(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        quotient, rest = divmod(a, b)
        return Fraction(a, b) if rest else quotient
    return Fraction(a) / b


def _root(value: Number) -> Number:
    if value < 0:
        raise ArithmeticError
    root = _divide(math.isqrt(value.numerator), math.isqrt(value.denominator))
    if root * root != value:
        raise ArithmeticError
    return root


def _log(base: Number, value: Number) -> Number:
    """Return the logarithm of `value` to `base`, which must be a small whole number."""
    for exponent in range(_LARGEST_POWER + 1) if base > 1 else ():
        if base**exponent == value:
            return exponent
    raise ArithmeticError


_NOTATIONS = {
    "gcd": ("gcd({0}, {1})", r"\gcd({0}, {1})"),
    "lcm": ("lcm({0}, {1})", r"\text{{lcm}}({0}, {1})"),
    "binom": ("C({0}, {1})", r"\binom{{{0}}}{{{1}}}"),
    "factorial": ("{0}!", "{0}!"),
    "mod": ("{0} mod {1}", r"{0} \bmod {1}"),
    "floor": ("floor({0})", r"\lfloor {0} \rfloor"),
    "ceil": ("ceil({0})", r"\lceil {0} \rceil"),
    "log": ("log_{0}({1})", r"\log_{{{0}}} {1}"),
    "sqrt": ("sqrt({0})", r"\sqrt{{{0}}}"),
    "abs": ("|{0}|", "|{0}|"),
    "percent": ("{0}% of {1}", r"{0}\% \text{{ of }} {1}"),
}
"""The functions of formulas in plain text and in LaTeX."""
_ARGUMENTS = {name: plain.count("{") for name, (plain, _) in _NOTATIONS.items()}
# Functions written without brackets of their own.
_OPEN = {"percent": _SUM, "mod": _SUM, "factorial": _POWER}
_SCOPE: dict[str, Any] = {
    "__builtins__": {},
    "divide": _divide,
    "power": lambda base, exponent: base ** _require_whole(exponent, _LARGEST_POWER),
    "gcd": lambda a, b: math.gcd(_require_whole(a), _require_whole(b)),
    "lcm": lambda a, b: math.lcm(_require_whole(a), _require_whole(b)),
    "binom": lambda n, k: math.comb(_require_whole(n, 60), _require_whole(k, 60)),
    "factorial": lambda n: math.factorial(_require_whole(n, 12)),
    "mod": lambda a, b: _require_whole(a, least=-_LARGEST_WHOLE) % _require_whole(b),
    "floor": math.floor,
    "ceil": math.ceil,
    "log": _log,
    "sqrt": _root,
    "abs": abs,
    "percent": lambda rate, whole: _divide(rate * whole, 100),
}


def _exact_code(node: ast.expr, condition: bool = False) -> str:
    """Return Python code for the exact value of a formula or, with `condition`, of a comparison.

    Raises `ValueError` if a part is not supported.
    """
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return str(number)
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"(-{_exact_code(operand)})"
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
            return f"({_exact_code(left)} {_SIGNS[type(op)]} {_exact_code(right)})"
        case ast.BinOp(left=left, op=ast.Div() | ast.Pow() as op, right=right):
            return f"{'divide' if isinstance(op, ast.Div) else 'power'}({_exact_code(left)}, {_exact_code(right)})"
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if _ARGUMENTS.get(name) == len(args):
            return f"{name}({', '.join(map(_exact_code, args))})"
        case ast.Compare(left=left, ops=ops, comparators=sides) if condition:
            compared = zip(ops, sides, strict=True)
            return _exact_code(left) + "".join(f" {_SIGNS[type(op)]} {_exact_code(side)}" for op, side in compared)
    raise ValueError(f"{ast.unparse(node)!r} is not a formula with + - * / ** and {', '.join(_NOTATIONS)}")


def _quantity(node: ast.Name | ast.Constant, values: Values) -> Number:
    if isinstance(node, ast.Name):
        return values[node.id]
    assert isinstance(node.value, int)
    return node.value


def _write(node: ast.expr, values: Values, style: Style, first: bool = False) -> tuple[str, int]:
    """Return the text of a part of a formula, and the precedence of its outermost operation. `first` is True if
    nothing precedes the part, so that a leading minus needs no brackets."""

    def bound(part: ast.expr, least: int, first: bool = False) -> str:
        """Return the text of a part, in brackets if its precedence is below `least`."""
        text, binds = _write(part, values, style, first)
        return text if binds >= least else f"({text})"

    match node:
        case ast.Name(id="π"):
            return PI, _ATOM
        case ast.Constant() | ast.Name():
            value = _quantity(node, values)
            text = style.number(value)
            if value < 0:
                return (text, _SUM) if first else (f"({text})", _ATOM)
            return text, _PRODUCT if "/" in text else _POWER if "frac" in text else _ATOM
        case ast.UnaryOp(operand=inner):
            text = "-" + bound(inner, _PRODUCT)
            return (text, _SUM) if first else (f"({text})", _ATOM)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            exponent, binds = _write(right, values, style, first=True)
            if style.latex and len(exponent) > 1:
                exponent = f"{{{exponent}}}"
            elif len(exponent) > 1 and binds < _ATOM:
                exponent = f"({exponent})"
            return f"{bound(left, _ATOM)}^{exponent}", _POWER
        case ast.BinOp(left=left, right=ast.Name(id="π")):
            return f"{bound(left, _ATOM)}π", _PRODUCT
        case ast.BinOp(left=left, op=ast.Div(), right=right) if style.over == "frac":
            top, bottom = (_write(side, values, style, first=True)[0] for side in (left, right))
            return f"\\frac{{{top}}}{{{bottom}}}", _POWER
        case ast.BinOp(left=left, op=op, right=right):
            binds = _SUM if isinstance(op, ast.Add | ast.Sub) else _PRODUCT
            sign = {ast.Mult: style.times, ast.Div: style.over}.get(type(op), _SIGNS[type(op)])
            tight = binds if isinstance(op, ast.Add | ast.Mult) else binds + 1
            return f"{bound(left, binds, first)} {sign} {bound(right, tight)}", binds
        case ast.Call(func=ast.Name(id=name), args=args):
            notation = _NOTATIONS[name][style.latex]
            if name in _OPEN:
                return notation.format(*(bound(arg, _ATOM) for arg in args)), _OPEN[name]
            return notation.format(*(_write(arg, values, style, first=True)[0] for arg in args)), _ATOM
    raise ValueError(f"not a formula: {ast.unparse(node)}")


class ErrorKind(StrEnum):
    """The kinds of planted errors.

    Slips, misread quantities and wrong final answers can occur in any story. Errors of the remaining kinds need a
    calculation that invites them.
    """

    SLIP = "arithmetic slip"
    MISREAD = "misread quantity"
    OPERATION = "wrong operation"
    SIGN = "sign"
    DROPPED = "dropped term"
    FORMULA = "wrong formula"
    UNIT = "wrong unit"
    INFERENCE = "invalid inference"
    CASE = "skipped case"
    ANSWER = "wrong final answer"


_SWAPS: dict[type[ast.operator], tuple[ast.operator, ...]] = {
    ast.Add: (ast.Sub(), ast.Mult()),
    ast.Sub: (ast.Add(),),
    ast.Mult: (ast.Add(), ast.Div()),
    ast.Div: (ast.Mult(), ast.Sub()),
}
# For multiples of π, only these swaps are possible: 2 + 3π and π * π are not multiples.
_SWAPS_OF_PI: dict[type[ast.operator], tuple[ast.operator, ...]] = {
    ast.Add: (ast.Sub(),),
    ast.Sub: (ast.Add(),),
    ast.Mult: (ast.Div(),),
    ast.Div: (ast.Mult(),),
}
_UNITS = {60: (100, 24), 100: (10, 1000), 1000: (100, 10), 24: (12, 60), 12: (10, 24), 3600: (60, 360), 7: (5, 10)}


def invited_errors(formula: Formula, unit: str) -> Iterator[tuple[ErrorKind, str]]:
    """Yield (kind, formula) for each wrong formula that a formula invites by its form.

    In a single operation, another sign is taken. In a longer formula, a plus or minus is reversed, or the right
    operand of a sum, difference or product dropped. In either, a conversion factor is replaced by another one.
    """
    tree = formula.tree

    def variant(old: ast.expr, new: ast.expr) -> str:
        return ast.unparse(replaced(tree, lambda part: new if part is old else None))

    operations = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp)]
    if isinstance(tree, ast.BinOp) and formula.names:
        if all(isinstance(side, ast.Name | ast.Constant) for side in (tree.left, tree.right)):
            swaps = _SWAPS_OF_PI if unit == PI else _SWAPS
            for op in swaps.get(type(tree.op), ()):
                yield ErrorKind.OPERATION, ast.unparse(ast.BinOp(tree.left, op, tree.right))
        else:
            for node in operations:
                if isinstance(node.op, ast.Add | ast.Sub):
                    op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
                    yield ErrorKind.SIGN, variant(node, ast.BinOp(node.left, op, node.right))
            for node in operations:
                if isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
                    yield ErrorKind.DROPPED, variant(node, node.left)
    for node in operations:
        match node:
            case ast.BinOp(op=ast.Mult() | ast.Div(), right=ast.Constant(value=int(factor))):
                for other in _UNITS.get(factor, ()):
                    yield ErrorKind.UNIT, variant(node, ast.BinOp(node.left, node.op, ast.Constant(other)))


def slip(right: Number, factors: Sequence[Number], rng: random.Random) -> Number:
    """Choose a wrong result near `right` at random.

    If `right` is a product, `factors` holds its factors, so that the wrong result may still be a multiple of one of
    them. Most slips keep the last digit or the divisibility, so that no rule of thumb detects them.
    """
    if right.denominator != 1:
        top, bottom = right.numerator, right.denominator
        changed = [(top + 1, bottom), (top - 1, bottom), (top, bottom + 1), (top + 2, bottom), (bottom, top)]
        return rng.choice([value for value in (Fraction(*pair) for pair in changed) if value not in (right, 0)])
    size = max(right, -right)
    offsets = [10, 10, 10, 20, 1, 2, 30 if size > 60 else 10, 100 if size > 150 else 9]
    offsets += [int(f) for f in factors if f.denominator == 1 and 1 < abs(int(f)) <= size] * 2
    if size < 20:
        offsets = [1, 1, 2, 3, *offsets]
    while True:
        wrong = right + rng.choice([-1, 1]) * rng.choice(offsets)
        if wrong != right and (wrong > 1 or right < 0 or right <= 1):
            return wrong


def misread(value: Number, others: Sequence[Number], rng: random.Random) -> Number:
    """Choose a number that could be mistaken for `value`. The result is `value` with its digits reversed, a
    different quantity of the problem, or a number near `value`."""
    reversed_digits = int(str(abs(int(value)))[::-1])
    near = rng.choice([value + 10, value + 1, value - 1, value + 2])
    if value < 0:
        return rng.choice([n for n in (-value, -value, value - 1, value + 1) if n])
    choices = [n for n in (reversed_digits, reversed_digits, *others, near) if n > 1 and n != value]
    return rng.choice(choices or [value + 1])
