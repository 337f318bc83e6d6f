"""The checker that goes through the sub-steps of a solution and checks the equations that they state.

An equation is checked only if its text is unambiguous.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from stepsight.core.equations.assertion import CLOCK_TIME, OTHER_ARITHMETIC, OWN_ARITHMETIC, is_modular, is_stated
from stepsight.core.equations.chains import Chain, Member, annotations, find_chains, join_named
from stepsight.core.equations.checks import Check, Method, check_division, check_pair, check_units
from stepsight.core.equations.comparison import decimals_in, value_of
from stepsight.core.equations.tokens import MAX_TEXT, holds_table, read_tokens, without_bold
from stepsight.core.equations.unknowns import Unknowns
from stepsight.core.equations.values import UndecidedError, difference
from stepsight.core.text.signs import plain

MAX_NOTES = 40


class Checker:
    """A checker for one solution. Call `check` on each sub-step in order, because each check may depend on earlier
    ones."""

    def __init__(self, problem: str) -> None:
        beginning = problem[:MAX_TEXT]
        self._exact_texts = decimals_in(beginning)
        # In another base, only numbers that state their base can be compared.
        self._is_plain = not OWN_ARITHMETIC.search(beginning)
        self._unknowns = Unknowns()
        if self._is_plain and not holds_table(beginning):
            self._unknowns.read_problem(find_chains(read_tokens(beginning)))

    def check(self, text: str) -> tuple[Check, ...]:
        """Check the next sub-step, and return its checks in text order. The result is empty if the sub-step states
        nothing that can be checked."""
        text = without_bold(text)
        self._unknowns.begin(text)
        if len(text) > MAX_TEXT or holds_table(text):
            return ()
        blanked, notes = annotations(text)
        # The words around equations are read with plain signs, whereas tokens distinguish some of these signs.
        text = plain(text)
        if CLOCK_TIME.search(text):
            return ()
        is_plain = self._is_plain and not OTHER_ARITHMETIC.search(text)
        checks: list[Check] = []
        # The equations in calculator annotations, each with its position.
        noted = [(place, chain) for note, place in notes[:MAX_NOTES] for chain in find_chains(read_tokens(note))]
        for place, chain in noted:
            checks += self._chain_checks(chain.shifted(place), text, [], is_plain)
        chains = find_chains(read_tokens(blanked))
        named = join_named(chains, blanked)
        for chain in chains:
            if is_modular(text, chain.start, chain.end):
                continue
            checks += self._chain_checks(
                named.get(chain.start, chain), text, [(place, note.members[0]) for place, note in noted], is_plain
            )
            if is_plain:
                # An equation cannot be decided if an expression is too large or undefined.
                with suppress(UndecidedError):
                    checks += list(self._unknowns.check(chain, text))
        return tuple(sorted(checks, key=lambda check: (check.start, check.end)))

    def _chain_checks(
        self, chain: Chain, text: str, notes: list[tuple[int, Member]], is_plain: bool
    ) -> Iterator[Check]:
        for left, right, relation in chain.pairs():
            if relation not in ("=", "≈") or not (is_plain or (left.names_bases and right.names_bases)):
                continue
            try:
                check = (
                    check_division(left, right, text)
                    or check_units(left, right, text)
                    or check_pair(left, right, relation, self._exact_texts, text)
                )
            except UndecidedError:
                continue
            if check is not None and (check.holds or _is_asserted(chain, left, right, check, text, notes)):
                yield check


def _is_asserted(
    chain: Chain, left: Member, right: Member, check: Check, text: str, notes: list[tuple[int, Member]]
) -> bool:
    """True if the step presents a failing equation as a fact, so that it counts as an error of the step."""
    works_out = check.method is Method.IDENTITY or (
        left.operations > 0
        and (right.is_literal or (chain.members[-1].is_literal and left.operations > right.operations))
    )
    if not is_stated(text, chain.start, chain.end, works_out):
        return False
    for place, member in notes:
        if left.end <= place < right.end:
            # The calculator annotation inside the equation must compute its left side.
            x, y = value_of(left.expression), value_of(member.expression)
            return x is not None and y is not None and not difference(x, y).above
    return True


def check_steps(problem: str, substeps: Iterable[str]) -> list[tuple[Check, ...]]:
    """Return the checks of each sub-step of a solution to `problem`, in order."""
    checker = Checker(problem)
    return [checker.check(text) for text in substeps]
