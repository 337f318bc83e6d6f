"""A formula: a calculation on named quantities, evaluated exactly, written as plain text or LaTeX."""

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

from stepsight.training.synth.style import Style

Values = Mapping[str, Fraction]

_LARGEST_POWER = 12
_LARGEST_WHOLE = 10**12
_SUM, _PRODUCT, _POWER, _ATOM = range(4)
_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^"}


class _UndefinedError(Exception):
    """A division by zero, the root of no square, and the like."""


@dataclass(frozen=True)
class Formula:
    """Python's notation of `+ - * / **` and of the functions `gcd lcm binom factorial mod floor ceil log sqrt abs
    percent`
    (`percent(r, p)`: r percent of p; `log(b, x)`: the exponent to which b is x), over names and whole numbers."""

    tree: ast.expr

    @classmethod
    def of(cls, text: str) -> "Formula":
        return _parsed(text)

    @cached_property
    def names(self) -> frozenset[str]:
        called = {id(node.func) for node in ast.walk(self.tree) if isinstance(node, ast.Call)}
        return frozenset(n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and id(n) not in called)

    def value(self, values: Values) -> Fraction | None:
        """The exact value, or None where there is none: a division by zero, the root of no square."""
        try:
            return _value(self.tree, values)
        except _UndefinedError:
            return None

    def written(self, values: Values, style: Style) -> str:
        """The formula on `values`, without the delimiters of `style.math`."""
        return _write(self.tree, values, style, first=True)[0]

    def put(self, name: str, inner: "Formula") -> "Formula":
        """The formula with `inner` in the place of `name`."""
        return Formula(_put(self.tree, name, inner.tree))

    def operands(self, values: Values) -> tuple[str, Fraction, Fraction] | None:
        """`(sign, left, right)` of a formula with a single operation `+ - * / %`, else None."""
        node = self.tree
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Pow):
            left, sign, right = node.left, _SIGNS[type(node.op)], node.right
        elif isinstance(node, ast.Call) and _name(node) == "percent":
            left, sign, right = node.args[1], "%", node.args[0]
        else:
            return None
        if not all(isinstance(part, ast.Name | ast.Constant) for part in (left, right)):
            return None
        return sign, _value(left, values), _value(right, values)

    def __str__(self) -> str:
        return ast.unparse(self.tree)


@cache
def _parsed(text: str) -> Formula:
    return Formula(ast.parse(text, mode="eval").body)


def holds(condition: str, values: Values) -> bool:
    """Whether a comparison such as `"a + b < c"` is true; false where a side has no value."""
    node = _parsed(condition).tree
    assert isinstance(node, ast.Compare)
    sides = [Formula(side).value(values) for side in (node.left, *node.comparators)]
    pairs = zip(sides, node.ops, sides[1:], strict=False)
    return all(a is not None and b is not None and _COMPARE[type(op)](a, b) for a, op, b in pairs)


_COMPARE: dict[type[ast.cmpop], Callable[[Fraction, Fraction], bool]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}


def _name(node: ast.Call) -> str:
    assert isinstance(node.func, ast.Name)
    return node.func.id


def _whole(value: Fraction) -> int:
    if value.denominator != 1 or abs(value) > _LARGEST_WHOLE:
        raise _UndefinedError
    return int(value)


def _natural(value: Fraction, largest: int = _LARGEST_WHOLE) -> int:
    number = _whole(value)
    if not 0 <= number <= largest:
        raise _UndefinedError
    return number


def _root(value: Fraction) -> Fraction:
    if value < 0:
        raise _UndefinedError
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    if root * root != value:
        raise _UndefinedError
    return root


def _mod(a: Fraction, b: Fraction) -> Fraction:
    if _natural(b) == 0:
        raise _UndefinedError
    return Fraction(_whole(a) % _natural(b))


def _log(base: Fraction, value: Fraction) -> Fraction:
    """The whole exponent to which `base` is `value`."""
    for exponent in range(_LARGEST_POWER + 1) if base > 1 else ():
        if base**exponent == value:
            return Fraction(exponent)
    raise _UndefinedError


_FUNCTIONS: dict[str, Callable[..., Fraction]] = {
    "gcd": lambda a, b: Fraction(math.gcd(_natural(a), _natural(b))),
    "lcm": lambda a, b: Fraction(math.lcm(_natural(a), _natural(b))),
    "binom": lambda n, k: Fraction(math.comb(_natural(n, 60), _natural(k, 60))),
    "factorial": lambda n: Fraction(math.factorial(_natural(n, 12))),
    "mod": _mod,
    "floor": lambda a: Fraction(math.floor(a)),
    "ceil": lambda a: Fraction(math.ceil(a)),
    "log": _log,
    "sqrt": _root,
    "abs": abs,
    "percent": lambda r, p: r * p / 100,
}


def _value(node: ast.expr, values: Values) -> Fraction:
    match node:
        case ast.Constant(value=int(number)):
            return Fraction(number)
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, values)
        case ast.BinOp(left=left, op=op, right=right):
            return _apply(op, _value(left, values), _value(right, values))
        case ast.Call(args=args):
            return _FUNCTIONS[_name(node)](*(_value(arg, values) for arg in args))
    raise ValueError(f"no formula: {ast.unparse(node)}")


