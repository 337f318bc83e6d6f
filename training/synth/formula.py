"""Formulas: calculations on named quantities, which are evaluated exactly and written as plain text or LaTeX."""

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
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
        return compile(_exact(self.tree, condition=True), self.text, "eval")

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
    _exact(formula.tree)
    return formula


@cache
def parse_condition(text: str) -> Formula:
    """Parse a condition. Raises `ValueError` if the text is not a comparison."""
    condition = Formula(text, _parse(text))
    if not isinstance(condition.tree, ast.Compare) or any(type(sign) not in _SIGNS for sign in condition.tree.ops):
        raise ValueError(f"{text!r} is no comparison with < <= > >= == !=")
    _exact(condition.tree, condition=True)
    return condition


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ValueError(f"{text!r} is no formula") from None


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


def _whole(value: Number, largest: int = _LARGEST_WHOLE, least: int = 0) -> int:
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
# Those written without brackets of their own.
_OPEN = {"percent": _SUM, "mod": _SUM, "factorial": _POWER}
_SCOPE: dict[str, Any] = {
    "__builtins__": {},
    "divide": _divide,
    "power": lambda base, exponent: base ** _whole(exponent, _LARGEST_POWER),
    "gcd": lambda a, b: math.gcd(_whole(a), _whole(b)),
    "lcm": lambda a, b: math.lcm(_whole(a), _whole(b)),
    "binom": lambda n, k: math.comb(_whole(n, 60), _whole(k, 60)),
    "factorial": lambda n: math.factorial(_whole(n, 12)),
    "mod": lambda a, b: _whole(a, least=-_LARGEST_WHOLE) % _whole(b),
    "floor": math.floor,
    "ceil": math.ceil,
    "log": _log,
    "sqrt": _root,
    "abs": abs,
    "percent": lambda rate, whole: _divide(rate * whole, 100),
}


def _exact(node: ast.expr, condition: bool = False) -> str:
    """Return Python code for the exact value of a formula or, with `condition`, of a comparison.

    Raises `ValueError` if a part is not supported.
    """
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return str(number)
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"(-{_exact(operand)})"
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
            return f"({_exact(left)} {_SIGNS[type(op)]} {_exact(right)})"
        case ast.BinOp(left=left, op=ast.Div() | ast.Pow() as op, right=right):
            return f"{'divide' if isinstance(op, ast.Div) else 'power'}({_exact(left)}, {_exact(right)})"
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if _ARGUMENTS.get(name) == len(args):
            return f"{name}({', '.join(map(_exact, args))})"
        case ast.Compare(left=left, ops=ops, comparators=sides) if condition:
            compared = zip(ops, sides, strict=True)
            return _exact(left) + "".join(f" {_SIGNS[type(op)]} {_exact(side)}" for op, side in compared)
    raise ValueError(f"{ast.unparse(node)!r} is no formula of + - * / ** and {', '.join(_NOTATIONS)}")


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
    raise ValueError(f"no formula: {ast.unparse(node)}")
