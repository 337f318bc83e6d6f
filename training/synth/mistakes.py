"""The kinds of planted errors, and choosing the wrong number or formula that replaces the right one."""

import ast
import random
from collections.abc import Iterator, Sequence
from enum import StrEnum
from fractions import Fraction

from stepsight.training.synth.formula import Formula
from stepsight.training.synth.style import Number

PI = "π"
"""The unit of a calculation whose result is a multiple of π; its formula gives the factor."""


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
_LIKE: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
_UNITS = {60: (100, 24), 100: (10, 1000), 1000: (100, 10), 24: (12, 60), 12: (10, 24), 3600: (60, 360), 7: (5, 10)}


def invited_errors(formula: Formula, unit: str) -> Iterator[tuple[ErrorKind, str]]:
    """Yield (kind, formula) for each wrong formula that a formula invites by its form."""
    tree = formula.tree
    if isinstance(tree, ast.BinOp) and formula.names:
        simple = all(isinstance(side, ast.Name | ast.Constant) for side in (tree.left, tree.right))
        for other in _SWAPS.get(type(tree.op), ()) if simple else ():
            if unit == PI and not isinstance(other, _LIKE[type(tree.op)]):
                continue  # 2 + 3π and π * π are not multiples of π
            yield ErrorKind.OPERATION, ast.unparse(ast.BinOp(tree.left, other, tree.right))
        if not simple:
            yield from _sign_errors(tree)
            yield from _dropped_terms(tree)
    yield from _unit_errors(tree)


def _sign_errors(tree: ast.BinOp) -> Iterator[tuple[ErrorKind, str]]:
    """Yield the formula with one plus or minus reversed, in every possible way."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            turned = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield ErrorKind.SIGN, ast.unparse(_replaced(tree, node, ast.BinOp(node.left, turned, node.right)))


def _dropped_terms(tree: ast.BinOp) -> Iterator[tuple[ErrorKind, str]]:
    """Yield the formula with the right operand of one sum, difference or product dropped, in every possible way."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            yield ErrorKind.DROPPED, ast.unparse(_replaced(tree, node, node.left))


def _unit_errors(tree: ast.expr) -> Iterator[tuple[ErrorKind, str]]:
    """Yield the formula with one conversion factor replaced by a different one, in every possible way."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            right = node.right
            if isinstance(right, ast.Constant) and isinstance(right.value, int):
                for other in _UNITS.get(right.value, ()):
                    swapped = ast.BinOp(node.left, node.op, ast.Constant(other))
                    yield ErrorKind.UNIT, ast.unparse(_replaced(tree, node, swapped))


def _replaced(tree: ast.expr, old: ast.expr, new: ast.expr) -> ast.expr:
    if tree is old:
        return new
    match tree:
        case ast.BinOp(left=left, op=op, right=right):
            return ast.BinOp(_replaced(left, old, new), op, _replaced(right, old, new))
        case ast.UnaryOp(op=op, operand=operand):
            return ast.UnaryOp(op, _replaced(operand, old, new))
        case ast.Call(func=func, args=args):
            return ast.Call(func, [_replaced(arg, old, new) for arg in args], [])
    return tree


def slip(right: Number, factors: Sequence[Number], rng: random.Random) -> Number:
    """Choose a wrong result near `right` at random.

    If `right` is a product, `factors` holds its factors, so that the wrong result may still be a multiple of one of
    them. Most slips keep the last digit or the divisibility, so that no rule of thumb detects them.
    """
    size: Number = right if right >= 0 else -right
    if right.denominator != 1:
        return _fraction_slip(right, rng)
    offsets = [10, 10, 10, 20, 1, 2, 30 if size > 60 else 10, 100 if size > 150 else 9]
    offsets += [int(f) for f in factors if f.denominator == 1 and 1 < abs(int(f)) <= size] * 2
    if size < 20:
        offsets = [1, 1, 2, 3, *offsets]
    while True:
        wrong = right + rng.choice([-1, 1]) * rng.choice(offsets)
        if wrong != right and (wrong > 1 or right < 0 or right <= 1):
            return wrong


def _fraction_slip(right: Number, rng: random.Random) -> Number:
    top, bottom = right.numerator, right.denominator
    options = [Fraction(top + 1, bottom), Fraction(top - 1, bottom), Fraction(top, bottom + 1)]
    options += [Fraction(top + 2, bottom), Fraction(bottom, top)] if top else []
    return rng.choice([option for option in options if option not in (right, 0)])


def misread(value: Number, others: Sequence[Number], rng: random.Random) -> Number:
    """Choose a number that could be mistaken for `value`. The result is `value` with its digits reversed, a
    different quantity of the problem, or a number near `value`."""
    swapped = int(str(abs(int(value)))[::-1])
    near = [value + 10, value + 1, value - 1, value + 2]
    choices = [n for n in [swapped, swapped, *others, rng.choice(near)] if n > 1 and n != value]
    if value < 0:
        choices = [-value, -value, value - 1, value + 1]
    return rng.choice([n for n in choices if n] or [value + 1])
