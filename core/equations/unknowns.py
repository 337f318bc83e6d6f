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
from functools import cached_property

from stepsight.core.equations import values
from stepsight.core.equations.assertion import (
    RESTRICTION,
    RETRACTION,
    SIMPLIFIED,
    claims_consequence,
    is_assertion,
    is_one_of_several,
    is_stated,
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
MAX_ROWS = 8
MAX_LETTERS = 8
_MAX_BITS = 400

Coefficients = list[Fraction]
"""The coefficients of a polynomial in one letter, constant first."""
Row = dict[str, Fraction]
"""The coefficient of each letter, with the constant under the empty name; the sum is zero."""


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

    @cached_property
    def coefficients(self) -> Coefficients | None:
        """The coefficients, or None unless it is a polynomial in one letter of at most `MAX_DEGREE`."""
        if len(self.letters) != 1:
            return None
        by_power = {key[0][1] if key else 0: value for key, value in self.polynomial.items()}
        degree = max(by_power)
        if not 1 <= degree <= MAX_DEGREE:
            return None
        return [by_power.get(power, Fraction(0)) for power in range(degree + 1)]

    @property
    def roots(self) -> list[Fraction]:
        """The rational solutions of a linear or quadratic equation in one letter, in ascending order."""
        if self.coefficients is None or len(self.coefficients) > 3:
            return []
        if len(self.coefficients) == 2:
            return [-self.coefficients[0] / self.coefficients[1]]
        c, b, a = self.coefficients
        try:
            surd = values.root(values.number(b * b - 4 * a * c), 2)
        except UndecidedError:
            return []
        if not surd.exact or surd.number is None:
            return []
        return sorted({(-b - surd.number) / (2 * a), (-b + surd.number) / (2 * a)})

    @property
    def is_linear(self) -> bool:
        return max(sum(exponent for _, exponent in key) for key in self.polynomial) == 1

    @property
    def solutions(self) -> str:
        """The rational solutions in words, such as x = 2 or x = 3, or "" if there are none."""
        name = next(iter(self.letters))
        return " or ".join(f"{name} = {write_number(root)}" for root in self.roots)

    @property
    def written(self) -> str:
        """The rational solutions or, if there are none, the equation itself, with letters on the left and the
        number on the right."""
        rest = {key: value for key, value in self.polynomial.items() if key != ONE}
        constant = -self.polynomial.get(ONE, Fraction(0))
        return (
            self.solutions or f"{write_value(AlgebraicValue(rest, {ONE: Fraction(1)}))} = {write_number(constant)}"
        )


def equation(left: AlgebraicValue, right: AlgebraicValue, step: int, end: int, behind: str = "") -> Stated | None:
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


def solves(polynomial: Coefficients, value: AlgebraicValue, decimals: int) -> bool | None:
    """True if `value` solves the equation, None if it may be a rounded solution, and False otherwise. `decimals` is
    the number of decimal places with which the value is written."""
    number = value.number
    if number is None:
        return None

    def at(place: Fraction) -> Fraction:
        return sum((coefficient * place**power for power, coefficient in enumerate(polynomial)), Fraction(0))

    if not at(number):
        return True
    unit = Fraction(1, 10**decimals) if decimals else Fraction(0)
    if not value.exact:
        unit = max(unit, Fraction(1, 10**8) * (1 + abs(number)))
    return None if unit and (at(number - unit) > 0) != (at(number + unit) > 0) else False


def follows(earlier: Stated, later: Stated) -> bool | None:
    """True if the solutions of one equation include all those of the other, None if that cannot be decided, and
    False otherwise."""
    first, second = earlier.coefficients, later.coefficients
    if first is None or second is None:
        if not (earlier.is_linear and later.is_linear):
            return None
        x_terms, y_terms = earlier.polynomial, later.polynomial
        ratios = {y_terms[key] / value for key, value in x_terms.items() if key in y_terms}
        return x_terms.keys() == y_terms.keys() and len(ratios) == 1
    if len(first) == len(second) == 2:
        x, y = earlier.roots[0], later.roots[0]
        if x != y and any(value.denominator != 1 for value in first + second) and abs(x - y) <= abs(x) / 100:
            return None
        return x == y
    fewest = min(len(first), len(second))
    # Their greatest common divisor, by Euclid's algorithm.
    while any(second):
        rest = list(first)
        while len(rest) >= len(second):
            factor = rest[-1] / second[-1]
            for i, value in enumerate(second):
                rest[len(rest) - len(second) + i] -= factor * value
            rest.pop()
        while rest and not rest[-1]:
            rest.pop()
        first, second = second, rest
    return len(first) == fewest


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
        if any(len(key) > 1 or (key and key[0][1] != 1) for key in polynomial):
            return None
        row = {key[0][0] if key else "": value for key, value in polynomial.items()}
        if is_value:
            self.given.update(name for name in row if name)
        for pivot, solved in self.rows.items():
            if pivot in row:
                row = _eliminate(row, solved, pivot)
        letters = [name for name in row if name]
        if not letters:
            return not row
        sizes = (value.numerator.bit_length() + value.denominator.bit_length() for value in row.values())
        if len(self.rows) >= MAX_ROWS or max(sizes) > _MAX_BITS:
            self.rows.clear()
            return None
        pivot = letters[0]
        row = {name: value / row[pivot] for name, value in row.items()}
        for other, solved in self.rows.items():
            if pivot in solved:
                self.rows[other] = _eliminate(solved, row, pivot)
        self.rows[pivot] = row
        if len({name for solved in self.rows.values() for name in solved}) > MAX_LETTERS:
            self.rows.clear()
        return None


def _eliminate(row: Row, solved: Row, pivot: str) -> Row:
    """Return `row` with the letter `pivot` eliminated by a multiple of `solved`, the row that is solved for it."""
    total = {name: row.get(name, Fraction(0)) - row[pivot] * solved.get(name, Fraction(0)) for name in row | solved}
    return {name: value for name, value in total.items() if value}


@dataclass
class Unknowns:
    """The known facts about a solution's unknowns up to the current sub-step. `last` maps each set of letters to
    the last equation in exactly these letters, and `system` holds the linear equations."""

    step: int = -1
    last: dict[frozenset[str], Stated] = field(default_factory=dict)
    system: System = field(default_factory=System)

    def read_problem(self, chains: Sequence[Chain]) -> None:
        """Remember the problem's equations. If several have the same letters, none of them is remembered, because
        they may be alternatives."""
        several: set[frozenset[str]] = set()
        for chain in chains:
            pair = _unknown_pair(_sides(chain)) if set(chain.relations) == {"="} else None
            stated = equation(*pair, -1, chain.end) if pair else None
            if stated is not None and not chain.members[0].is_letter:
                if stated.letters in self.last:
                    several.add(stated.letters)
                self.last[stated.letters] = stated
        for letters in several:
            self.last.pop(letters)

    def begin(self, text: str) -> None:
        """Move to the next sub-step. If it retracts something, forget all earlier equations."""
        self.step += 1
        if RETRACTION.search(text):
            self.last.clear()
            self.system = System()

    def check(self, chain: Chain, text: str) -> Iterator[Check]:
        """Check the equations with unknowns in the next chain of a sub-step, and yield the results."""
        first = chain.members[0].expression
        if first is None or set(chain.relations) != {"="} or None in (m.expression for m in chain.members):
            return
        sides = _sides(chain)
        last, letters = sides[-1], frozenset({first.node.name})
        if last is None:
            self.last.pop(letters, None)
        elif chain.members[0].is_letter and not last.letters and first.node.name:
            checks = list(self._check_solution(chain, letters, last, text))
            if not is_one_of_several(text, chain.start, chain.end):
                self.last.pop(letters, None)
            yield from checks or self._try_system(chain, values.letter(first.node.name), last, text)
        elif (pair := _unknown_pair(sides)) is not None:
            stated = equation(*pair, self.step, chain.end, text[chain.end :])
            if stated is not None and is_one_of_several(text, chain.start, chain.end):
                self.last.pop(stated.letters, None)
            elif stated is not None and is_assertion(text, chain.start, chain.end):
                checks = list(self._check_consequence(chain, stated, text))
                self.last[stated.letters] = stated
                yield from checks or self._try_system(chain, *pair, text)

    def _earlier_equation(self, letters: frozenset[str]) -> Stated | None:
        """Return the last equation in exactly these letters, or None if there is none or it is too many steps
        back."""
        earlier = self.last.get(letters)
        return None if earlier is None or self.step - earlier.step > MAX_BACK else earlier

    def _check_solution(
        self, chain: Chain, letters: frozenset[str], value: AlgebraicValue, text: str
    ) -> Iterator[Check]:
        earlier, place = self._earlier_equation(letters), (chain.start, chain.end)
        if earlier is None or earlier.coefficients is None or not is_assertion(text, *place):
            return
        if len(earlier.coefficients) == 2 and is_one_of_several(text, *place):
            return
        after = text[chain.end : sentence_around(text, *place)[1]]
        if not claims_consequence(self._words(earlier, chain, text)) or RESTRICTION.search(after):
            return
        last = chain.members[-1]
        holds = solves(earlier.coefficients, value, decimals_of(last))
        if holds:
            yield Check(*place, True, Method.SOLUTION)
        elif holds is False and is_stated(text, *place, True):
            yield Check(*place, False, Method.SOLUTION, last.start, last.end, earlier.solutions)

    def _check_consequence(self, chain: Chain, stated: Stated, text: str) -> Iterator[Check]:
        earlier, place = self._earlier_equation(stated.letters), (chain.start, chain.end)
        if earlier is None:
            return
        is_simplified = earlier.step == self.step - 1 and SIMPLIFIED.search(text[: chain.start]) is not None
        if len(stated.letters) > 1 and earlier.step != self.step and not is_simplified:
            return
        claims = claims_consequence if len(stated.coefficients or ()) == 2 else says_it_is_rewritten
        if not claims(self._words(earlier, chain, text)):
            return
        holds = follows(earlier, stated)
        if holds:
            yield Check(*place, True, Method.SOLUTION)
        elif holds is False and is_stated(text, *place, True):
            sides = _sides_at_solution(chain, earlier)
            yield Check(*place, False, Method.SOLUTION, *place, earlier.written, sides=sides)

    def _try_system(self, chain: Chain, left: AlgebraicValue, right: AlgebraicValue, text: str) -> Iterator[Check]:
        """Check a linear equation against all earlier linear equations together."""
        stated, place = equation(left, right, self.step, chain.end), (chain.start, chain.end)
        if stated is None or not is_assertion(text, *place) or is_one_of_several(text, *place):
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
            if says_it_is_derived(words) and is_stated(text, *place, True):
                yield Check(*place, False, Method.SOLUTION, *place)
            self.system = System()

    def _words(self, earlier: Stated, chain: Chain, text: str) -> str:
        """Return the text between an earlier equation and a chain, even across steps."""
        if earlier.step == self.step:
            between = text[earlier.end : chain.start]
            return between if re.search("[A-Za-z]{2}", between) else text[: chain.start]
        return f"{earlier.behind}\n{text[: chain.start]}"


def _sides(chain: Chain) -> list[AlgebraicValue | None]:
    return [value_of(member.expression) for member in chain.members]


def _sides_at_solution(chain: Chain, earlier: Stated) -> tuple[tuple[int, int, str], ...]:
    """Return both sides of an equation with their values at the solution of an earlier one (see `Check`). Returns
    an empty tuple if that solution is not a single number."""
    sides = [value for value in _sides(chain) if value is not None]
    if len(earlier.roots) != 1 or len(chain.members) != 2 or len(sides) != 2:
        return ()
    solution = dict.fromkeys(earlier.letters, values.number(earlier.roots[0]))
    try:
        return tuple(
            (member.start, member.end, write_value(values.substitute(value, solution)) if value.letters else "")
            for member, value in zip(chain.members, sides, strict=True)
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
    numbers = [side for side in sides if side is not None and not side.letters]
    return (unknown[0], numbers[-1]) if len(unknown) == 1 and numbers else None
