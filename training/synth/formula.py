"""Formulas: calculations on named quantities, which are evaluated exactly and written as plain text or LaTeX."""

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

from stepsight.training.synth.style import Number, Style, Values

_Calculation = Callable[[Values], Number]

_LARGEST_POWER = 12
_LARGEST_WHOLE = 10**12
_SUM, _PRODUCT, _POWER, _ATOM = range(4)
_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^"}


class _UndefinedError(ArithmeticError):
    """Raised if a value is undefined, for example an irrational root or the remainder of a fraction."""


@dataclass(frozen=True)
class Formula:
    """A calculation on named quantities and whole numbers, in Python's notation.

    It may use `+ - * / **` and the functions `gcd lcm binom factorial mod floor ceil log sqrt abs percent`.
    `percent(r, p)` is r percent of p, and `log(b, x)` is the logarithm of x to the base b.
    """

    tree: ast.expr

    @classmethod
    def of(cls, text: str) -> "Formula":
        """Parse a formula. Raises `ValueError` if the text is not a formula."""
        return _parse_formula(text)

    @cached_property
    def names(self) -> frozenset[str]:
        called = {id(node.func) for node in ast.walk(self.tree) if isinstance(node, ast.Call)}
        return frozenset(n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and id(n) not in called)

    @cached_property
    def _calculation(self) -> _Calculation:
        return _compile(self.tree)

    def value(self, values: Values) -> Number | None:
        """Return the exact value, or None if it is undefined, as in a division by zero or an irrational root."""
        try:
            return self._calculation(values)
        except ArithmeticError:
            return None

    def written(self, values: Values, style: Style) -> str:
        """Return the formula as written with `values` filled in, without the delimiters of `style.math`."""
        return _write(self.tree, values, style, first=True)[0]

    def put(self, name: str, inner: "Formula") -> "Formula":
        """Return a copy of the formula in which `name` is replaced by the formula `inner`."""
        return Formula(_put(self.tree, name, inner.tree))

    def operands(self, values: Values) -> tuple[str, Number, Number] | None:
        """Return `(sign, left, right)` if the formula is a single operation `+ - * / %`, and None otherwise."""
        node = self.tree
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Pow):
            left, sign, right = node.left, _SIGNS[type(node.op)], node.right
        elif isinstance(node, ast.Call) and _name(node) == "percent":
            left, sign, right = node.args[1], "%", node.args[0]
        else:
            return None
        if not isinstance(left, ast.Name | ast.Constant) or not isinstance(right, ast.Name | ast.Constant):
            return None
        return sign, _quantity(left, values), _quantity(right, values)

    @property
    def is_binary(self) -> bool:
        """True if the formula is a single operation `+ - * /`."""
        operands = self.operands(dict.fromkeys(self.names, 1))
        return operands is not None and operands[0] != "%"


@dataclass(frozen=True)
class Condition:
    """A comparison of formulas, such as `a + b < c`, or a chain of comparisons, such as `1 < a <= b`."""

    sides: tuple[Formula, ...]
    comparisons: tuple[Callable[[Number, Number], bool], ...]

    @classmethod
    def of(cls, text: str) -> "Condition":
        """Parse a comparison. Raises `ValueError` if the text is not a comparison."""
        return _parse_condition(text)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset[str]().union(*(side.names for side in self.sides))

    def holds(self, values: Values) -> bool:
        """True if the comparison holds for `values`, and False if it fails or a side is undefined."""
        sides = [side.value(values) for side in self.sides]
        triples = zip(sides, self.comparisons, sides[1:], strict=False)
        return all(a is not None and b is not None and compare(a, b) for a, compare, b in triples)


@cache
def _parse_formula(text: str) -> Formula:
    tree = _parse(text)
    _compile(tree)
    return Formula(tree)


@cache
def _parse_condition(text: str) -> Condition:
    tree = _parse(text)
    if not isinstance(tree, ast.Compare) or any(type(sign) not in _COMPARISONS for sign in tree.ops):
        raise ValueError(f"{text!r} is no comparison with < <= > >= == !=")
    sides = (tree.left, *tree.comparators)
    for side in sides:
        _compile(side)
    return Condition(tuple(map(Formula, sides)), tuple(_COMPARISONS[type(sign)] for sign in tree.ops))


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ValueError(f"{text!r} is no formula") from None


