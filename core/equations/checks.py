"""Checks of the equations in a solution's steps: which hold, which fail, and what would be right.

Only what a step states is checked, and only where its text leaves one reading: everything else is left alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

from stepsight.core.equations import values
from stepsight.core.equations.algebra import compare_identity
from stepsight.core.equations.chains import Chain, Member, annotations, find_chains
from stepsight.core.equations.context import has_own_arithmetic, is_modular, is_stated
from stepsight.core.equations.expressions import Kind, evaluate
from stepsight.core.equations.numbers import Comparison, Verdict, compare, decimals_in
from stepsight.core.equations.tokens import MAX_TEXT, holds_table, read_tokens
from stepsight.core.equations.values import UndecidedError, Value
from stepsight.core.equations.wording import closed, write_value


class Method(StrEnum):
    """What decided a check."""

    ARITHMETIC = "arithmetic"
    IDENTITY = "identity"
    SUBSTITUTION = "substitution"
    SOLUTION = "solution"


@dataclass(frozen=True, slots=True)
class Check:
    """An equation of a sub-step, `text[start:end]`, and whether it holds.

    Where it fails, `text[fault_start:fault_end]` is the side at fault, `right` what would stand there and
    `difference` by how much it is off, where that is a number; where it holds, the fault is empty.
    """

    start: int
    end: int
    holds: bool
    method: Method
    fault_start: int = 0
    fault_end: int = 0
    right: str = ""
    difference: str = ""


@dataclass
class Checker:
    """The checks of one solution, step by step: what a step gets depends on the problem and the steps before."""

    problem: str
    exact_texts: set[str] = field(default_factory=set)
    is_plain: bool = True

    def __post_init__(self) -> None:
        problem = self.problem[:MAX_TEXT]
        self.exact_texts = decimals_in(problem)
        self.is_plain = not has_own_arithmetic(problem)

    def check(self, text: str) -> tuple[Check, ...]:
        """The checks of the next sub-step, in the order of the text."""
        if len(text) > MAX_TEXT or not self.is_plain:
            return ()
        return tuple(sorted(self._checks(text), key=lambda check: (check.start, check.end)))

    def _checks(self, text: str) -> Iterator[Check]:
        if holds_table(text) or is_modular(text):
            return
        blanked, notes = annotations(text)
        for note, place in notes[:40]:
            for chain in find_chains(read_tokens(note)):
                yield from self._of_chain(chain, text, place)
        for chain in find_chains(read_tokens(blanked)):
            yield from self._of_chain(chain, text, 0)

    def _of_chain(self, chain: Chain, text: str, offset: int) -> Iterator[Check]:
        for _, left, right, relation in chain.pairs():
            if relation not in ("=", "≈"):
                continue
            check = self._of_pair(left, right, relation, offset)
            if check is None:
                continue
            works_out = right.is_literal and left.operations > 0
            if check.holds or is_stated(text, chain.start + offset, chain.end + offset, works_out):
                yield check

    def _of_pair(self, left: Member, right: Member, relation: str, offset: int) -> Check | None:
        identity = compare_identity(left, right)
        if identity is not None:
            if identity.verdict is Verdict.HOLDS:
                return Check(left.start + offset, right.end + offset, True, Method.IDENTITY)
            return replace(_failing(left, right, identity, offset), method=Method.IDENTITY)
        if left.is_literal and right.is_literal and not _converts(left, right):
            return None
        comparison = compare(left, right, relation, self.exact_texts)
        if comparison is None or comparison.verdict is Verdict.DOUBTFUL:
            return None
        start, end = left.start + offset, right.end + offset
        if comparison.verdict is Verdict.HOLDS:
            return Check(start, end, True, Method.ARITHMETIC)
        if _runs_on(left, right, comparison):
            return None
        return _failing(left, right, comparison, offset)


def _converts(left: Member, right: Member) -> bool:
    """Whether one of two literals is a percentage and the other is none."""
    return False


def _runs_on(left: Member, right: Member, comparison: Comparison) -> bool:
    """Whether the right side goes on with the value of the left, as in `5 + 3 = 8 * 2 = 16`."""
    if right.expression is None or right.expression.node.is_literal:
        return False
    node = right.expression.node
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


def _failing(left: Member, right: Member, comparison: Comparison, offset: int) -> Check:
    at_left = left.is_literal and not right.is_literal
    fault, (is_, stated) = left if at_left else right, (
        (comparison.right, comparison.left) if at_left else (comparison.left, comparison.right)
    )
    decimal = fault.expression is not None and any(
        node.decimals for node in fault.expression.node.walk() if node.kind is Kind.NUMBER
    )
    return Check(
        left.start + offset,
        right.end + offset,
        False,
        Method.ARITHMETIC,
        fault.start + offset,
        fault.end + offset,
        write_value(is_, decimal),
        _difference(is_, stated),
    )


def _difference(right: Value, stated: Value) -> str:
    try:
        return write_value(closed(values.add(stated, right, -1)))
    except UndecidedError:
        return ""


def check_steps(problem: str, substeps: Iterable[str]) -> list[tuple[Check, ...]]:
    """The checks of each sub-step, in order."""
    checker = Checker(problem)
    return [checker.check(text) for text in substeps]
