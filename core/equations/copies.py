"""Numbers that a step takes over from the problem or an earlier step, and those that it miscopies.

A number is miscopied if a single slip turns a stated number into it (see `is_slip`), it was not stated before, and
it does not follow from stated numbers. Only numbers that have to come from somewhere are compared: numbers in a
calculation, if the problem has no formulas; numbers of known things, as in "the 54 pages"; the value of a letter;
and the final answer. In addition, a number substituted for a letter has to be that letter's value.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from stepsight.core.equations.algebra import value_of
from stepsight.core.equations.assertion import is_assertion, is_one_of_several, is_stated
from stepsight.core.equations.chains import Chain, Member
from stepsight.core.equations.checks import PROBLEM, Check, Method
from stepsight.core.equations.formatting import write_number
from stepsight.core.equations.parsing.expressions import Expression, Kind, Node
from stepsight.core.equations.parsing.numerals import numbers_in
from stepsight.core.equations.parsing.tokens import Token, TokenKind
from stepsight.core.equations.solutions import MAX_BACK, retracts

_MOST = 60
"""The most numbers of a solution that are compared. With more, most numbers would follow from some of them."""

# Numbers that need no source: those of conversions, and of days, hours and degrees.
_COMMON = frozenset(
    map(Fraction, (10, 12, 14, 16, 20, 24, 25, 28, 29, 30, 31, 36, 48, 50, 52, 60, 90, 100, 128, 144, 180, 200, 360,
                   365, 366, 500, 1000, 1440, 1760, 2000, 3600, 5280, 10_000, 100_000, 1_000_000))
)  # fmt: skip
_FACTORS = tuple(map(Fraction, (2, 3, 4, 5, 6, 7, 8, 10, 12, 24, 30, 52, 60, 100, 365, 1000)))
_ANSWER = re.compile(
    r"^[^\S\n]*+(?:####|(?:#\s*|the\s+)?(?:final\s+)?answer[^\S\n]*+(?:is\b|:|\n)|A:)[\s:$\\(*]*+(?:boxed\{)?(?=\d)",
    re.IGNORECASE | re.MULTILINE,
)
# Problems whose solutions search among numbers, and choose those that they try.
_SEARCHING = re.compile(
    r"\b(?:digits?|integers?|primes?|divisors?|divisible|multiples?|factors?|remainders?|consecutive|sequences?"
    r"|palindromes?|perfect|squares)\b",
    re.IGNORECASE,
)
# Words after which a letter may stand for something else.
_ANEW = re.compile(
    r"\b(?:let|call|denotes?|defin\w+|cases?|scenarios?|options?|instead|another|alternatively|similarly|likewise"
    r"|respectively)\b",
    re.IGNORECASE,
)
_DEFINITE = frozenset(["the", "these", "those", "all", "his", "her", "its", "their", "our", "my", "your"])
_SUMS = frozenset({Kind.ADD, Kind.SUBTRACT, Kind.MULTIPLY, Kind.POWER})


@dataclass(frozen=True, slots=True)
class StatedNumber:
    """A stated number. `noun` is the word after it, or "", and `step` the sub-step that states it or `PROBLEM`."""

    number: Fraction
    noun: str
    step: int


@dataclass
class Copies:
    """The statements of a solution so far: its numbers, and the values of its letters with the sub-steps that state
    them. Call `check` on each sub-step in order, or `skip` on one that cannot be checked."""

    step: int = PROBLEM
    is_word_problem: bool = False
    sources: dict[Fraction, StatedNumber] = field(default_factory=dict)
    seen: set[Fraction] = field(default_factory=set)
    letters: dict[str, dict[Fraction | None, int]] = field(default_factory=dict)

    def read_problem(self, problem: str, chains: Sequence[Chain], tokens: Sequence[Token]) -> None:
        """Remember the numbers of the problem. If it has formulas or is about numbers, the numbers in calculations
        are not compared, because solutions derive too many of them."""
        is_plain = bool(tokens) and not any(token.in_formula for token in tokens)
        self.is_word_problem = is_plain and _SEARCHING.search(problem) is None
        self._keep(problem, tokens)
        for chain in chains:
            self._keep_value(chain, problem)

    def skip(self, text: str) -> None:
        """Move past a sub-step, and remember only that its numbers were stated."""
        self.step += 1
        self.seen |= numbers_in(text)

    def check(self, text: str, chains: Sequence[Chain], tokens: Sequence[Token]) -> Iterator[Check]:
        """Yield a failing check for each number that the next sub-step miscopies. A correctly copied number yields
        none."""
        self.step += 1
        if retracts(text) or _ANEW.search(text):
            self.letters.clear()
        if not retracts(text) and len(self.seen) <= _MOST:
            for token, sources in self._taken_over(text, chains, tokens):
                yield from self._of_number(token, sources, text)
        for chain in chains:
            yield from self._of_letter(chain, text)
            yield from self._of_substitution(chain, text)
            self._keep_value(chain, text)
        self._keep(text, tokens)

    def _taken_over(
        self, text: str, chains: Sequence[Chain], tokens: Sequence[Token]
    ) -> Iterator[tuple[Token, list[StatedNumber]]]:
        """Yield the numbers of a sub-step that have to come from somewhere, each with the stated numbers that a
        slip turns into it."""
        answers = {match.end() for match in _ANSWER.finditer(text)}
        for index, token in enumerate(tokens):
            number = token.number
            if number is None or token.cut or number in self.seen or number in _COMMON:
                continue
            sources = [source for source in self.sources.values() if is_slip(source.number, number)]
            chain = next((chain for chain in chains if chain.start <= token.start < chain.end), None)
            if not sources or token.start in answers:
                yield token, sources
            elif self.is_word_problem and chain is None:
                # In "of the 54 pages", the pages are known. Other numbers in words are often worked out silently.
                noun = _noun(tokens, index) if _is_definite(tokens, index) else ""
                yield token, [s for s in sources if s.noun == noun != "" and _is_swap(s.number, number)]
            elif (
                self.is_word_problem
                and chain is not None
                and (numbers := _beside_operand(token, chain)) is not None
            ):
                # 105, 115 and 125 may be counted.
                gaps = {source: source.number - number for source in sources if source.number not in numbers}
                yield token, [source for source, gap in gaps.items() if not _is_power_of_ten(gap)]

    def _of_number(self, token: Token, sources: list[StatedNumber], text: str) -> Iterator[Check]:
        number = token.number
        if number is None or not sources or not is_stated(text, token.start, token.end, True):
            return
        if not _follows(number, self.seen | numbers_in(text[: token.start])):
            yield _miscopied(token, sources[-1].step, write_number(sources[-1].number, like_decimal=True))

    def _of_letter(self, chain: Chain, text: str) -> Iterator[Check]:
        """Check a letter that is said to have a value."""
        first, last = chain.members[0], chain.members[-1]
        if len(chain.members) != 2 or not first.is_letter or (number := _stated(chain)) is None:
            return
        name = _name(first)
        value = self._value(name)
        if value is None or value[1] == self.step or not is_slip(abs(value[0]), abs(number)):
            return
        if _is_asserted(chain, text):
            yield _miscopied(last, value[1], f"{name} = {write_number(value[0])}")

    def _of_substitution(self, chain: Chain, text: str) -> Iterator[Check]:
        """Check the numbers that are substituted for letters, as in 3x + 5 = 3 · 12 + 5."""
        for left, right in pairwise(chain.members):
            put_in = dict(_put_in(left.expression, right.expression))
            known = {name: value for name in put_in if (value := self._value(name)) is not None}
            wrong = [name for name, (value, _) in known.items() if not _is_written(value, put_in[name])]
            numbers = sorted(_signed(node) for node in put_in.values())
            if not wrong or (len(known) == len(put_in) and numbers == sorted(value for value, _ in known.values())):
                # Factors and terms may change places.
                continue
            name = wrong[0]
            number, step = known[name]
            if self.step - step <= MAX_BACK and _is_asserted(chain, text):
                yield _miscopied(right, step, f"{name} = {write_number(number)}")

    def _value(self, name: str) -> tuple[Fraction, int] | None:
        """Return the value of a letter and the sub-step that states it, or None if it has none or several."""
        values = self.letters.get(name, {})
        if len(values) != 1:
            return None
        ((value, step),) = values.items()
        return None if value is None else (value, step)

    def _keep(self, text: str, tokens: Sequence[Token]) -> None:
        self.seen |= numbers_in(text)
        for index, token in enumerate(tokens):
            if token.kind is TokenKind.NUMBER and token.number is not None:
                self.sources.setdefault(token.number, StatedNumber(token.number, _noun(tokens, index), self.step))

    def _keep_value(self, chain: Chain, text: str) -> None:
        """Remember the value that a chain gives a letter. A letter with several values, or one that cannot be read,
        is not checked any more."""
        first, last = chain.members[0], chain.members[-1]
        if first.is_letter:
            number = _stated(chain)
            if number is not None or last.expression is None:
                is_open = number is None or not _is_asserted(chain, text)
                self.letters.setdefault(_name(first), {}).setdefault(None if is_open else number, self.step)


def is_slip(stated: Fraction, written: Fraction) -> bool:
    """True if a number differs from a stated one by a slip in copying: two neighbouring digits are swapped or, if
    the stated number has at least three digits, one digit is missing, added or (after the first) replaced.

    A rounded number is not a slip. Neither is the stated number times a power of ten, because it may have another
    unit.
    """
    a, b = _digits(stated), _digits(written)
    if not a or not b or a.replace(".", "").strip("0") == b.replace(".", "").strip("0"):
        return False
    if _is_rounded(stated, written):
        return False
    if _is_swap(stated, written):
        return True
    if len(a.replace(".", "")) < 3 or len(b.replace(".", "")) < 2:
        return False
    if len(a) == len(b):
        changed = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
        return len(changed) == 1 and changed[0] > 0 and a.find(".") == b.find(".")
    long, short = sorted((a, b), key=len, reverse=True)
    return any(long[i] != "." and long[:i] + long[i + 1 :] == short for i in range(len(long)))


def _is_rounded(number: Fraction, written: Fraction) -> bool:
    """True if a number, as written, is another number with fewer decimals, or rounded to tens, hundreds and so
    on."""
    whole, _, decimals = write_number(abs(written), like_decimal=True).replace(",", "").partition(".")
    gap = abs(number - written)
    zeros = 0 if decimals else len(whole) - len(whole.rstrip("0"))
    return gap < Fraction(1, 10 ** len(decimals)) or (zeros > 0 and 2 * gap <= 10**zeros)


def _is_swap(stated: Fraction, written: Fraction) -> bool:
    """True if two neighbouring digits of a number have changed places, as in 54 for 45."""
    a, b = _digits(stated), _digits(written)
    if len(a) != len(b) or "0" in (a[:1], b[:1]):
        return False
    changed = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
    if len(changed) != 2 or changed[1] != changed[0] + 1:
        return False
    i, j = changed
    return (a[i], a[j]) == (b[j], b[i]) and "." not in (a[i], a[j])


def _digits(number: Fraction) -> str:
    """Return a number as a decimal without trailing zeros, or "" if its decimals do not end soon."""
    text = write_number(number, like_decimal=True).replace(",", "")
    return text if number >= 0 and re.fullmatch(r"[\d.]{2,16}", text) and Fraction(text) == number else ""


def _follows(number: Fraction, seen: set[Fraction]) -> bool:
    """True if a number is stated, or is the result of a single operation on two stated numbers or on a stated
    number and a conversion factor."""
    if seen & {number, number + 1, number - 1}:
        return True
    if any(number * factor in seen or number / factor in seen for factor in _FACTORS):
        return True
    return any(
        not seen.isdisjoint((number - one, one - number, number + one))
        or (one and not seen.isdisjoint((number / one, number * one, number * 100 / one, number * one / 100)))
        for one in seen
    )


def _beside_operand(token: Token, chain: Chain) -> set[Fraction | None] | None:
    """Return the numbers of a chain that an operand of its first calculation is not compared with: the result,
    since operands may be chosen to reach it, as in 102 + 18 = 120, and the other terms of a sum. None if the number
    is not such an operand."""
    calculation = next((one for one in chain.members[:2] if one.expression is not None and one.operations), None)
    if calculation is None or not calculation.start <= token.start < calculation.end:
        return None
    expression, result = calculation.expression, value_of(chain.members[-1].expression)
    if expression is None or expression.letters:
        return None
    terms = {node.number for node in expression.node.walk()} if expression.node.kind is Kind.ADD else set()
    return terms | {result.number if result is not None else None}


def _is_power_of_ten(difference: Fraction) -> bool:
    return _digits(abs(difference)).strip("0.") == "1"


def _is_definite(tokens: Sequence[Token], index: int) -> bool:
    """True if the word before a number says that the counted things are known, as in "the 54 pages"."""
    return index > 0 and tokens[index - 1].text.lower() in _DEFINITE


def _noun(tokens: Sequence[Token], index: int) -> str:
    """Return the word after a number, in the singular, or "" if it is too short for a noun."""
    token = tokens[index + 1] if index + 1 < len(tokens) else None
    is_noun = token is not None and token.kind is TokenKind.WORD and len(token.text) > 2
    return token.text.lower().removesuffix("s") if token is not None and is_noun else ""


def _stated(chain: Chain) -> Fraction | None:
    """Return the number at the end of a chain such as x = 3 · 4 = 12, or None if there is none."""
    last = chain.members[-1]
    value = value_of(last.expression) if last.is_literal and set(chain.relations) == {"="} else None
    return value.number if value is not None and value.exact else None


def _name(letter: Member) -> str:
    return letter.expression.node.name if letter.expression is not None else ""


def _put_in(left: Expression | None, right: Expression | None) -> list[tuple[str, Node]]:
    """Return the letters of one expression with the numbers that replace them in the other. Empty if the
    expressions differ in anything else, or if they may just as well be the sides of an equation to solve."""
    found: list[tuple[str, Node]] = []
    if left is None or right is None or left.node.kind not in _SUMS or right.letters:
        return found
    return found if _is_aligned(left.node, right.node, found) else []


def _is_aligned(left: Node, right: Node, found: list[tuple[str, Node]]) -> bool:
    if left.kind is Kind.LETTER:
        if not right.is_literal or right.kind is Kind.PERCENT:
            return False
        found.append((left.name, right))
        return all(name != left.name or _signed(node) == _signed(right) for name, node in found)
    if left.kind is not right.kind or left.name != right.name or left.number != right.number:
        return False
    if len(left.parts) != len(right.parts) or left.kind in (Kind.FUNCTION, Kind.EITHER):
        return False
    return all(_is_aligned(x, y, found) for x, y in zip(left.parts, right.parts, strict=True))


def _is_written(value: Fraction, node: Node) -> bool:
    """True if a number, as written, equals a value or that value rounded."""
    number = _signed(node)
    return number == value or _is_rounded(value, number)


def _signed(node: Node) -> Fraction:
    number = node.literal.number
    assert number is not None
    return -number if node.kind is Kind.NEGATIVE else number


def _is_asserted(chain: Chain, text: str) -> bool:
    return (
        is_assertion(text, chain.start, chain.end)
        and is_stated(text, chain.start, chain.end, True)
        and not is_one_of_several(text, chain.start, chain.end)
    )


def _miscopied(place: Token | Member, source: int, right: str) -> Check:
    return Check(place.start, place.end, False, Method.COPY, place.start, place.end, right, source=source)
