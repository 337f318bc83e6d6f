"""The kinds of planted errors, and choosing the wrong number or formula that replaces the right one."""

import ast
import random
from collections.abc import Iterator, Sequence
from enum import StrEnum
from fractions import Fraction

from stepsight.training.synth.formula import PI, Formula, replaced
from stepsight.training.synth.style import Number


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
# Of multiples of π only these swaps: 2 + 3π and π * π are none.
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