_COMPARISONS: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def _name(node: ast.Call) -> str:
    assert isinstance(node.func, ast.Name)
    return node.func.id


def _whole(value: Number) -> int:
    if value.denominator != 1 or not -_LARGEST_WHOLE <= value <= _LARGEST_WHOLE:
        raise _UndefinedError
    return int(value)


def _natural(value: Number, largest: int = _LARGEST_WHOLE) -> int:
    number = _whole(value)
    if not 0 <= number <= largest:
        raise _UndefinedError
    return number


def _divide(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        quotient, rest = divmod(a, b)
        return Fraction(a, b) if rest else quotient
    return Fraction(a) / b


def _power(base: Number, exponent: Number) -> Number:
    return base ** _natural(exponent, _LARGEST_POWER)


def _root(value: Number) -> Number:
    if value < 0:
        raise _UndefinedError
    root = _divide(math.isqrt(value.numerator), math.isqrt(value.denominator))
    if root * root != value:
        raise _UndefinedError
    return root


def _mod(a: Number, b: Number) -> Number:
    return _whole(a) % _natural(b)


def _log(base: Number, value: Number) -> Number:
    """Return the logarithm of `value` to `base`, which must be a small whole number."""
    for exponent in range(_LARGEST_POWER + 1) if base > 1 else ():
        if base**exponent == value:
            return exponent
    raise _UndefinedError


_OPERATIONS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.Pow: _power,
}
_FUNCTIONS: dict[tuple[str, int], Callable[..., Number]] = {
    ("gcd", 2): lambda a, b: math.gcd(_natural(a), _natural(b)),
    ("lcm", 2): lambda a, b: math.lcm(_natural(a), _natural(b)),
    ("binom", 2): lambda n, k: math.comb(_natural(n, 60), _natural(k, 60)),
    ("factorial", 1): lambda n: math.factorial(_natural(n, 12)),
    ("mod", 2): _mod,
    ("floor", 1): math.floor,
    ("ceil", 1): math.ceil,
    ("log", 2): _log,
    ("sqrt", 1): _root,
    ("abs", 1): abs,
    ("percent", 2): lambda r, p: _divide(r * p, 100),
}
"""Functions by name and number of arguments."""


def _compile(node: ast.expr) -> _Calculation:
    """Return a function that computes a formula from its values. Raises `ValueError` if a part is not supported."""
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return lambda values: number
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _compile(operand)
            return lambda values: -inner(values)
        case ast.BinOp(op=sign) if operation := _OPERATIONS.get(type(sign)):
            left, right = _compile(node.left), _compile(node.right)
            return lambda values: operation(left(values), right(values))
        case ast.Call(func=ast.Name(id=name), args=args) if function := _FUNCTIONS.get((name, len(args))):
            parts = [_compile(arg) for arg in args]
            return lambda values: function(*[part(values) for part in parts])
    raise ValueError(f"{ast.unparse(node)!r} is no formula of + - * / ** and {', '.join(n for n, _ in _FUNCTIONS)}")


def _quantity(node: ast.Name | ast.Constant, values: Values) -> Number:
    if isinstance(node, ast.Name):
        return values[node.id]
    assert isinstance(node.value, int)
    return node.value


def _put(node: ast.expr, name: str, inner: ast.expr) -> ast.expr:
    match node:
        case ast.Name(id=key):
            return inner if key == name else node
        case ast.UnaryOp(op=op, operand=operand):
            return ast.UnaryOp(op, _put(operand, name, inner))
        case ast.BinOp(left=left, op=op, right=right):
            return ast.BinOp(_put(left, name, inner), op, _put(right, name, inner))
        case ast.Call(func=func, args=args):
            return ast.Call(func, [_put(arg, name, inner) for arg in args], [])
    return node


def _write(node: ast.expr, values: Values, style: Style, first: bool = False) -> tuple[str, int]:
    """Return the text of a part of a formula, and the precedence of its outermost operation. `first` is True if
    nothing precedes the part, so that a leading minus needs no brackets."""
    match node:
        case ast.Name(id="π"):
            return "π", _ATOM
        case ast.Constant() | ast.Name():
            value = _quantity(node, values)
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
    """Return the text of a part of a formula, in brackets if its precedence is below `least`."""
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
