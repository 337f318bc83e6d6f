"""The labels of a synthetic trace derived anew, without the code that wrote it: values by SymPy from the relations
of its meta, equations by `core.equations`, which knows nothing of the corpus.

It goes by the problem's text, the steps' texts, and of the meta by the givens, the relations (formulas), what each
step claims by key, and the roles. `objections` is empty if all of this agrees with the labels.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import sympy

from stepsight.core.equations.checker import check_steps
from stepsight.core.label import Label
from stepsight.core.trace import Trace

REDUNDANT = ("restating", "detour", "aside")
_NEGATIVE = re.compile(
    r"\b(on one side|differs?|different|not|no whole|no root|never|nor|wrong|mistake|error|contradict\w*|"
    r"impossible|cannot|instead|fails|broken|although|yet|but|while|though|remainder|should have been)\b"
)
# A result beside the number that it is compared with.
_BESIDE = re.compile(
    r"\b(?:we (?:wrote|had|need)|should be|against|compared with|equal to|in line with|matching)\b"
)
_NUMBER = re.compile(
    r"\\d?frac\{(?P<top>\d+)\}\{(?P<bottom>\d+)\}|(?P<number>\d+(?:\.\d+)?)(?:\s?/\s?(?P<over>\d+))?"
)
_FUNCTIONS = {"gcd": math.gcd, "lcm": math.lcm, "mod": lambda a, b: a % b}
_FUNCTION = re.compile(
    r"\\?(?:text\{)?(?P<name>gcd|lcm)\}?\((?P<a>\d+), (?P<b>\d+)\)|(?P<m>\d+) \\?b?mod (?P<n>\d+)"
)
_COUNTS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
_WORDS = {word: number for number, word in enumerate(_COUNTS)} | {
    "twice": 2, "double": 2, "doubles": 2, "pair": 2, "couple": 2, "half": 2, "thrice": 3, "triple": 3,
    "triples": 3, "third": 3, "quarter": 4, "week": 7, "fortnight": 14, "dozen": 12, "twelve": 12, "day": 24,
    "hour": 60, "year": 12,
}  # fmt: skip
_COMPOUND = re.compile(r"\b(half a|half-|two|three|four|five) (dozen|week|day|hour|year)")
_CALLS = {
    "binom": sympy.binomial, "perm": sympy.ff, "factorial": sympy.factorial, "gcd": sympy.gcd, "lcm": sympy.lcm,
    "mod": sympy.Mod, "sqrt": sympy.sqrt, "abs": sympy.Abs, "floor": sympy.floor, "ceil": sympy.ceiling,
    "max": sympy.Max, "min": sympy.Min, "percent": lambda rate, whole: rate * whole / 100,
    "log": lambda base, number: sympy.log(number, base),
}  # fmt: skip


def objections(trace: Trace) -> list[str]:
    """Everything in which the labels and meta of `trace` disagree with its texts."""
    givens = {key: Fraction(text) for key, text in trace.meta["givens"].items()}
    stated = numbers(trace.problem)
    found = [f"given {key} is not in {trace.problem!r}" for key, number in givens.items() if number not in stated]
    solution = _Solution(trace, following(trace.meta["relations"], givens), givens)
    if trace.meta["error_step"] != solution.first:
        found.append(f"the first error is {solution.first}, not {trace.meta['error_step']}")
    for index, step in enumerate(trace.steps):
        found += [f"step {index} ({step.text!r}): {what}" for what in solution.objections(index)]
    return [f"{trace.id} {what}" for what in found]


@dataclass(frozen=True)
class _Solution:
    """A trace with the true value of every key."""

    trace: Trace
    truth: Mapping[str, Fraction]
    givens: Mapping[str, Fraction]

    @property
    def first(self) -> int | None:
        """The first step that claims a false value or states a false equation."""
        roles = enumerate(self.trace.meta["roles"])
        return next((i for i, role in roles if role in ("line", *REDUNDANT) and self.faults(i)), None)

    def faults(self, index: int) -> list[str]:
        claims = self.trace.meta["claims"][index]
        wrong = [f"{key} is {self.truth[key]}" for key, said in claims.items() if Fraction(said) != self.truth[key]]
        return wrong + false_equations(self.trace.steps[index].text)

    def objections(self, index: int) -> Iterator[str]:
        role, step, first = self.trace.meta["roles"][index], self.trace.steps[index], self.first
        after = first is not None and index > first
        check, redo = _split(step.text) if role == "check" else ("", step.text if role == "redo" else "")
        expected: Label | None = Label.NEU if role in REDUNDANT else Label.POS
        if index == first:
            expected = Label.NEG
        elif after and role != "redo" and (not check or passes(check)):
            expected = None
        if step.label != expected:
            yield f"labelled {step.label!r}, expected {expected!r}; {self.faults(index)}"
        if index == first and role != "line":
            yield f"the error stands in a step of role {role}"
        if not self._shows_claims(index):
            yield f"does not show {self.trace.meta['claims'][index]}"
        if check or redo:
            yield from self._of_check(index, check, redo, after)
        elif role in REDUNDANT and not after:
            yield from self._of_redundant(index, role)

    def _shows_claims(self, index: int) -> bool:
        """True if what a step claims stands in its text: as a number, or as product and sum of two of them."""
        claimed = [Fraction(said) for said in self.trace.meta["claims"][index].values()]
        shown = numbers(self.trace.steps[index].text)
        pairs = ([a * b, a + b] for a in shown for b in shown)
        return set(claimed) <= shown or (len(claimed) == 2 and claimed in pairs)

    def _of_check(self, index: int, check: str, redo: str, after: bool) -> Iterator[str]:
        """A check states what is true; a redo ends with a true value."""
        for text in filter(None, (check, redo)):
            yield from false_equations(text)
        evidence = self.trace.meta["evidence"]
        if check and not passes(check) and self.trace.meta["error"] is None:
            yield "fails in a right trace"
        if evidence and evidence["step"] == index and evidence["passes"] is not passes(check):
            yield f"outcome {passes(check)}, not as its meta says"
        true = {Fraction(0), *(abs(number) for number in self.truth.values())}
        result = _values(redo.rpartition("=")[2]) if "=" in redo else []
        if result and not (check and after and passes(check)) and abs(result[0]) not in true:
            yield f"redone to {result[0]}, which is no true value"

    def _of_redundant(self, index: int, role: str) -> Iterator[str]:
        text = self.trace.steps[index].text
        before = [self.trace.problem, *(step.text for step in self.trace.steps[:index])]
        seen = {number for part in (*before, *self.trace.meta["relations"].values()) for number in numbers(part)}
        results = _values(text.rpartition("=")[2])
        shown = {Fraction(number) for number in re.findall(r"\d+(?:\.\d+)?", text.replace("base 10", ""))}
        if role == "restating" and (new := shown - seen):
            yield f"restates {sorted(map(str, new))}, which was not there before"
        elif role == "detour" and (_values(text)[0] not in seen or _values(text)[0] != results[-1]):
            yield "does not come back to where it began"
        elif role == "aside":
            derived = {value for key, value in self.truth.items() if key not in self.givens}
            if "=" in text and results[-1] in derived:
                yield "is no aside: the number is needed"
            parity = re.search(r"(\d+)\$? is (?:an )?(odd|even)", text)
            if parity and (int(parity[1]) % 2 == 1) != (parity[2] == "odd"):
                yield "is false of the number"


def _split(text: str) -> tuple[str, str]:
    """A check and the redo that follows it in the same step, if any."""
    parts = re.split(r"(?<=\.) (?=So )", text, maxsplit=1)
    return parts[0], parts[1] if len(parts) > 1 else ""


def passes(check: str) -> bool:
    """True if a check finds what it compares with, or says nothing against it."""
    for beside in _BESIDE.finditer(check):
        before, behind = _values(check[: beside.start()]), _values(check[beside.end() :])
        # Of a fraction that was not worked out, its numerator is the last result.
        if before and behind and before[-1] not in (behind[0], behind[0].numerator):
            return False
    return not (_NEGATIVE.search(check.rpartition(", ")[2]) or re.search(r"\bnot \$?-?\d", check))


@cache
def false_equations(text: str) -> list[str]:
    """The equations that fail, each read without the words around it: a check may say that a number is wrong."""
    text = _FUNCTION.sub(_worked_out, text)
    clauses = re.split(r"(?<=\d\$) |(?<=\d) (?=and |times as )|, |(?<=[\d$])\. ", text)
    found = [(clause, check) for clause in clauses for check in check_steps("", [clause])[0]]
    return [f"false: {clause[check.start : check.end]}" for clause, check in found if not check.holds]


def _worked_out(match: re.Match[str]) -> str:
    """A sum of the value that a function has which `core.equations` does not read."""
    name, first, second = match["name"] or "mod", int(match["a"] or match["m"]), int(match["b"] or match["n"])
    return f"({_FUNCTIONS[name](first, second)} + 0)"


def numbers(text: str) -> set[Fraction]:
    """Every number that a text shows, with either sign, fractions as one number too, digits of another base, and
    those in words: "a week" is 7, "two dozen" 24, "twice" 2. A letter's coefficient may be 1."""
    lower = text.lower()
    found = {Fraction(1), *(Fraction(_WORDS[word]) for word in re.findall("[a-z]+", lower) if word in _WORDS)}
    for times, unit in _COMPOUND.findall(lower):
        found.add(_WORDS[unit] * (Fraction(1, 2) if times.startswith("half") else Fraction(_WORDS[times])))
    for match in _NUMBER.finditer(text):
        parts = [Fraction(part) for part in match.groups() if part is not None]
        found |= {*parts, *([parts[0] / parts[1]] if len(parts) > 1 and parts[1] else [])}
    if re.search(r"\bbase\b|decimal notation|_", text):
        found |= {Fraction(digit) for digit in re.findall(r"\d", text)}
    return found | {-number for number in found}


def _values(text: str) -> list[Fraction]:
    """The numbers of a text in its order, fractions as one, with their signs."""
    found = []
    for match in _NUMBER.finditer(text):
        parts = [Fraction(part) for part in match.groups() if part is not None]
        value = parts[0] / parts[1] if len(parts) > 1 and parts[1] else parts[0]
        found.append(-value if re.search(r"(?:^|[=(,$]|\s)\s?[-−]$", text[: match.start()]) else value)
    return found


def following(relations: Mapping[str, str], givens: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """The givens and, in the order of the relations, what follows from them."""
    values = dict(givens)
    for key, formula in relations.items():
        values[key] = evaluate(formula, values)
    return values


def evaluate(formula: str, values: Mapping[str, Fraction]) -> Fraction:
    """The exact value of a formula in Python's notation, by SymPy."""
    names = {name: sympy.Rational(value.numerator, value.denominator) for name, value in values.items()}
    found = sympy.simplify(sympy.sympify(formula, locals=_CALLS | names))
    return Fraction(int(found.p), int(found.q))
