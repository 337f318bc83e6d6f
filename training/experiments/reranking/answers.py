"""Finding the final answers of solutions and comparing them.

Answers that differ only in LaTeX spacing, or in how a number is written, are recognised as equal by this module.
All other answers are compared by math-verify, if it is installed.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from types import TracebackType

from stepsight.core.metrics.best_of_n import NO_ANSWER
from stepsight.training.evaluate.grading import Grader

_SPACING = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[!,;: ]|\\quad\b|\\qquad\b|\s+")
_WRAPPED = (
    re.compile(r"\\(?:boxed|fbox|text|textbf|mathrm|mbox)\{([^{}]*)\}"),
    re.compile(r"\$\$?(.*?)\$?\$"),
    re.compile(r"\\[(\[](.*)\\[)\]]"),
)
_BOX = re.compile(r"\\boxed\s*\{")
_HASHES = re.compile(r"^####[ \t]*(\S.*?)\s*$", re.MULTILINE)
_FRACTION = re.compile(r"(-?)\\frac\{?(\d{1,40})\}?\{?(\d{1,40})\}?")
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d{0,60})(?:\.\d{0,60})?")
_RATIO = re.compile(r"([-+]?\d{1,40})/(\d{1,40})")


class AnswerComparer:
    """A context manager that compares answers, even in different notation. Only one thread may use it.

    If `symbolic` is True, math-verify compares answers that are not plain numbers. If it is None, math-verify is
    used if it is installed.
    """

    def __init__(self, symbolic: bool | None = None) -> None:
        wanted = find_spec("math_verify") is not None if symbolic is None else symbolic
        self._grader = Grader() if wanted else None
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
        if self._grader is None or (_is_number(first) and _is_number(second)):
            return False
        return self._grader.grade(first, rf"\boxed{{{second}}}")


@lru_cache(maxsize=100_000)
def normalised(answer: str) -> str:
    r"""Return an answer without LaTeX spacing, dollar signs, boxes, text commands or a final full stop. A number,
    such as 1,000, 26.0 or \frac{1}{2}, is returned in lowest terms."""
    text = answer.strip()
    for pattern in _WRAPPED:
        while (inner := pattern.sub(r"\1", text)) != text:
            text = inner
    text = _SPACING.sub("", text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac"))
    text = text.removeprefix("\\$").removeprefix("$").removesuffix(".")
    return _number(text) or text


def answer_of(solution: str) -> str | None:
    r"""Return the final answer of a solution, or None if it has none. The final answer is the content of the last
    `\boxed{…}` or, if there is no box, the text after the last `####`, as in GSM8K."""
    boxes = list(_BOX.finditer(solution))
    if boxes and (inside := _braced(solution, boxes[-1].end())) is not None:
        return inside.strip() or None
    marked = _HASHES.findall(solution)
    return str(marked[-1]) if marked else None


def _braced(text: str, start: int) -> str | None:
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return text[start:place]
    return None


def _number(text: str) -> str:
    """Return a number in lowest terms, or "" if the text is not a number."""
    if match := _FRACTION.fullmatch(text):
        text = f"{match[1]}{match[2]}/{match[3]}"
    if ratio := _RATIO.fullmatch(text):
        return str(Fraction(int(ratio[1]), int(ratio[2]))) if int(ratio[2]) else ""
    if not any(sign.isdigit() for sign in text) or not _NUMBER.fullmatch(text):
        return ""
    return str(Fraction(text.replace(",", "").removesuffix(".")))


def _is_number(text: str) -> bool:
    return _number(text) == text
