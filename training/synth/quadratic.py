"""Planning solutions of quadratic equations x^2 + bx + c = 0, which are solved by factoring."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stepsight.core.validation import Model
from stepsight.training.synth.formula import ErrorKind
from stepsight.training.synth.solution import ExtraStep, SolutionPlan, SolutionStep, StatedValues
from stepsight.training.synth.story import Templates
from stepsight.training.synth.style import Style, ending, signed

_ASKS: dict[str, tuple[Callable[[int, int], int], str]] = {
    "the larger root": (max, "(sqrt(b * b - 4 * c) - b) / 2"),
    "the smaller root": (min, "(0 - b - sqrt(b * b - 4 * c)) / 2"),
    "the difference of the roots": (lambda r, s: abs(r - s), "sqrt(b * b - 4 * c)"),
    "twice the larger root": (lambda r, s: 2 * max(r, s), "sqrt(b * b - 4 * c) - b"),
}
"""What a problem may ask for, with its calculation from the roots and its formula in the coefficients."""
_RELATIONS = {
    "product": "c",
    "sum": "b",
    "factor_product": "c",
    "factor_sum": "b",
    "root_product": "c",
    "root_sum": "-b",
}


class QuadraticWording(Model):
    """The templates for the problem and for each of the five steps."""

    problems: Templates
    needs: Templates
    pairs: Templates
    factors: Templates
    roots: Templates
    answers: Templates


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

    def answer(self, ask: str | None) -> str:
        return str(_ASKS[ask][0](*self.roots)) if ask else f"{self.roots[0]}, {self.roots[1]}"

    def values(self, ask: str | None) -> list[StatedValues]:
        """Return, for each of the five steps, the values it states of the quantities in `_RELATIONS`."""
        (p, q), (u, v), (r, s) = self.pair, self.factors, self.roots
        of_roots = {"root_product": str(r * s), "root_sum": str(r + s)}
        return [
            {"b": str(self.b), "c": str(self.c)},
            {"product": str(p * q), "sum": str(p + q)},
            {"factor_product": str(u * v), "factor_sum": str(u + v)},
            of_roots,
            {"answer": self.answer(ask)} if ask else of_roots,
        ]


def _product(p: int, q: int) -> str:
    return "".join(f"(x {'+' if number > 0 else '-'} {abs(number)})" for number in (p, q))


def _solve(p: int, q: int) -> _Solution:
    return _Solution(p + q, p * q, (p, q), (p, q), (-p, -q))


def plan_quadratic(
    wording: QuadraticWording, wrong: bool, rng: random.Random, larger: bool = False
) -> SolutionPlan:
    """Plan a random solution of a quadratic equation with two different nonzero roots. The solution contains an
    error if `wrong` is True. With `larger`, its numbers go beyond the range used in training."""
    right, faulty, kind, focus = _draw(rng, larger)
    style = Style.draw(rng)
    math = style.math
    equation = math(f"{style.polynomial([1, right.b, right.c])} = 0")
    problem = rng.choice(wording.problems)
    ask = rng.choice(list(_ASKS)) if "{ask}" in problem else None
    templates = [
        rng.choice(lines)
        for lines in (wording.needs, wording.pairs, wording.factors, wording.roots, wording.answers)
    ]

    solutions = (faulty, right) if wrong else (right,)
    texts = []
    for solution in solutions:
        (p, q), (r, s) = solution.pair, solution.roots
        shown = {
            "b": math(str(solution.b)),
            "c": math(str(solution.c)),
            "p": math(str(p)),
            "q": math(str(q)),
            # If the pair is wrong, this equation is false, but its other side is not.
            "pq": math(f"{p} * {signed(q)} = {solution.c}"),
            "sum": math(f"{p} + {signed(q)} = {solution.b}"),
            "f": math(f"{_product(*solution.factors)} = 0"),
            "r": math(f"x = {r}"),
            "s": math(f"x = {s}"),
            "ask": ask or "the pair of roots",
            "a": style.boxed(solution.answer(ask)),
        }
        texts.append([template.format(**shown) for template in templates])
    values = [solution.values(ask) for solution in solutions]
    steps = [SolutionStep(*both) for both in zip(zip(*texts, strict=True), zip(*values, strict=True), strict=True)]

    def redo(step: int) -> str:
        (p, q), (r, s) = right.pair, right.roots
        parts = [
            f"the product is {right.c} and the sum {right.b}",
            f"the numbers are {p} and {q}",
            math(f"{_product(*right.factors)} = 0"),
            f"the roots are {r} and {s}",
            f"the answer is {right.answer(ask)}",
        ]
        return "So " + ", and ".join(parts[focus : step + 1][-2:]) + "."

    count = 5 if ask or rng.random() < 0.5 else 4
    return SolutionPlan(
        problem=problem.format(e=equation, ask=ask),
        steps=steps[:count],
        focus=focus,
        kind=kind,
        wrong=wrong,
        checks=list(_checks(solutions[0], right, kind, focus, style, rng)),
        redundant=list(_redundant(solutions, right, equation, style, rng)),
        redo=redo,
        quantities={"b": str(right.b), "c": str(right.c)},
        relations=_RELATIONS | {"answer": _ASKS[ask][1] if ask else "c"},
    )


def _draw(rng: random.Random, larger: bool) -> tuple[_Solution, _Solution, ErrorKind, int]:
    """Choose at random a right solution, a faulty one, the kind of its error and the step that holds it."""
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


def _draw_faulty(right: _Solution, kind: ErrorKind, step: int, rng: random.Random) -> _Solution:
    """Return a copy of `right` with a random error at `step` that carries on through all later steps."""
    p, q = right.pair
    if kind == ErrorKind.MISREAD:
        return _solve(*rng.choice([(-p, -q), (p, -q), (-p, q), (p + 1, q), (p, q + 1), (p - 1, q)]))
    if kind == ErrorKind.SLIP:
        # Either the product or the sum usually stays right, so that half of the evidence looks fine.
        same_sum = (p + 1, q - 1) if rng.random() < 0.5 else (p - 1, q + 1)
        divisors = [d for d in range(-15, 16) if d and right.c % d == 0 and d not in (p, q)]
        same_product = [(d, right.c // d) for d in divisors if abs(right.c // d) <= 30]
        u, v = rng.choice([(-p, -q), same_sum, *same_product[:3], *same_product[-3:], (p, -q)])
        return _Solution(right.b, right.c, (u, v), (u, v), (-u, -v))
    if step == 2:
        u, v = rng.choice([(-p, -q), (p, -q), (-p, q)])
        return _Solution(right.b, right.c, (p, q), (u, v), (-u, -v))
    return _Solution(right.b, right.c, (p, q), (p, q), rng.choice([(p, q), (-p, q), (p, -q)]))


def _checks(
    stated: _Solution, right: _Solution, kind: ErrorKind, focus: int, style: Style, rng: random.Random
) -> Iterator[ExtraStep]:
    (p, q), (u, v), (r, s), math = stated.pair, stated.factors, stated.roots, style.math

    def verdict(result: int, needed: int) -> str:
        if rng.random() < 0.5:
            return ending("inverse", result == needed, rng, c=needed)
        return "as needed" if result == needed else f"not {needed}"

    product, total = math(f"{r} * {signed(s)} = {r * s}"), math(f"{r} + {signed(s)} = {r + s}")
    is_product, is_sum = r * s == right.c, r + s == -right.b
    by_product, by_sum = verdict(r * s, right.c), verdict(r + s, -right.b)
    text = f"the product of the roots is {product}, {by_product}."
    yield ExtraStep.check("product of roots", 3, text, is_product)
    yield ExtraStep.check("sum of roots", 3, f"the sum of the roots is {total}, {by_sum}.", is_sum)
    text = f"{product}, {by_product}, and {total}, {by_sum}."
    yield ExtraStep.check("sum and product", 3, text, is_product and is_sum)
    root = rng.choice(stated.roots)
    terms = (root * root, right.b * root, right.c)
    shown = " ".join([str(terms[0]), *(f"{'-' if term < 0 else '+'} {abs(term)}" for term in terms[1:])])
    tail = ending("root", sum(terms) == 0, rng)
    text = f"{math(f'x = {root}')} gives {math(f'{shown} = {sum(terms)}')}, {tail}."
    yield ExtraStep.check("substitute", 3, text, sum(terms) == 0)
    expanded, true = style.polynomial([1, u + v, u * v]), style.polynomial([1, right.b, right.c])
    tail = ending("expanded", expanded == true, rng, c=true)
    text = f"{math(f'{_product(u, v)} = {expanded}')}, {tail}."
    yield ExtraStep.check("expand", 2, text, expanded == true, focus < 3)
    fits = (p * q, p + q) == (stated.c, stated.b)
    tail = ending("pair", fits, rng, c=stated.c, b=stated.b)
    text = f"{math(f'{p} * {signed(q)} = {p * q}')} and {math(f'{p} + {signed(q)} = {p + q}')}, {tail}."
    yield ExtraStep.check("pair", 1, text, fits, kind == ErrorKind.SLIP)
    is_read = (stated.b, stated.c) == (right.b, right.c)
    tail = "as used" if is_read else f"not {stated.c} and {stated.b}"
    text = f"the problem has constant {right.c} and middle number {right.b}, {tail}."
    yield ExtraStep.check("reread", 0, text, is_read, kind == ErrorKind.MISREAD)


def _redundant(
    solutions: Sequence[_Solution], right: _Solution, equation: str, style: Style, rng: random.Random
) -> Iterator[ExtraStep]:
    restated = rng.choice(["We want to solve {e}.", "The equation is {e}.", "We are given {e}."]).format(e=equation)
    yield ExtraStep("restating", -1, [restated] * 2)
    degree = rng.choice(["A quadratic has two roots at most.", "This is an equation of degree 2."])
    yield ExtraStep("aside", -1, [degree] * 2)
    pairs = [f"As said, the numbers are {solution.pair[0]} and {solution.pair[1]}." for solution in solutions]
    yield ExtraStep("restating", 1, pairs)
    turned = [style.math(f"{_product(*reversed(solution.factors))} = 0") for solution in solutions]
    yield ExtraStep("restating", 2, [f"The same may be written {text}." for text in turned])
    c, factor = abs(right.c), rng.randint(2, 9)
    yield ExtraStep("aside", -1, [f"By the way, {style.math(f'{c} + {factor} = {c + factor}')}."] * 2)
