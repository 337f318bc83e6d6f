"""Equations with unknowns: whether an equation follows from an earlier one, and whether a stated value solves it.

Two equations are compared only if they have a single letter and the second comes soon after the first, or if they
describe straight lines and the text says that one simplifies to the other.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from stepsight.core.equations.algebra import CONSTANTS
from stepsight.core.equations.formatting import write_number, write_value
from stepsight.core.equations.parsing import values
from stepsight.core.equations.parsing.values import ONE, AlgebraicValue, Monomial, UndecidedError

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


_REFUTED = re.compile(
    r"^\W*(?:no\b|wait|oops|actually|sorry|hmm)|\b(?:wrong|mistaken?|incorrect\w*|error|contradict\w*|not\s+true|false)\b",
    re.IGNORECASE,
)


_RESTRICTED = re.compile(
    r"\b(?:only|smallest|largest|greatest|least|valid|option|answer|range|works?|case|either|impossible|reject\w*)\b",
    re.IGNORECASE,
)


def is_restricted(words: str) -> bool:
    """True if the words after a solution say that it was selected by a condition other than the equation."""
    return _RESTRICTED.search(words) is not None


def retracts(text: str) -> bool:
    """True if a sub-step retracts an earlier statement."""
    return _REFUTED.search(text) is not None


_FOLLOWING = re.compile(
    r"""\b(?:simplif\w+|expand\w*|distribut\w+|factor\w*|combin\w+|rearrang\w+|rewrit\w+|rewrote|becomes?|which\s+is
      |subtract\w*|add|adding|divid\w+|multiply\w*|multipli\w+|solv\w+|isolat\w+|get|gives?|yields?|so|thus|therefore|hence
      |or|means|equivalent|obtain|cancel\w*|cross|mov\w+|bring\w*|leav\w+|implies)\b|\\implies|\\Rightarrow|⇒|→""",
    re.VERBOSE | re.IGNORECASE,
)
_REWRITING = re.compile(
    r"\b(?:simplif\w+|expand\w*|distribut\w+|factor\w*|rearrang\w+|rewrit\w+|rewrote|combin\w+|written|(?:both|each)\s+sides?)\b",
    re.IGNORECASE,
)
_ANOTHER = re.compile(
    r"""\b(?:another|second|third|other|also|given|similar\w*|new|case|when|if|let|suppose|assume|try|consider|
      first|derivative|differentiat\w+|minimum|maximum|vertex|both\s+equations|system|set|setting|equal\s+to|plug\w*
      |substitut\w+|instead|or\s+else|either|for|at|same|where|inequality|next|one|two|each|test|root|zero|zeros
      |eliminat\w+|know|want|need|equations|only|smallest|largest|greatest|least|valid|option|answer|range|incorrectly|this\s+time|again|closer)\b""",
    re.VERBOSE | re.IGNORECASE,
)


# Operations on an equation, in words that otherwise name another one.
_GOAL = re.compile(
    r"\b(?:to\s+)?(?:solv\w+|find)\s+(?:it\s+|this\s+|the\s+equation\s+)?for\s+(?:the\s+value\s+of\s+)?[\W]{0,3}[A-Za-z]\b"
    r"|\b(?:from|on|of|to|by)\s+(?:both|each|all)\s+sides?\b|\bthe\s+value\s+of\b|\bset\s+up\s+the\s+equation\b(?=.{40})"
    r"|(?:^|\n)\W*step\s+\d+\b|\bnow\b|\bfirst\b(?=,)",
    re.IGNORECASE,
)


def claims_consequence(words: str) -> bool:
    """True if the words before an equation present it as a consequence of the previous equation alone."""
    words = _GOAL.sub(" ", words)
    follows_at_once = not re.search("[A-Za-z]", words)
    return (follows_at_once or _FOLLOWING.search(words) is not None) and _ANOTHER.search(words) is None


_DERIVED = re.compile(
    r"""\b(?:subtract\w*|add|adding|eliminat\w+|substitut\w+|simplif\w+|divid\w+|solv\w+|combin\w+|rearrang\w+
      |multipl\w+|expand\w*|isolat\w+|collect\w*)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_SAME = re.compile(
    r"\b(?:simplif\w+|combin\w+|expand\w*)\b[^.]{0,30}\b(?:the|this|that)\s+(?:\w+\s+)?equation\b", re.IGNORECASE
)


def names_the_equation(words: str) -> bool:
    """True if the words before an equation say that it is the previous equation in simplified form."""
    return _SAME.search(words) is not None


_NOT_DERIVED = re.compile(
    r"\b(?:if|let|suppose|assume|case|when|another|given|try|similarly|likewise|setting|instead|derivative|for\s+\$?\w\s*=|would|also)\b",
    re.IGNORECASE,
)


def says_it_is_derived(words: str) -> bool:
    """True if the words before an equation say that it was derived from earlier equations."""
    return _DERIVED.search(words) is not None and _NOT_DERIVED.search(words) is None


def says_it_is_rewritten(words: str) -> bool:
    """True if the words before an equation say that it is the previous equation in another form."""
    return _REWRITING.search(words) is not None and _ANOTHER.search(_GOAL.sub(" ", words)) is None