def _apply(op: ast.operator, a: Fraction, b: Fraction) -> Fraction:
    match op:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.Div():
            if b == 0:
                raise _UndefinedError
            return a / b
        case ast.Pow():
            return Fraction(a ** _natural(b, _LARGEST_POWER))
    raise ValueError(f"no sign of a formula: {op}")


def _put(node: ast.expr, name: str, inner: ast.expr) -> ast.expr:
    match node:
        case ast.Name(id=found):
            return inner if found == name else node
        case ast.UnaryOp(op=op, operand=operand):
            return ast.UnaryOp(op, _put(operand, name, inner))
        case ast.BinOp(left=left, op=op, right=right):
            return ast.BinOp(_put(left, name, inner), op, _put(right, name, inner))
        case ast.Call(func=func, args=args):
            return ast.Call(func, [_put(arg, name, inner) for arg in args], [])
    return node


def _write(node: ast.expr, values: Values, style: Style, first: bool = False) -> tuple[str, int]:
    """Text and how tightly it binds. `first`: nothing stands before it, so a minus needs no brackets."""
    match node:
        case ast.Name(id="π"):
            return "π", _ATOM
        case ast.Constant() | ast.Name():
            value = _value(node, values)
            text = style.number(value)
            if value < 0:
                return (text, _SUM) if first else (f"({text})", _ATOM)
            return text, _PRODUCT if "/" in text else _POWER if "frac" in text else _ATOM
        case ast.UnaryOp(operand=inner):
            text = "-" + _bound(inner, values, style, _PRODUCT)
            return (text, _SUM) if first else (f"({text})", _ATOM)
        case ast.BinOp(left=left, op=op, right=right):
            return _write_operation(left, op, right, values, style, first)
        case ast.Call(args=args):
            return _write_call(_name(node), args, values, style)
    raise ValueError(f"no formula: {ast.unparse(node)}")


def _bound(node: ast.expr, values: Values, style: Style, least: int, first: bool = False) -> str:
    """The text of a part, in brackets where it binds less than `least`."""
    text, binds = _write(node, values, style, first)
    return text if binds >= least else f"({text})"


def _write_operation(
    left: ast.expr, op: ast.operator, right: ast.expr, values: Values, style: Style, first: bool
) -> tuple[str, int]:
    if isinstance(op, ast.Pow):
        exponent, binds = _write(right, values, style, first=True)
        raised = exponent if len(exponent) == 1 or (binds == _ATOM and not style.latex) else f"({exponent})"
        raised = f"{{{exponent}}}" if style.latex and len(exponent) > 1 else raised
        return f"{_bound(left, values, style, _ATOM)}^{raised}", _POWER
    if isinstance(right, ast.Name) and right.id == "π":
        return f"{_bound(left, values, style, _ATOM)}π", _PRODUCT
    if isinstance(op, ast.Div) and style.over == "frac":
        parts = [_write(side, values, style, first=True)[0] for side in (left, right)]
        return f"\\frac{{{parts[0]}}}{{{parts[1]}}}", _POWER
    binds = _SUM if isinstance(op, ast.Add | ast.Sub) else _PRODUCT
    sign = {ast.Mult: style.times, ast.Div: style.over}.get(type(op), _SIGNS[type(op)])
    tight = binds + (0 if isinstance(op, ast.Add | ast.Mult) else 1)
    return f"{_bound(left, values, style, binds, first)} {sign} {_bound(right, values, style, tight)}", binds


def _write_call(name: str, args: list[ast.expr], values: Values, style: Style) -> tuple[str, int]:
    parts = [_write(arg, values, style, first=True)[0] for arg in args]
    if name == "percent":
        parts = [_bound(arg, values, style, _ATOM) for arg in args]
        return (f"{parts[0]}\\% \\text{{ of }} {parts[1]}" if style.latex else f"{parts[0]}% of {parts[1]}"), _SUM
    if name == "factorial":
        return f"{_bound(args[0], values, style, _ATOM)}!", _POWER
    if name == "mod":
        sides = [_bound(arg, values, style, _ATOM) for arg in args]
        return (f"{sides[0]} \\bmod {sides[1]}" if style.latex else f"{sides[0]} mod {sides[1]}"), _SUM
    if style.latex:
        shown = {
            "binom": "\\binom{{{0}}}{{{1}}}",
            "sqrt": "\\sqrt{{{0}}}",
            "abs": "|{0}|",
            "gcd": "\\gcd({0}, {1})",
            "lcm": "\\text{{lcm}}({0}, {1})",
            "floor": "\\lfloor {0} \\rfloor",
            "ceil": "\\lceil {0} \\rceil",
            "log": "\\log_{{{0}}} {1}",
        }
    else:
        shown = {
            "binom": "C({0}, {1})",
            "sqrt": "sqrt({0})",
            "abs": "|{0}|",
            "gcd": "gcd({0}, {1})",
            "lcm": "lcm({0}, {1})",
            "floor": "floor({0})",
            "ceil": "ceil({0})",
            "log": "log_{0}({1})",
        }
    return shown[name].format(*parts), _ATOM
