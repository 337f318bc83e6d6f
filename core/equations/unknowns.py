"""Equations with unknowns: whether one follows from the problem and earlier steps, and whether a stated value
solves it.

Two equations are compared only if they have a single letter and the second comes soon after the first, or if they
describe straight lines and the text says that one simplifies to the other. Linear equations are also checked
against all earlier ones together.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from stepsight.core.equations import values
from stepsight.core.equations.assertion import (
    claims_consequence,
    is_assertion,
    is_one_of_several,
    is_restricted,
    is_stated,
    names_the_equation,
    retracts,
    says_it_is_derived,
    says_it_is_rewritten,
    sentence_around,
)
from stepsight.core.equations.chains import Chain
from stepsight.core.equations.checks import Check, Method, decimals_of
from stepsight.core.equations.comparison import CONSTANTS, value_of
from stepsight.core.equations.values import ONE, AlgebraicValue, Monomial, UndecidedError, write_number, write_value

MAX_DEGREE = 6
MAX_BACK = 2
"""The greatest distance, in sub-steps, between an equation and the one it follows from."""

Coefficients = list[Fraction]


@dataclass(frozen=True)
class Stated:
    """An equation that a sub-step states.

    `polynomial` is the left side minus the right side, and `letters` are the unknowns in it. `step` is the index of
    the sub-step, or -1 for the problem. `end` is the position where the equation ends in the text, and `behind` the
    text after it.
    """

    polynomial: Mapping[Monomial, Fraction]
    letters: frozenset[str]
    step: int
    end: int
    behind: str = ""


@dataclass
class Memory:
    """The equations stated so far.

    `last` maps each set of letters to the last equation in exactly these letters. `open` holds the letters whose
    equations cannot be relied on.
    """

    last: dict[frozenset[str], Stated] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)

    def before(self, letters: frozenset[str], step: int) -> Stated | None:
        """Return the last equation in exactly these letters. Returns None if there is none, it is too many steps
        back, or one of the letters is in `open`."""
        found = self.last.get(letters)
        if found is None or step - found.step > MAX_BACK or letters & self.open:
            return None
        return found

    def keep(self, stated: Stated) -> None:
        self.last[stated.letters] = stated


def equation(left: AlgebraicValue, right: AlgebraicValue, step: int, end: int, behind: str) -> Stated | None:
    """Build the `Stated` equation from its two sides. Returns None if it has no unknowns or is too large."""
    letters = left.letters | right.letters
    if not letters or letters & (CONSTANTS | {"π"}) or not (left.exact and right.exact):
        return None
    try:
        gap = values.difference(left, right)
    except UndecidedError:
        return None
    if not gap.above or len(gap.letters) != len(letters):
        return None
    return Stated(dict(gap.above), gap.letters, step, end, behind)


def coefficients(stated: Stated) -> Coefficients | None:
    """Return the coefficients of an equation, constant first, or None unless it is a polynomial in one letter."""
    if len(stated.letters) != 1:
        return None
    result: dict[int, Fraction] = {}
    for key, value in stated.polynomial.items():
        result[key[0][1] if key else 0] = value
    degree = max(result)
    if degree > MAX_DEGREE or degree < 1:
        return None
    return [result.get(power, Fraction(0)) for power in range(degree + 1)]


def roots(polynomial: Coefficients) -> list[Fraction]:
    """Return the rational roots of a linear or quadratic polynomial in ascending order."""
    if len(polynomial) == 2:
        return [-polynomial[0] / polynomial[1]]
    if len(polynomial) != 3:
        return []
    c, b, a = polynomial
    try:
        surd = values.root(values.number(b * b - 4 * a * c), 2)
    except UndecidedError:
        return []
    if not surd.exact or surd.number is None:
        return []
    return sorted({(-b - surd.number) / (2 * a), (-b + surd.number) / (2 * a)})


def solves(polynomial: Coefficients, value: AlgebraicValue, decimals: int) -> bool | None:
    """True if `value` solves the equation, None if it may be a rounded solution, and False otherwise. `decimals` is
    the number of decimal places with which the value is written."""
    number = value.number
    if number is None:
        return None
    total = _at(polynomial, number)
    if not total:
        return True
    unit = Fraction(1, 10**decimals) if decimals else Fraction(0)
    if not value.exact:
        unit = max(unit, Fraction(1, 10**8) * (1 + abs(number)))
    if unit and (_at(polynomial, number - unit) > 0) != (_at(polynomial, number + unit) > 0):
        return None
    return False


def _at(polynomial: Coefficients, number: Fraction) -> Fraction:
    total = Fraction(0)
    for coefficient in reversed(polynomial):
        total = total * number + coefficient
    return total


def follows(earlier: Stated, later: Stated) -> bool | None:
    """True if the solutions of one equation include all those of the other, None if that cannot be decided, and
    False otherwise."""
    first, second = coefficients(earlier), coefficients(later)
    if first is None or second is None:
        if _degree(earlier) == _degree(later) == 1:
            return _is_multiple(earlier.polynomial, later.polynomial)
        return None
    if len(first) == len(second) == 2:
        x, y = -first[0] / first[1], -second[0] / second[1]
        if x != y and any(value.denominator != 1 for value in first + second) and abs(x - y) <= abs(x) / 100:
            return None
        return x == y
    return len(_common_divisor(first, second)) == min(len(first), len(second))


def _degree(stated: Stated) -> int:
    return max(sum(exponent for _, exponent in key) for key in stated.polynomial)


def _is_multiple(first: Mapping[Monomial, Fraction], second: Mapping[Monomial, Fraction]) -> bool:
    if first.keys() != second.keys():
        return False
    key = next(iter(first))
    ratio = second[key] / first[key]
    return all(second[term] == ratio * value for term, value in first.items())


def _common_divisor(first: Coefficients, second: Coefficients) -> Coefficients:
    while any(second):
        first, second = second, _remainder(first, second)
    return first


def _remainder(above: Coefficients, below: Coefficients) -> Coefficients:
    rest = list(above)
    while len(rest) >= len(below):
        factor = rest[-1] / below[-1]
        for i, value in enumerate(below):
            rest[len(rest) - len(below) + i] -= factor * value
        rest.pop()
    while rest and not rest[-1]:
        rest.pop()
    return rest


def write_solutions(name: str, polynomial: Coefficients) -> str:
    """Return the rational solutions of an equation in the letter `name` as text, or "" if it has none."""
    return " or ".join(f"{name} = {write_number(root)}" for root in roots(polynomial))


def write_equation(stated: Stated) -> str:
    """Return the rational solutions of an equation as text. If there are none, return the equation itself, with
    letters on the left and the number on the right."""
    polynomial = stated.polynomial
    solved = coefficients(stated)
    if solved is not None and roots(solved):
        return write_solutions(next(iter(stated.letters)), solved)
    rest = {key: value for key, value in polynomial.items() if key != ONE}
    constant = -polynomial.get(ONE, Fraction(0))
    return f"{write_value(AlgebraicValue(rest, {ONE: Fraction(1)}))} = {write_number(constant)}"


MAX_ROWS = 8
MAX_LETTERS = 8
_MAX_BITS = 400

Row = dict[str, Fraction]
"""The coefficient of each letter, with the constant under the empty name; the sum is zero."""


@dataclass
class System:
    """A system of linear equations in reduced form. `rows` maps a letter to the equation solved for it; no other
    row contains that letter. `given` holds the letters whose values were stated outright."""

    rows: dict[str, Row] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)

    def add(self, polynomial: Mapping[Monomial, Fraction], is_value: bool) -> bool | None:
        """Add an equation. Returns True if it follows from the earlier equations, False if it contradicts them, and
        None if it adds something new or cannot be used.

        `is_value` is True if the equation states the value of a letter. An equation that is not linear is ignored.
        If the system grows too large, all rows are forgotten.
        """
        row = _linear(polynomial)
        if row is None:
            return None
        if is_value:
            self.given.update(name for name in row if name)
        for pivot, known in self.rows.items():
            if pivot in row:
                row = _without(row, known, pivot)
        letters = [name for name in row if name]
        if not letters:
            return not row
        if len(self.rows) >= MAX_ROWS or any(_is_large(value) for value in row.values()):
            self.rows.clear()
            return None
        pivot = letters[0]
        row = {name: value / row[pivot] for name, value in row.items()}
        for other, known in self.rows.items():
            if pivot in known:
                self.rows[other] = _without(known, row, pivot)
        self.rows[pivot] = row
        if len({name for known in self.rows.values() for name in known}) > MAX_LETTERS:
            self.rows.clear()
        return None


def _linear(polynomial: Mapping[Monomial, Fraction]) -> Row | None:
    row: Row = {}
    for key, value in polynomial.items():
        if key == ONE:
            row[""] = value
        elif len(key) == 1 and key[0][1] == 1:
            row[key[0][0]] = value
        else:
            return None
    return row


def _without(row: Row, known: Row, pivot: str) -> Row:
    """Return `row` with the letter `pivot` eliminated by a multiple of `known`, the row that is solved for it."""
    factor = row[pivot]
    result = dict(row)
    for name, value in known.items():
        total = result.get(name, Fraction(0)) - factor * value
        if total:
            result[name] = total
        else:
            result.pop(name, None)
    return result


def _is_large(value: Fraction) -> bool:
    return value.numerator.bit_length() + value.denominator.bit_length() > _MAX_BITS


@dataclass
class Unknowns:
    """The known facts about a solution's unknowns up to the current sub-step. `memory` holds the last equation in
    each set of letters, and `system` the linear equations."""

    step: int = -1
    memory: Memory = field(default_factory=Memory)
    system: System = field(default_factory=System)

    def read_problem(self, chains: Sequence[Chain]) -> None:
        """Remember the problem's equations. If several have the same letters, none of them is remembered, because
        they may be alternatives."""
        several: set[frozenset[str]] = set()
        for chain in chains:
            sides = [value_of(member.expression) for member in chain.members]
            pair = _unknown_pair(sides) if set(chain.relations) == {"="} else None
            stated = equation(*pair, -1, chain.end, "") if pair else None
            if stated is not None and not chain.members[0].is_letter:
                if stated.letters in self.memory.last:
                    several.add(stated.letters)
                self.memory.keep(stated)
        for letters in several:
            self.memory.last.pop(letters)

    def begin(self, text: str) -> None:
        """Move to the next sub-step. If it retracts something, forget all earlier equations."""
        self.step += 1
        if retracts(text):
            self.memory.last.clear()
            self.system = System()

    def check(self, chain: Chain, text: str) -> Iterator[Check]:
        """Check the equations with unknowns in the next chain of a sub-step, and yield the results."""
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
            stated = equation(*pair, self.step, chain.end, text[chain.end :])
            if stated is not None and is_one_of_several(text, chain.start, chain.end):
                self.memory.last.pop(stated.letters, None)
            elif stated is not None and is_assertion(text, chain.start, chain.end):
                checks = list(self._of_consequence(chain, stated, text))
                self.memory.keep(stated)
                yield from checks or self._of_system(chain, *pair, text)

    def _of_solution(self, chain: Chain, name: str, value: AlgebraicValue, text: str) -> Iterator[Check]:
        earlier = self.memory.before(frozenset({name}), self.step)
        polynomial = coefficients(earlier) if earlier else None
        if earlier is None or polynomial is None or not is_assertion(text, chain.start, chain.end):
            return
        if len(polynomial) == 2 and is_one_of_several(text, chain.start, chain.end):
            return
        behind = text[chain.end : sentence_around(text, chain.start, chain.end)[1]]
        if not claims_consequence(self._words(earlier, chain, text)) or is_restricted(behind):
            return
        last = chain.members[-1]
        holds = solves(polynomial, value, decimals_of(last))
        if holds is None:
            return
        if holds:
            yield Check(chain.start, chain.end, True, Method.SOLUTION)
        elif is_stated(text, chain.start, chain.end, True):
            right = write_solutions(name, polynomial)
            yield Check(chain.start, chain.end, False, Method.SOLUTION, last.start, last.end, right)

    def _of_consequence(self, chain: Chain, stated: Stated, text: str) -> Iterator[Check]:
        earlier = self.memory.before(stated.letters, self.step)
        if earlier is None:
            return
        words = self._words(earlier, chain, text)
        is_near = earlier.step == self.step or (
            earlier.step == self.step - 1 and names_the_equation(text[: chain.start])
        )
        if len(stated.letters) > 1 and not is_near:
            return
        is_linear = len(stated.letters) == 1 and len(coefficients(stated) or ()) == 2
        says = claims_consequence if is_linear else says_it_is_rewritten
        if not says(words):
            return
        holds = follows(earlier, stated)
        if holds:
            yield Check(chain.start, chain.end, True, Method.SOLUTION)
        elif holds is False and is_stated(text, chain.start, chain.end, True):
            right, whole = write_equation(earlier), (chain.start, chain.end)
            sides = _sides(chain, earlier)
            yield Check(*whole, False, Method.SOLUTION, *whole, right, sides=sides)

    def _of_system(self, chain: Chain, left: AlgebraicValue, right: AlgebraicValue, text: str) -> Iterator[Check]:
        """Check a linear equation against all earlier linear equations together."""
        stated = equation(left, right, self.step, chain.end, "")
        if (
            stated is None
            or not is_assertion(text, chain.start, chain.end)
            or is_one_of_several(text, chain.start, chain.end)
        ):
            self.system = System()
            return
        is_value = chain.members[0].is_letter and not right.letters
        if chain.members[0].is_letter and not is_value:
            # y = 2x + 3 may be one of several lines.
            return
        if any(decimals_of(member) > 1 for member in chain.members) or (len(stated.letters) == 1 and not is_value):
            return
        if is_value and not stated.letters.isdisjoint(self.system.given):
            # A letter that gets another value stands for something else now.
            self.system = System()
        if self.system.add(stated.polynomial, is_value) is False:
            words = text[max(0, chain.start - 300) : chain.start]
            if says_it_is_derived(words) and is_stated(text, chain.start, chain.end, True):
                yield Check(chain.start, chain.end, False, Method.SOLUTION, chain.start, chain.end)
            self.system = System()

    def _words(self, earlier: Stated, chain: Chain, text: str) -> str:
        """Return the text between an earlier equation and a chain, even across steps."""
        if earlier.step == self.step:
            between = text[earlier.end : chain.start]
            return between if re.search("[A-Za-z]{2}", between) else text[: chain.start]
        return f"{earlier.behind}\n{text[: chain.start]}"


def _sides(chain: Chain, earlier: Stated) -> tuple[tuple[int, int, str], ...]:
    """Return both sides of an equation with their values at the solution of an earlier one (see `Check`). Returns
    an empty tuple if that solution is not a single number."""
    polynomial = coefficients(earlier)
    at = roots(polynomial) if polynomial else []
    values_of_sides = [value_of(member.expression) for member in chain.members]
    if len(at) != 1 or len(chain.members) != 2 or None in values_of_sides:
        return ()
    there = {name: values.number(at[0]) for name in earlier.letters}
    try:
        return tuple(
            (member.start, member.end, write_value(values.substitute(value, there)) if value.letters else "")
            for member, value in zip(chain.members, values_of_sides, strict=True)
            if value is not None
        )
    except UndecidedError:
        return ()


def _unknown_pair(sides: Sequence[AlgebraicValue | None]) -> tuple[AlgebraicValue, AlgebraicValue] | None:
    """Return the two sides of an equation with unknowns, or None if they are not known. If a chain has more than
    two sides, one side must contain letters and at least one must not; the former is returned with the last of the
    latter."""
    if len(sides) == 2:
        return (sides[0], sides[1]) if sides[0] is not None and sides[1] is not None else None
    unknown = [side for side in sides if side is not None and side.letters]
    closed_sides = [side for side in sides if side is not None and not side.letters]
    return (unknown[0], closed_sides[-1]) if len(unknown) == 1 and closed_sides else None
