"""Checks of the equations in a solution's steps: which hold, which fail, and what would be right.

Only what a step states is checked, and only where its text leaves one reading: everything else is left alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

from stepsight.core.equations import solutions, values
from stepsight.core.equations.algebra import compare_identity, value_of
from stepsight.core.equations.chains import Chain, Member, annotations, find_chains
from stepsight.core.equations.context import compares, has_own_arithmetic, is_assertion, is_modular, is_stated, sentence_around, speaks_of_whole_numbers
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
    opposite: bool = False
    near: bool = False


@dataclass
class Checker:
    """The checks of one solution, step by step: what a step gets depends on the problem and the steps before."""

    problem: str
    exact_texts: set[str] = field(default_factory=set)
    is_plain: bool = True
    step: int = -1
    memory: solutions.Memory = field(default_factory=solutions.Memory)

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
        self.step += 1
        if holds_table(text) or is_modular(text):
            return
        if solutions.takes_back(text):
            self.memory.last.clear()
        blanked, notes = annotations(text)
        noted = []
        for note, place in notes[:40]:
            for chain in find_chains(read_tokens(note)):
                noted.append((place, chain.members[0]))
                yield from self._of_chain(chain, text, place, [])
        for chain in find_chains(read_tokens(blanked)):
            yield from self._of_chain(chain, text, 0, noted)
            yield from self._of_unknowns(chain, text)

    def _of_chain(
        self, chain: Chain, text: str, offset: int, notes: list[tuple[int, Member]]
    ) -> Iterator[Check]:
        for _, left, right, relation in chain.pairs():
            if relation not in ("=", "≈"):
                continue
            check = self._of_pair(left, right, relation, offset)
            if check is None:
                continue
            works_out = check.method is Method.IDENTITY or (right.is_literal and left.operations > 0)
            if check.holds or (
                is_stated(text, chain.start + offset, chain.end + offset, works_out)
                and not _is_noted_otherwise(left, right, notes)
                and not _is_loss(check, text, right)
                and not (check.near and speaks_of_whole_numbers(text))
            ):
                yield check

    def _of_unknowns(self, chain: Chain, text: str) -> Iterator[Check]:
        """Checks of an equation with unknowns against the one before it."""
        if any(relation != "=" for relation in chain.relations) or None in (m.expression for m in chain.members):
            return
        sides = [value_of(member.expression) for member in chain.members]
        last = sides[-1]
        if last is None:
            return
        name = chain.members[0].expression.node.name if chain.members[0].expression else ""
        if chain.members[0].is_letter and not last.letters and name:
            yield from self._of_solution(chain, name, last, text)
            self.memory.last.pop(frozenset({name}), None)
        elif (pair := _unknown_pair(sides)) is not None:
            stated = solutions.equation(*pair, self.step, chain.end, text[chain.end :])
            if stated is not None and is_assertion(text, chain.start, chain.end):
                yield from self._of_consequence(chain, stated, text)
                self.memory.keep(stated)

    def _of_solution(self, chain: Chain, name: str, value: Value, text: str) -> Iterator[Check]:
        earlier = self.memory.before(frozenset({name}), self.step)
        polynomial = solutions.coefficients(earlier) if earlier else None
        if earlier is None or polynomial is None or not is_assertion(text, chain.start, chain.end):
            return
        if not solutions.says_it_follows(self._words(earlier, chain, text)):
            return
        last = chain.members[-1]
        holds = solutions.solves(polynomial, value, _decimals(last))
        if holds is None:
            return
        if holds:
            yield Check(chain.start, chain.end, True, Method.SOLUTION)
        elif is_stated(text, chain.start, chain.end, True):
            right = solutions.write_solutions(name, polynomial)
            yield Check(chain.start, chain.end, False, Method.SOLUTION, last.start, last.end, right)

    def _of_consequence(self, chain: Chain, stated: solutions.Stated, text: str) -> Iterator[Check]:
        earlier = self.memory.before(stated.letters, self.step)
        if earlier is None or (len(stated.letters) > 1 and earlier.step != self.step):
            return
        words = self._words(earlier, chain, text)
        is_linear = len(stated.letters) == 1 and len(solutions.coefficients(stated) or ()) == 2
        says = solutions.says_it_follows if is_linear else solutions.says_it_is_rewritten
        if not says(words):
            return
        holds = solutions.follows(earlier, stated)
        if holds:
            yield Check(chain.start, chain.end, True, Method.SOLUTION)
        elif holds is False and is_stated(text, chain.start, chain.end, True):
            right = solutions.write_equation(earlier)
            yield Check(chain.start, chain.end, False, Method.SOLUTION, chain.start, chain.end, right)

    def _words(self, earlier: solutions.Stated, chain: Chain, text: str) -> str:
        """What stands between an equation and the next, and behind it in its sentence."""
        behind = text[chain.end : sentence_around(text, chain.start, chain.end)[1]]
        if earlier.step == self.step:
            return f"{text[earlier.end : chain.start]}\n{behind}"
        return f"{earlier.behind}\n{text[: chain.start]}\n{behind}"

    def _of_pair(self, left: Member, right: Member, relation: str, offset: int) -> Check | None:
        identity = compare_identity(left, right)
        if identity is not None:
            if identity.verdict is Verdict.HOLDS:
                return Check(left.start + offset, right.end + offset, True, Method.IDENTITY)
            return replace(_failing(left, right, identity, offset), method=Method.IDENTITY)
        if left.is_literal and right.is_literal:
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


def _unknown_pair(sides: Sequence[Value | None]) -> tuple[Value, Value] | None:
    """The two sides of an equation with unknowns, of a chain its side with letters and one without."""
    if len(sides) == 2:
        return (sides[0], sides[1]) if sides[0] is not None and sides[1] is not None else None
    unknown = [side for side in sides if side is not None and side.letters]
    closed_sides = [side for side in sides if side is not None and not side.letters]
    return (unknown[0], closed_sides[-1]) if len(unknown) == 1 and closed_sides else None


def _decimals(member: Member) -> int:
    """The digits behind the point of a number, or of the most exact of a member."""
    if member.expression is None:
        return 0
    return max((node.decimals for node in member.expression.node.walk() if node.kind is Kind.NUMBER), default=0)


def _is_noted_otherwise(left: Member, right: Member, notes: list[tuple[int, Member]]) -> bool:
    """Whether a calculator's note within an equation works out something else than its left side."""
    for place, member in notes:
        if left.end <= place < right.end:
            x, y = value_of(left.expression), value_of(member.expression)
            return x is None or y is None or bool(values.difference(x, y).above)
    return False


def _is_loss(check: Check, text: str, right: Member) -> bool:
    """Whether only the sign is off, where words say so: 1800 - 2000 = 200 less."""
    return check.opposite and compares(text[check.start - 80 if check.start > 80 else 0 : check.end + 60])


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
        not values.add(is_, stated).above,
        _is_near(is_, stated),
    )


def _is_near(right: Value, stated: Value) -> bool:
    """Whether an integer is stated for what is less than one from it."""
    x, y = closed(right).number, closed(stated).number
    if x is None or y is None or not right.exact:
        return False
    return y.denominator == 1 and x.denominator != 1 and abs(x - y) < 1


def _difference(right: Value, stated: Value) -> str:
    try:
        return write_value(closed(values.add(stated, right, -1)))
    except UndecidedError:
        return ""


def check_steps(problem: str, substeps: Iterable[str]) -> list[tuple[Check, ...]]:
    """The checks of each sub-step, in order."""
    checker = Checker(problem)
    return [checker.check(text) for text in substeps]
