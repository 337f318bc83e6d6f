"""Planning solutions of quadratic equations x^2 + bx + c = 0, which are solved by factoring."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from stepsight.core.validation import Model
from stepsight.training.synth.mistakes import ErrorKind
from stepsight.training.synth.solution import RedundantStep, SelfCheck, SolutionPlan, SolutionStep, StatedValues
from stepsight.training.synth.story import Templates
from stepsight.training.synth.style import Style, signed
from stepsight.training.synth.wording import returns

_ASKS: dict[str, Callable[[int, int], int]] = {
    "the larger root": max,
    "the smaller root": min,
    "the difference of the roots": lambda r, s: abs(r - s),
    "twice the larger root": lambda r, s: 2 * max(r, s),
}
_ANSWERED = {
    "the larger root": "(sqrt(b * b - 4 * c) - b) / 2",
    "the smaller root": "(0 - b - sqrt(b * b - 4 * c)) / 2",
    "the difference of the roots": "sqrt(b * b - 4 * c)",
    "twice the larger root": "sqrt(b * b - 4 * c) - b",
}
_RELATIONS = {
    "product": "c",
    "sum": "b",
    "factor_product": "c",
    "factor_sum": "b",
    "root_product": "c",
    "root_sum": "-b",
}
_FITS = (
    ("as needed", "but we need {c} and {b}"),
    ("which fits {c} and {b}", "which does not fit {c} and {b}"),
    ("just {c} and {b}", "not {c} and {b}"),
)
_EXPANDED = (
    ("as given", "which is not {e}"),
    ("which is right", "but we have {e}"),
    ("the same as {e}", "not {e}"),
)


class QuadraticWording(Model):
    """The templates for the problem and for each of the five steps."""

    problems: Templates
    needs: Templates
    pairs: Templates
    factors: Templates
    roots: Templates
    answers: Templates


_CheckParts = tuple[str, int, str, bool, bool]
"""Kind, target, text, True if it passes, and True if it would settle the focus."""


def polynomial(b: int, c: int) -> str:
    """Return x^2 + bx + c as text, with proper signs."""
    middle = "" if b == 0 else f" {'+' if b > 0 else '-'} {'' if abs(b) == 1 else abs(b)}x"
    return f"x^2{middle} {'+' if c > 0 else '-'} {abs(c)}"


def _factor(p: int) -> str:
    return f"(x {'+' if p > 0 else '-'} {abs(p)})"


@dataclass(frozen=True)
class _Solution:
    """The values that a solution states.

    These are the coefficients, the two numbers found, the two numbers written in the factors, and the roots.
    """

    b: int
    c: int
    pair: tuple[int, int]
    factors: tuple[int, int]
    roots: tuple[int, int]

    @property
    def factored(self) -> str:
        return "".join(map(_factor, self.factors)) + " = 0"


def _solve(p: int, q: int) -> _Solution:
    return _Solution(p + q, p * q, (p, q), (p, q), (-p, -q))


def _draw_faulty(right: _Solution, kind: ErrorKind, step: int, rng: random.Random) -> _Solution:
    """Return a copy of `right` with a random error at `step` that carries on through all later steps."""
    p, q = right.pair
    if kind == ErrorKind.MISREAD:
        return _solve(*rng.choice([(-p, -q), (p, -q), (-p, q), (p + 1, q), (p, q + 1), (p - 1, q)]))
    if kind == ErrorKind.SLIP:
        # Product or sum mostly stays right, so that half of the evidence looks fine.
        same_sum = (p + 1, q - 1) if rng.random() < 0.5 else (p - 1, q + 1)
        options = [(-p, -q), same_sum, *_same_product(p * q, {p, q}), (p, -q)]
        u, v = rng.choice(options)
        return _Solution(right.b, right.c, (u, v), (u, v), (-u, -v))
    if step == 2:
        u, v = rng.choice([(-p, -q), (p, -q), (-p, q)])
        return _Solution(right.b, right.c, (p, q), (u, v), (-u, -v))
    u, v = rng.choice([(p, q), (-p, q), (p, -q)])
    return _Solution(right.b, right.c, (p, q), (p, q), (u, v))


def _same_product(c: int, used: set[int]) -> list[tuple[int, int]]:
    pairs = [(d, c // d) for d in range(-15, 16) if d and c % d == 0 and d not in used and abs(c // d) <= 30]
    return pairs[:3] + pairs[-3:]


@dataclass(frozen=True)
class _QuadraticWriter:
    """Writes the steps of one planned solution.

    `ask` names the number that the problem asks for, such as the larger root, or is None if it asks for both roots.
    """

    style: Style
    right: _Solution
    stated: _Solution
    kind: ErrorKind
    focus: int
    ask: str | None
    templates: tuple[str, ...]
    rng: random.Random

    @property
    def equation(self) -> str:
        return self.style.math(f"{polynomial(self.right.b, self.right.c)} = 0")

    def solution(self, corrected: bool) -> _Solution:
        return self.right if corrected else self.stated

    def steps(self) -> list[SolutionStep]:
        """Return the five steps: the goal, the two numbers, the factors, the roots and the answer."""
        values = zip(self._values(self.stated), self._values(self.right), strict=True)
        return [SolutionStep(partial(self._text, index), *pair) for index, pair in enumerate(values)]

    def _text(self, index: int, corrected: bool) -> str:
        solution = self.solution(corrected)
        p, q = solution.pair
        math = self.style.math
        return self.templates[index].format(
            b=math(str(solution.b)),
            c=math(str(solution.c)),
            p=math(str(p)),
            q=math(str(q)),
            # If the pair is wrong, this equation is false, and its other side is not.
            pq=math(f"{p} * {signed(q)} = {solution.c}"),
            sum=math(f"{p} + {signed(q)} = {solution.b}"),
            f=math(solution.factored),
            r=math(f"x = {solution.roots[0]}"),
            s=math(f"x = {solution.roots[1]}"),
            ask=self.ask or "the pair of roots",
            a=self.style.boxed(self.answer(solution)),
        )

    def _values(self, solution: _Solution) -> list[StatedValues]:
        """Return, for each of the five steps, the values it states of the quantities in `_RELATIONS`."""
        (p, q), (u, v), (r, s) = solution.pair, solution.factors, solution.roots
        of_roots = {"root_product": str(r * s), "root_sum": str(r + s)}
        return [
            {"b": str(solution.b), "c": str(solution.c)},
            {"product": str(p * q), "sum": str(p + q)},
            {"factor_product": str(u * v), "factor_sum": str(u + v)},
            of_roots,
            {"answer": self.answer(solution)} if self.ask else of_roots,
        ]

    def answer(self, solution: _Solution) -> str:
        if self.ask:
            return str(_ASKS[self.ask](*solution.roots))
        return f"{solution.roots[0]}, {solution.roots[1]}"

    def redo(self, step: int) -> str:
        """Return a short sentence with the correct steps from the focus to `step`."""
        p, q = self.right.pair
        parts = [
            f"the product is {self.right.c} and the sum {self.right.b}",
            f"the numbers are {p} and {q}",
            self.style.math(self.right.factored),
            f"the roots are {self.right.roots[0]} and {self.right.roots[1]}",
            f"the answer is {self.answer(self.right)}",
        ]
        shown = parts[self.focus : step + 1]
        return "So " + ", and ".join(shown[-2:]) + "."

    def checks(self) -> Iterator[SelfCheck]:
        """Yield every check. Checks that pass despite the error get `settles=False`."""
        wrong = self.stated != self.right
        for kind, target, text, passes, settles in (*self._root_checks(), *self._other_checks()):
            yield SelfCheck(kind, target, partial(str, text), passes, settles and passes != wrong)

    def _root_checks(self) -> Iterator[_CheckParts]:
        (r, s), right, math = self.stated.roots, self.right, self.style.math
        product, total = math(f"{r} * {signed(s)} = {r * s}"), math(f"{r} + {signed(s)} = {r + s}")
        by_product, by_sum = _verdict(r * s, right.c, self.rng), _verdict(r + s, -right.b, self.rng)
        yield "product of roots", 3, f"the product of the roots is {product}, {by_product}.", r * s == right.c, True
        yield "sum of roots", 3, f"the sum of the roots is {total}, {by_sum}.", r + s == -right.b, True
        both = (r * s, r + s) == (right.c, -right.b)
        yield "sum and product", 3, f"{product}, {by_product}, and {total}, {by_sum}.", both, True
        root = self.rng.choice(self.stated.roots)
        square, middle = root * root, right.b * root
        value = square + middle + right.c
        terms = " ".join([str(square), *(f"{'-' if term < 0 else '+'} {abs(term)}" for term in (middle, right.c))])
        tail = self.rng.choice([("as it must", "not 0"), ("so it is a root", "so it is no root")])[value != 0]
        text = f"{math(f'x = {root}')} gives {math(f'{terms} = {value}')}, {tail}."
        yield "substitute", 3, text, value == 0, True

    def _other_checks(self) -> Iterator[_CheckParts]:
        (u, v), (p, q), right, math = self.stated.factors, self.stated.pair, self.right, self.style.math
        spread, true = polynomial(u + v, u * v), polynomial(right.b, right.c)
        tail = self.rng.choice(_EXPANDED)[spread != true].format(e=true)
        expanded = math(f"{_factor(u)}{_factor(v)} = {spread}")
        yield "expand", 2, f"{expanded}, {tail}.", spread == true, self.focus < 3
        b, c = self.stated.b, self.stated.c
        fits = (p * q, p + q) == (c, b)
        tail = self.rng.choice(_FITS)[not fits].format(c=c, b=b)
        equations = f"{math(f'{p} * {signed(q)} = {p * q}')} and {math(f'{p} + {signed(q)} = {p + q}')}"
        yield "pair", 1, f"{equations}, {tail}.", fits, self.kind == ErrorKind.SLIP
        read = (b, c) == (right.b, right.c)
        tail = "as used" if read else f"not {c} and {b}"
        text = f"the problem has constant {right.c} and middle number {right.b}, {tail}."
        yield "reread", 0, text, read, self.kind == ErrorKind.MISREAD

    def redundant(self) -> Iterator[RedundantStep]:
        restate = self.rng.choice(["We want to solve {e}.", "The equation is {e}.", "We are given {e}."])
        yield RedundantStep(-1, "restating", lambda corrected: restate.format(e=self.equation))
        degree = self.rng.choice(["A quadratic has two roots at most.", "This is an equation of degree 2."])
        yield RedundantStep(-1, "aside", lambda corrected: degree)
        yield RedundantStep(1, "restating", self._repeat_pair)
        yield RedundantStep(2, "restating", self._turn_factors)
        c, by = abs(self.right.c), self.rng.randint(2, 9)
        aside = f"By the way, {self.style.math(f'{c} + {by} = {c + by}')}."
        yield RedundantStep(-1, "aside", lambda corrected: aside)

    def _repeat_pair(self, corrected: bool) -> str:
        p, q = self.solution(corrected).pair
        return f"As said, the numbers are {p} and {q}."

    def _turn_factors(self, corrected: bool) -> str:
        u, v = self.solution(corrected).factors
        return f"The same may be written {self.style.math(f'{_factor(v)}{_factor(u)} = 0')}."


def plan_quadratic(
    wording: QuadraticWording, wrong: bool, rng: random.Random, larger: bool = False
) -> SolutionPlan:
    """Plan a random solution of a quadratic equation with two different nonzero roots. The solution contains an
    error if `wrong` is True. With `larger`, its numbers go beyond the range used in training."""
    right, faulty, kind, focus = _draw(rng, larger)
    style = Style.draw(rng)
    template = rng.choice(wording.problems)
    ask = rng.choice(list(_ASKS)) if "{ask}" in template else None
    options = (wording.needs, wording.pairs, wording.factors, wording.roots, wording.answers)
    templates = tuple(map(rng.choice, options))
    writer = _QuadraticWriter(style, right, faulty if wrong else right, kind, focus, ask, templates, rng)
    count = 5 if ask or rng.random() < 0.5 else 4
    return SolutionPlan(
        problem=template.format(e=writer.equation, ask=ask),
        steps=tuple(writer.steps()[:count]),
        focus=focus,
        kind=kind,
        wrong=wrong,
        checks=tuple(writer.checks()),
        redundant=tuple(writer.redundant()),
        redo=writer.redo,
        quantities={"b": str(right.b), "c": str(right.c)},
        relations=_RELATIONS | {"answer": _ANSWERED[ask] if ask else "c"},
    )


def _draw(rng: random.Random, larger: bool) -> tuple[_Solution, _Solution, ErrorKind, int]:
    low, high = (13, 24) if larger else (1, 12)
    while True:
        p, q = (rng.choice([-1, 1]) * rng.randint(low, high) for _ in range(2))
        kind = rng.choices((ErrorKind.SLIP, ErrorKind.MISREAD, ErrorKind.SIGN), [0.3, 0.2, 0.5])[0]
        focus = {ErrorKind.SLIP: 1, ErrorKind.MISREAD: 0}.get(kind, rng.choice([2, 3]))
        right = _solve(p, q)
        faulty = _draw_faulty(right, kind, focus, rng)
        distinct = all(len({abs(u) for u in s.roots}) == 2 and 0 not in s.roots for s in (right, faulty))
        if distinct and right.b and faulty.b and set(faulty.roots) != set(right.roots):
            return right, faulty, kind, focus


def _verdict(result: int, needed: int, rng: random.Random) -> str:
    if rng.random() < 0.5:
        return returns(result, needed, rng)
    return "as needed" if result == needed else f"not {needed}"
