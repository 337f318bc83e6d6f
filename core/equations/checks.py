"""Checks of the equations in a solution's steps: which hold, which fail, and what would be right.

Only what a step states is checked, and only where its text leaves one reading: everything else is left alone.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

from stepsight.core.equations import solutions, values
from stepsight.core.equations.algebra import compare_identity, value_of
from stepsight.core.equations.chains import Chain, Member, annotations, find_chains, join_named
from stepsight.core.equations.context import compares, has_own_arithmetic, is_assertion, is_modular, is_one_of_several, is_stated, remainder_behind, sentence_around, speaks_of_whole_numbers, tells_time
from stepsight.core.equations.expressions import Kind, Node, evaluate
from stepsight.core.equations.numbers import Comparison, Verdict, compare, decimals_in
from stepsight.core.equations.systems import System
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
    system: System = field(default_factory=System)

    def __post_init__(self) -> None:
        problem = self.problem[:MAX_TEXT]
        self.exact_texts = decimals_in(problem)
        self.is_plain = not has_own_arithmetic(problem)
        if self.is_plain and not holds_table(problem):
            self._read_problem(problem)

    def _read_problem(self, problem: str) -> None:
        """Remember the equations that the problem states, save where two in the same letters may be cases."""
        several: set[frozenset[str]] = set()
        for chain in find_chains(read_tokens(problem)):
            sides = [value_of(member.expression) for member in chain.members]
            pair = _unknown_pair(sides) if set(chain.relations) == {"="} else None
            stated = solutions.equation(*pair, -1, chain.end, problem[chain.end :]) if pair else None
            if stated is not None and not chain.members[0].is_letter:
                if stated.letters in self.memory.last:
                    several.add(stated.letters)
                self.memory.keep(stated)
        for letters in several:
            self.memory.last.pop(letters)

    def check(self, text: str) -> tuple[Check, ...]:
        """The checks of the next sub-step, in the order of the text."""
        self.step += 1
        if len(text) > MAX_TEXT:
            return ()
        return tuple(sorted(self._checks(text), key=lambda check: (check.start, check.end)))

    def _checks(self, text: str) -> Iterator[Check]:
        if holds_table(text) or tells_time(text):
            return
        if solutions.takes_back(text):
            self.memory.last.clear()
            self.system = System()
        blanked, notes = annotations(text)
        noted = []
        for note, place in notes[:40]:
            for chain in find_chains(read_tokens(note)):
                noted.append((place, chain.members[0]))
                yield from self._of_chain(chain, text, place, [])
        chains = find_chains(read_tokens(blanked))
        named = join_named(chains, blanked)
        for chain in chains:
            if is_modular(text, chain.end):
                continue
            yield from self._of_chain(named.get(chain.start, chain), text, 0, noted)
            if self.is_plain:
                yield from self._of_values(chain, text)
                yield from self._of_unknowns(chain, text)

    def _of_values(self, chain: Chain, text: str) -> Iterator[Check]:
        """Checks of numbers put in for letters, as in A = 2a + 3b = 2 · 5 + 3 · 4 with values given before."""
        for i, left, right, relation in chain.pairs():
            if i and relation == "=" and (comparison := self._with_values(left, right)) is not None:
                check = _failing(left, right, comparison, 0)
                if is_stated(text, chain.start, chain.end, True):
                    yield replace(check, method=Method.SUBSTITUTION)

    def _of_chain(
        self, chain: Chain, text: str, offset: int, notes: list[tuple[int, Member]]
    ) -> Iterator[Check]:
        for _, left, right, relation in chain.pairs():
            if relation not in ("=", "≈"):
                continue
            if not self.is_plain and not (_names_bases(left) and _names_bases(right)):
                continue
            divided = offset == 0 and self._of_division(left, right, text)
            check = divided or self._of_pair(left, right, relation, offset)
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
        name = chain.members[0].expression.node.name if chain.members[0].expression else ""
        if last is None:
            self.memory.last.pop(frozenset({name}), None)
            return
        if chain.members[0].is_letter and not last.letters and name:
            checks = list(self._of_solution(chain, name, last, text))
            if not is_one_of_several(text, chain.start, chain.end):
                self.memory.last.pop(frozenset({name}), None)
            yield from checks or self._of_system(chain, values.letter(name), last, text)
        elif (pair := _unknown_pair(sides)) is not None:
            stated = solutions.equation(*pair, self.step, chain.end, text[chain.end :])
            if stated is not None and is_one_of_several(text, chain.start, chain.end):
                self.memory.last.pop(stated.letters, None)
            elif stated is not None and is_assertion(text, chain.start, chain.end):
                checks = list(self._of_consequence(chain, stated, text))
                self.memory.keep(stated)
                yield from checks or self._of_system(chain, *pair, text)

    def _of_solution(self, chain: Chain, name: str, value: Value, text: str) -> Iterator[Check]:
        earlier = self.memory.before(frozenset({name}), self.step)
        polynomial = solutions.coefficients(earlier) if earlier else None
        if earlier is None or polynomial is None or not is_assertion(text, chain.start, chain.end):
            return
        if len(polynomial) == 2 and is_one_of_several(text, chain.start, chain.end):
            return
        behind = text[chain.end : sentence_around(text, chain.start, chain.end)[1]]
        if not solutions.says_it_follows(self._words(earlier, chain, text)) or solutions.is_restricted(behind):
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
        if earlier is None:
            return
        words = self._words(earlier, chain, text)
        is_near = earlier.step == self.step or (
            earlier.step == self.step - 1 and solutions.names_the_equation(text[: chain.start])
        )
        if len(stated.letters) > 1 and not is_near:
            return
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

    def _of_system(self, chain: Chain, left: Value, right: Value, text: str) -> Iterator[Check]:
        """Checks of a linear equation against all those before it."""
        stated = solutions.equation(left, right, self.step, chain.end, "")
        if stated is None or not is_assertion(text, chain.start, chain.end) or is_one_of_several(text, chain.start, chain.end):
            self.system = System()
            return
        is_value = chain.members[0].is_letter and not right.letters
        if any(_decimals(member) > 1 for member in chain.members) or (len(stated.letters) == 1 and not is_value):
            return
        if is_value and not stated.letters.isdisjoint(self.system.given):
            # A letter that gets another value stands for something else now.
            self.system = System()
        if self.system.add(stated.polynomial, is_value) is False:
            words = text[max(0, chain.start - 300) : chain.start]
            if solutions.says_it_is_derived(words) and is_stated(text, chain.start, chain.end, True):
                yield Check(chain.start, chain.end, False, Method.SOLUTION, chain.start, chain.end)
            self.system = System()

    def _words(self, earlier: solutions.Stated, chain: Chain, text: str) -> str:
        """What stands between an equation and the next."""
        if earlier.step == self.step:
            between = text[earlier.end : chain.start]
            return between if re.search("[A-Za-z]{2}", between) else text[: chain.start]
        return f"{earlier.behind}\n{text[: chain.start]}"

    def _of_division(self, left: Member, right: Member, text: str) -> Check | None:
        """The check of a division with a remainder, as in 129 ÷ 11 = 11 with a remainder of 8."""
        if left.expression is None or not right.is_literal or left.expression.node.kind is not Kind.DIVIDE:
            return None
        rest = remainder_behind(text, right.end)
        dividend, divisor = (_integer(part) for part in left.expression.node.parts)
        quotient = value_of(right.expression)
        if rest is None or dividend is None or not divisor or quotient is None or quotient.number is None:
            return None
        if divisor * quotient.number + rest == dividend:
            return Check(left.start, right.end, True, Method.ARITHMETIC)
        proper = f"{dividend // divisor} with a remainder of {dividend % divisor}"
        return Check(left.start, right.end, False, Method.ARITHMETIC, right.start, right.end, proper)

    def _with_values(self, left: Member, right: Member) -> Comparison | None:
        """An expression in letters and one in numbers compared, where they differ with the values of the letters."""
        x, y = value_of(left.expression), value_of(right.expression)
        if x is None or y is None or left.is_letter or right.is_literal or not x.letters or y.letters:
            return None
        given = {name: value for name in x.letters & self.system.given if (value := self.system.value(name)) is not None}
        if given.keys() != x.letters or _decimals(left) or _decimals(right):
            return None
        try:
            with_values = values.substitute(x, {name: values.number(value) for name, value in given.items()})
            differs = values.difference(with_values, y).above
        except UndecidedError:
            return None
        return Comparison(Verdict.FAILS, with_values, y) if differs else None

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


def _names_bases(member: Member) -> bool:
    return member.expression is not None and member.expression.names_bases


def _integer(node: Node) -> int | None:
    return int(node.number) if node.number is not None and node.number.denominator == 1 else None


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
