"""Checks of equations: whether an equation holds and, if not, which value would be correct."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from stepsight.core.equations.algebra import compare_identity, value_of
from stepsight.core.equations.ambiguity import may_mean_another
from stepsight.core.equations.assertion import compares, remainder_behind, speaks_of_whole_numbers
from stepsight.core.equations.chains import Member
from stepsight.core.equations.dimensions import convert
from stepsight.core.equations.formatting import closed, write_number, write_value
from stepsight.core.equations.numbers import Comparison, EquationVerdict, compare
from stepsight.core.equations.parsing import values
from stepsight.core.equations.parsing.expressions import Kind, Node, evaluate
from stepsight.core.equations.parsing.values import AlgebraicValue, UndecidedError


class Method(StrEnum):
    """The kind of check: of arithmetic, of an identity (an expansion or simplification), or of an equation with
    unknowns."""

    ARITHMETIC = "arithmetic"
    IDENTITY = "identity"
    SOLUTION = "solution"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of checking one equation, `text[start:end]` of a sub-step.

    If the equation fails, `text[fault_start:fault_end]` is the faulty side, `right` is the correct value as a
    person would write it, and `difference` is the stated value minus the correct one. If an equation contradicts
    several others, no single side of it is known to be correct; `right` and `difference` are then "".

    For an equation with unknowns that the solution of an earlier one does not fit, `sides` has the start and
    end of both sides, each with its value there, or with "" if it has no unknowns.
    """

    start: int
    end: int
    holds: bool
    method: Method
    fault_start: int = 0
    fault_end: int = 0
    right: str = ""
    difference: str = ""
    sides: tuple[tuple[int, int, str], ...] = ()


def check_pair(left: Member, right: Member, relation: str, exact_texts: Collection[str], text: str) -> Check | None:
    """Check an equation without unknowns, or an expansion or simplification.

    Returns None if the equation cannot be decided with certainty. `exact_texts` are the decimals that the problem
    states. `text` is the sub-step, which may say that a number is rounded or that a difference is given without its
    sign.
    """
    if (identity := compare_identity(left, right)) is not None:
        if identity.verdict is EquationVerdict.HOLDS:
            return Check(left.start, right.end, True, Method.IDENTITY)
        return _failing(left, right, identity, Method.IDENTITY)
    if left.is_literal and right.is_literal and not (left.names_bases and right.names_bases):
        return None
    comparison = compare(left, right, relation, exact_texts)
    if comparison is None or comparison.verdict is EquationVerdict.DOUBTFUL:
        return None
    if comparison.verdict is EquationVerdict.HOLDS:
        return Check(left.start, right.end, True, Method.ARITHMETIC)
    if _runs_on(left, right, comparison) or _is_left_out(left, right, comparison, text):
        return None
    if may_mean_another(left, right, comparison, text):
        return None
    return _failing(left, right, comparison, Method.ARITHMETIC)


def check_units(left: Member, right: Member, text: str) -> Check | None:
    """Check a calculation whose units have to be converted, as in 50 km/h × 3 days = 3600 km. Returns None if no
    unit has to be converted or the result is in doubt."""
    found = convert(left, right, text)
    if found is None or found[0]:
        return Check(left.start, right.end, True, Method.ARITHMETIC) if found else None
    assert right.expression is not None
    proper = write_number(found[1], like_decimal=decimals_of(right) > 0)
    return Check(left.start, right.end, False, Method.ARITHMETIC, right.start, right.end, proper)


def check_division(left: Member, right: Member, text: str) -> Check | None:
    """Check a division with remainder, such as 129 ÷ 11 = 11 with a remainder of 8. Returns None if the two sides
    and `text` do not state such a division."""
    if left.expression is None or not right.is_literal or left.expression.node.kind is not Kind.DIVIDE:
        return None
    rest = remainder_behind(text, right.end)
    dividend, divisor = (_integer(part) for part in left.expression.node.parts)
    quotient = value_of(right.expression)
    if rest is None or dividend is None or not divisor or quotient is None or quotient.number is None:
        return None
    if divisor * quotient.number + int(rest[1]) == dividend:
        return Check(left.start, right.end, True, Method.ARITHMETIC)
    proper = f"{dividend // divisor} with a remainder of {dividend % divisor}"
    return Check(left.start, right.end, False, Method.ARITHMETIC, right.start, right.end, proper)


def _failing(left: Member, right: Member, comparison: Comparison, method: Method) -> Check:
    """Return the check of a failing equation. The fault is the right side, unless the left side is a plain number
    and the right side is the calculation."""
    at_left = left.is_literal and not right.is_literal
    fault = left if at_left else right
    proper, stated = (comparison.right, comparison.left) if at_left else (comparison.left, comparison.right)
    return Check(
        left.start,
        right.end,
        False,
        method,
        fault.start,
        fault.end,
        write_value(proper, like_decimal=decimals_of(fault) > 0),
        _difference(proper, stated),
    )


def _is_left_out(left: Member, right: Member, comparison: Comparison, text: str) -> bool:
    """True if the text says that the stated number omits a part: the sign of a difference, or a fractional part."""
    if not values.add(comparison.left, comparison.right).above:
        return compares(text[max(0, left.start - 80) : right.end + 60])
    worked_out, stated = comparison.left.number, comparison.right.number
    if worked_out is None or stated is None or not comparison.left.exact:
        return False
    is_near = stated.denominator == 1 and worked_out.denominator != 1 and abs(worked_out - stated) < 1
    return is_near and speaks_of_whole_numbers(text)


def _runs_on(left: Member, right: Member, comparison: Comparison) -> bool:
    """True if the right side begins with the value of the left side and continues, as in `5 + 3 = 8 * 2 = 16`."""
    if right.expression is None or right.expression.node.is_literal:
        return False
    node = right.expression.node
    if node.kind is Kind.DIVIDE and not node.parts[1].is_literal:
        # A fraction whose denominator is worked out as well: 3!/(2! · 1!) = 3/(2 · 1).
        return False
    while node.parts and node.kind in (
        Kind.ADD, Kind.SUBTRACT, Kind.MULTIPLY, Kind.DIVIDE, Kind.EITHER, Kind.POWER, Kind.PERCENT,
    ):  # fmt: skip
        node = node.parts[0]
        try:
            if not values.difference(closed(evaluate(node)), closed(comparison.left)).above:
                return True
        except UndecidedError:
            return False
    return False


def _difference(right: AlgebraicValue, stated: AlgebraicValue) -> str:
    try:
        return write_value(closed(values.add(stated, right, -1)))
    except UndecidedError:
        return ""


def _integer(node: Node) -> int | None:
    return int(node.number) if node.number is not None and node.number.denominator == 1 else None


def decimals_of(member: Member) -> int:
    """Return the largest number of decimal places among the numbers in a member."""
    if member.expression is None:
        return 0
    return max((node.decimals for node in member.expression.node.walk() if node.kind is Kind.NUMBER), default=0)
