"""Final answers of solutions: finding, comparing and grading them.

Answers that differ only in LaTeX spacing, or in how a number is written, are recognised as equal by this module.
All other answers are compared by math-verify, in a child: math-verify interrupts slow work with a signal, which
works only in the main thread of a process and cannot stop the computation of a huge power. A child can be ended,
and serves any thread.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from types import TracebackType
from typing import Any

from stepsight.core.equations.units import conversion
from stepsight.core.errors import UserError
from stepsight.core.files.child import Answerer, Bounds, Child, ChildError
from stepsight.core.metrics.best_of_n import NO_ANSWER
from stepsight.core.text.signs import CURRENCY, RAISED, comparable

# What grading a text may take.
_BOUNDS = Bounds(seconds=30, memory=4 * 2**30, patience=30.0)
_MIXED = re.compile(r"(?<![\d./,^])(\d{1,6})(?:\s|\\ |\\,|~){1,4}(\d{1,4})/(\d{1,4})(?![\d/])")


class Grader:
    """A context manager that decides whether texts end in the right answer.

    A text that takes too much time or memory is graded as wrong and counted in `timeouts`. Raises `UserError` if
    math-verify is not installed or does not start.
    """

    def __init__(self) -> None:
        if find_spec("math_verify") is None:
            raise UserError("math-verify is not installed.", "Install stepsight[sft].")
        self.timeouts = 0
        self._child = Child(make_grader, _BOUNDS)

    def __enter__(self) -> "Grader":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close()

    def grade(self, answer: str, text: str) -> bool:
        """True if the solution `text` ends in `answer`, which is LaTeX without `$`, as in benchmarks."""
        try:
            return bool(self._child.ask([answer, text]))
        except ChildError:
            self.timeouts += 1
            return False


def make_grader() -> Answerer:
    """Return the function by which the child grades an answer and a text."""
    # Importing it takes a second, and only this process needs it.
    from math_verify import parse, verify

    def grade(request: Any, content: Iterator[bytes]) -> bool:
        answer, text = (_MIXED.sub(_as_fraction, part) for part in request)
        # math-verify looks for a box first, so a boxed answer is read whole, including words.
        right = parse(rf"\boxed{{{answer}}}", parsing_timeout=None)
        return bool(verify(right, parse(text, parsing_timeout=None), timeout_seconds=None))

    return grade


def _as_fraction(mixed: re.Match[str]) -> str:
    """Return a mixed number such as `3 1/2` as a fraction, since math-verify reads it as another number."""
    whole, over, below = map(int, mixed.groups())
    return f"{whole * below + over}/{below}" if over < below else mixed[0]


_SPACING = re.compile(r"(?:\\(?:left|right)(?![A-Za-z])|\\[!,;: ]|\\quad\b|\\qquad\b|~|\s)+")
# Without a space these would be other numbers, except between thousands.
_BETWEEN_DIGITS = re.compile(r"(?<=\d) (?=\d)")
_OTHER_SPACES = re.compile(r"(?<!\d) | (?!\d)")
_THOUSANDS = re.compile(r"(?<![\d.])(\d{1,3})((?: \d{3})+)(?![\d/])")
_VULGAR = re.compile("[¼-¾⅐-⅞]")
_MIXED_NUMBER = re.compile(r"([-+]?)(\d{1,40})(?: (\d{1,40})/(\d{1,40})| ?\\frac\{?(\d{1,40})\}?\{?(\d{1,40})\}?)")
_PERCENT = re.compile(r"(.{0,120}[\d}.])(?:\\?%| ?per ?cent)")
# A word after a number. One letter may be a variable; `\text` around it says that it is a unit.
_UNIT = re.compile(
    r"(.{0,120}[\d}%]) ?(?:\\(?:text|mathrm|textrm)\{ ?([A-Za-z][A-Za-z./ ]{0,30})\}"
    r"|(?<= )([A-Za-z]{2,20}(?: [A-Za-z]{2,20}){0,2}|[mghsLl]))(?:\^\{?([23])\}?)?"
)
_NO_UNITS = frozenset({"or", "and", "to", "mod", "pi", "percent", "per cent"})
_UNITS = {
    name: unit
    for unit, names in {
        "cm": "centimeter centimetre", "mm": "millimeter millimetre", "m": "meter metre",
        "km": "kilometer kilometre",
        "in": "inch inche", "ft": "foot feet", "yd": "yard", "mi": "mile", "g": "gram", "kg": "kilogram",
        "lb": "pound", "oz": "ounce", "l": "liter litre", "ml": "milliliter millilitre", "s": "sec second",
        "min": "minute", "h": "hr hour", "$": "dollar usd", "€": "euro eur", "degree": "deg",
    }.items()
    for name in names.split()
}  # fmt: skip
_CURRENCY = CURRENCY.replace("$", "")
_MONEY = re.compile(rf"([{_CURRENCY}]) ?(.{{1,120}})|(.{{0,119}}[\d}}]) ?([{_CURRENCY}])")
_DEGREES = re.compile(r"(.{0,119}[\d}]) ?(?:\^ ?(?:\\circ|\{ ?\\circ ?\})|\\degree|°)")
# Symbols for which LaTeX has a command.
_LATEX = str.maketrans({"∞": r"\infty ", "π": r"\pi ", "∪": r"\cup ", "∩": r"\cap "})
_ROOT = re.compile(r"√ ?(?:(\d{1,40}|[A-Za-z])|\(([^()√]{1,120})\))")
_POWER = re.compile(rf"(?<=[\w)}}\]])[{RAISED}]+")
_SEQUENCE = re.compile(r"(\\?\{|[(\[])(.*?)(\\?\}|[)\]])")
_WRAPPED = (
    re.compile(r"\\(?:boxed|fbox|text|textbf|mathrm|mbox)\{([^{}]*)\}"),
    re.compile(r"\$\$?(.*?)\$?\$"),
    re.compile(r"\\[(\[](.{0,500})\\[)\]]"),
)
_BOX = re.compile(r"\\boxed\s*\{")
_HASHES = re.compile(r"^####[ \t]*(\S.*)$", re.MULTILINE)
_FRACTION = re.compile(r"(-?)\\frac\{?(\d{1,40})\}?\{?(\d{1,40})\}?")
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d{0,60})(?:\.\d{0,60})?")
_SCIENTIFIC = re.compile(r"([-+]?\d{1,40}(?:\.\d{1,40})?)[eE]([-+]?\d{1,2})")
_RATIO = re.compile(r"([-+]?\d{1,40})/(\d{1,40})")


class AnswerComparer:
    """A context manager that compares answers, even in different notation. If math-verify is installed, it compares
    those that are not plain numbers."""

    def __init__(self) -> None:
        self._grader = Grader() if find_spec("math_verify") else None
        self._same = lru_cache(maxsize=100_000)(self._compare)

    def __enter__(self) -> "AnswerComparer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._grader is not None:
            self._grader.__exit__(kind, error, trace)

    @property
    def described(self) -> str:
        """A description of how answers are compared, for reports."""
        plain = "as texts and numbers"
        return f"{plain}, else by math-verify {version('math-verify')}" if self._grader else plain

    def same(self, first: str, second: str) -> bool:
        """True if two answers are equal. If they are neither equal texts nor both numbers, math-verify decides. It
        treats the first answer as the correct one, so the order can matter."""
        left, right = normalised(first), normalised(second)
        return left == right or self._same(left, right)

    def groups(self, answers: Sequence[str | None]) -> list[int]:
        """Return a group number for each answer, counted from 0, or `NO_ANSWER` if the answer is None.

        An answer joins the first group whose first answer equals it.
        """
        firsts: list[str] = []
        groups = []
        for answer in answers:
            if answer is None:
                groups.append(NO_ANSWER)
                continue
            place = next((i for i, first in enumerate(firsts) if self.same(first, answer)), len(firsts))
            if place == len(firsts):
                firsts.append(answer)
            groups.append(place)
        return groups

    def _compare(self, first: str, second: str) -> bool:
        (left, unit), (right, other) = _split_unit(first), _split_unit(second)
        if _is_number(left) and _is_number(right):
            return _is_same_measure(Fraction(left), unit, Fraction(right), other)
        # math-verify adds the parts of `1 2` and does not tell all kinds of brackets apart.
        if self._grader is None or any(map(_BETWEEN_DIGITS.search, (first, second))) or _differ(first, second):
            return False
        return self._grader.grade(first, rf"\boxed{{{second}}}")


@lru_cache(maxsize=100_000)
def normalised(answer: str) -> str:
    r"""Return an answer without LaTeX spacing, dollar signs, boxes, text commands or a final full stop. A number,
    such as 1,000, 26.0, 3 1/2, 50% or \frac{1}{2}, is returned in lowest terms, and so are the elements of sets,
    intervals and tuples. A set has each element once, in order. A unit is kept after a space."""
    text = answer
    if not text.isascii():
        text = _POWER.sub(_as_power, comparable(text))
        text = _ROOT.sub(r"\\sqrt{\1\2}", text.translate(_LATEX))
    text = _VULGAR.sub(_as_ratio, text).strip()
    text = text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
    if (measured := _UNIT.fullmatch(_normalise_spaces(text).removesuffix("."))) and (unit := _unit(measured)):
        return f"{normalised(measured[1])} {unit}"
    if with_sign := _with_sign(_normalise_spaces(text)):
        return with_sign
    for pattern in _WRAPPED:
        while (inner := pattern.sub(r"\1", text)) != text:
            text = inner
    text = _normalise_spaces(text).removeprefix("\\$").removeprefix("$").removesuffix(".")
    if number := _number(text):
        return number
    text = _OTHER_SPACES.sub("", text)
    sequence = _SEQUENCE.fullmatch(text)
    if sequence is None or any(sign in sequence[2] for sign in "()[]") or "\\{" in sequence[2]:
        return text
    elements = [_number(element) or element for element in sequence[2].split(",")]
    if sequence[1].endswith("{"):
        return f"\\{{{','.join(sorted(set(elements)))}\\}}" if len(elements) > 1 else text
    return f"{sequence[1]}{','.join(elements)}{sequence[3]}"


def _with_sign(text: str) -> str:
    """Return a number with a currency or degree sign as a number with a unit, or "" if the text is not such a
    number."""
    if money := _MONEY.fullmatch(text.strip("$ ").removesuffix(".")):
        number, unit = normalised(money[2] or money[3]), money[1] or money[4]
    elif degrees := _DEGREES.fullmatch(text.strip("$ ").removesuffix(".")):
        number, unit = normalised(degrees[1]), "degree"
    else:
        return ""
    return f"{number} {unit}" if _is_number(number) else ""


def _as_power(match: re.Match[str]) -> str:
    raised = unicodedata.normalize("NFKC", match[0])
    return f"^{raised}" if len(raised) == 1 else f"^{{{raised}}}"


def _normalise_spaces(text: str) -> str:
    """Return a text with single spaces, and none between thousands."""
    text = _SPACING.sub(" ", text).strip()
    return _THOUSANDS.sub(lambda match: match[1] + match[2].replace(" ", ""), text)


def _as_ratio(match: re.Match[str]) -> str:
    return " " + unicodedata.normalize("NFKC", match[0]).replace("\u2044", "/")


def _unit(match: re.Match[str]) -> str:
    """Return the unit in a match of `_UNIT` in its shortest form, or "" if the words are not a unit."""
    name = (match[2] or match[3]).strip(" .").lower()
    if name in _NO_UNITS or not _is_number(normalised(match[1])):
        return ""
    singular = name.removesuffix("s") if len(name) > 2 else name
    return _UNITS.get(singular, _UNITS.get(name, singular)) + (f"^{match[4]}" if match[4] else "")


def _split_unit(answer: str) -> tuple[str, str]:
    """Split a normalised answer into its number and its unit, or "" if it has none."""
    number, _, unit = answer.partition(" ")
    return (number, unit) if _is_number(number) and not unit[:1].isdigit() else (answer, "")


def _is_same_measure(left: Fraction, unit: str, right: Fraction, other: str) -> bool:
    """True if two numbers with units are equal, if necessary after conversion, like 5 km and 5000 m. A missing unit
    equals any unit. Currencies are not converted into each other."""
    if unit == other or not unit or not other:
        return left == right
    (name, _, power), (theirs, _, its_power) = unit.partition("^"), other.partition("^")
    if power != its_power or {name, theirs} <= set(CURRENCY):
        return False
    return any(
        left * Fraction(size) ** int(power or 1) == right * Fraction(its_size) ** int(power or 1)
        for system, size in conversion(name)
        for its_system, its_size in conversion(theirs)
        if system == its_system
    )


def _differ(first: str, second: str) -> bool:
    """True if two answers have brackets of different kinds, such as those of an open and a closed interval."""
    left, right = _SEQUENCE.fullmatch(first), _SEQUENCE.fullmatch(second)
    return left is not None and right is not None and (left[1], left[3]) != (right[1], right[3])


def answer_of(solution: str) -> str | None:
    r"""Return the final answer of a solution, or None if it has none. The final answer is the content of the last
    `\boxed{…}` or, if there is no box, the text after the last `####`, as in GSM8K."""
    boxes = list(_BOX.finditer(solution))
    if boxes and (inside := _read_braces(solution, boxes[-1].end())) is not None:
        return inside.strip() or None
    marked = _HASHES.findall(solution)
    return str(marked[-1]).rstrip() if marked else None


def _read_braces(text: str, start: int) -> str | None:
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return text[start:place]
    return None


def _number(text: str) -> str:
    """Return a number in lowest terms, or "" if the text is not a number."""
    if (percent := _PERCENT.fullmatch(text)) and (share := _number(percent[1])):
        return str(Fraction(share) / 100)
    if (mixed := _MIXED_NUMBER.fullmatch(text)) and (part := _fraction_part(mixed)):
        return str((int(mixed[2]) + part) * (-1 if mixed[1] == "-" else 1))
    text = _OTHER_SPACES.sub("", text)
    if match := _FRACTION.fullmatch(text):
        text = f"{match[1]}{match[2]}/{match[3]}"
    if scientific := _SCIENTIFIC.fullmatch(text):
        return str(Fraction(scientific[1]) * Fraction(10) ** int(scientific[2]))
    if ratio := _RATIO.fullmatch(text):
        return str(Fraction(int(ratio[1]), int(ratio[2]))) if int(ratio[2]) else ""
    if not any(sign.isdigit() for sign in text) or not _NUMBER.fullmatch(text):
        return ""
    return str(Fraction(text.replace(",", "").removesuffix(".")))


def _fraction_part(mixed: re.Match[str]) -> Fraction | None:
    """Return the fraction in a mixed number, or None unless it is between 0 and 1."""
    over, under = int(mixed[3] or mixed[5]), int(mixed[4] or mixed[6])
    return Fraction(over, under) if 0 < over < under else None


def _is_number(text: str) -> bool:
    return _number(text) == text
