"""Tracking a solution's unknowns to check its equations against the problem and earlier steps."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stepsight.core.equations import solutions
from stepsight.core.equations.algebra import value_of
from stepsight.core.equations.assertion import is_assertion, is_one_of_several, is_stated, sentence_around
from stepsight.core.equations.chains import Chain
from stepsight.core.equations.checks import Check, Method, decimals_of
from stepsight.core.equations.formatting import write_value
from stepsight.core.equations.parsing import values
from stepsight.core.equations.parsing.values import AlgebraicValue, UndecidedError
from stepsight.core.equations.systems import System


@dataclass
class Unknowns:
    """The known facts about a solution's unknowns up to the current sub-step. `memory` holds the last equation in
    each set of letters, and `system` the linear equations."""

    step: int = -1
    memory: solutions.Memory = field(default_factory=solutions.Memory)
    system: System = field(default_factory=System)

    def read_problem(self, chains: Sequence[Chain]) -> None:
        """Remember the problem's equations. If several have the same letters, none of them is remembered, because
        they may be alternatives."""
        several: set[frozenset[str]] = set()
        for chain in chains:
            sides = [value_of(member.expression) for member in chain.members]
            pair = _unknown_pair(sides) if set(chain.relations) == {"="} else None
            stated = solutions.equation(*pair, -1, chain.end, "") if pair else None
            if stated is not None and not chain.members[0].is_letter:
                if stated.letters in self.memory.last:
                    several.add(stated.letters)
                self.memory.keep(stated)
        for letters in several:
            self.memory.last.pop(letters)

    def begin(self, text: str) -> None:
        """Move to the next sub-step. If it retracts something, forget all earlier equations."""
        self.step += 1
        if solutions.retracts(text):
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
            stated = solutions.equation(*pair, self.step, chain.end, text[chain.end :])
            if stated is not None and is_one_of_several(text, chain.start, chain.end):
                self.memory.last.pop(stated.letters, None)
            elif stated is not None and is_assertion(text, chain.start, chain.end):
                checks = list(self._of_consequence(chain, stated, text))
                self.memory.keep(stated)
                yield from checks or self._of_system(chain, *pair, text)

    def _of_solution(self, chain: Chain, name: str, value: AlgebraicValue, text: str) -> Iterator[Check]:
        earlier = self.memory.before(frozenset({name}), self.step)
        polynomial = solutions.coefficients(earlier) if earlier else None
        if earlier is None or polynomial is None or not is_assertion(text, chain.start, chain.end):
            return
        if len(polynomial) == 2 and is_one_of_several(text, chain.start, chain.end):
            return
        behind = text[chain.end : sentence_around(text, chain.start, chain.end)[1]]
        if not solutions.claims_consequence(self._words(earlier, chain, text)) or solutions.is_restricted(behind):
            return
        last = chain.members[-1]
        holds = solutions.solves(polynomial, value, decimals_of(last))
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
        says = solutions.claims_consequence if is_linear else solutions.says_it_is_rewritten
        if not says(words):
            return
        holds = solutions.follows(earlier, stated)
        if holds:
            yield Check(chain.start, chain.end, True, Method.SOLUTION)
        elif holds is False and is_stated(text, chain.start, chain.end, True):
            right, whole = solutions.write_equation(earlier), (chain.start, chain.end)
            sides = _sides(chain, earlier)
            yield Check(*whole, False, Method.SOLUTION, *whole, right, sides=sides)

    def _of_system(self, chain: Chain, left: AlgebraicValue, right: AlgebraicValue, text: str) -> Iterator[Check]:
        """Check a linear equation against all earlier linear equations together."""
        stated = solutions.equation(left, right, self.step, chain.end, "")
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
            if solutions.says_it_is_derived(words) and is_stated(text, chain.start, chain.end, True):
                yield Check(chain.start, chain.end, False, Method.SOLUTION, chain.start, chain.end)
            self.system = System()

    def _words(self, earlier: solutions.Stated, chain: Chain, text: str) -> str:
        """Return the text between an earlier equation and a chain, even across steps."""
        if earlier.step == self.step:
            between = text[earlier.end : chain.start]
            return between if re.search("[A-Za-z]{2}", between) else text[: chain.start]
        return f"{earlier.behind}\n{text[: chain.start]}"


def _sides(chain: Chain, earlier: solutions.Stated) -> tuple[tuple[int, int, str], ...]:
    """Return both sides of an equation with their values at the solution of an earlier one (see `Check`). Returns
    an empty tuple if that solution is not a single number."""
    polynomial = solutions.coefficients(earlier)
    at = solutions.roots(polynomial) if polynomial else []
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
