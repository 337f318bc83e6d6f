"""A quadratic plan: x^2 + bx + c = 0 solved by factoring, checked by its roots."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stepsight.training.synth.plan import Check, Claims, Filler, Line, Plan
from stepsight.training.synth.plant import MISREAD, SIGN, SLIP
from stepsight.training.synth.style import Style, signed
from stepsight.training.synth.verdict import returns, verdict

_PROBLEMS = (
    "Find the roots of {e}.",
    "Solve {e}.",
    "What are the solutions of {e}?",
    "Find {ask} of {e}.",
    "Let {e}. Find {ask}.",
    "Solve the quadratic equation {e} by factoring.",
    "Determine the solutions of {e}.",
    "For which values of x is {e}?",
    "The equation {e} has two solutions. What is {ask}?",
    "What is {ask} of the equation {e}?",
    "Factor the left side of {e} to find {ask}.",
)
_NEEDS = (
    "We need two numbers with product {c} and sum {b}.",
    "Look for numbers with product {c} and sum {b}.",
    "The numbers must multiply to {c} and add to {b}.",
    "Find two numbers whose product is {c} and whose sum is {b}.",
    "To factor, we look for a pair with product {c} and sum {b}.",
    "Two numbers are wanted that add up to {b} and multiply to {c}.",
)
_PAIRS = (
    "{pq}, and {sum}, so take {p} and {q}.",
    "{p} and {q} work: {pq} and {sum}.",
    "The numbers are {p} and {q}.",
    "Take {p} and {q}.",
    "These are {p} and {q}, since {pq}.",
    "Use {p} and {q}, as {sum}.",
    "Such numbers are {p} and {q}, because {pq} and {sum}.",
    "A pair that fits is {p} and {q}.",
    "Trying divisors of the constant, we find {p} and {q}.",
    "With {p} and {q} we have {pq} and {sum}.",
)
_FACTORS = (
    "So {f}.",
    "It factors as {f}.",
    "Thus {f}.",
    "Factoring gives {f}.",
    "The equation becomes {f}.",
    "We can write this as {f}.",
    "Then {f}.",
)
_ROOTS = (
    "Hence {r} or {s}.",
    "The roots are {r} and {s}.",
    "So {r} or {s}.",
    "This gives {r} and {s}.",
    "One of the factors must be zero, so {r} or {s}.",
    "Setting each factor to zero, we get {r} and {s}.",
    "By the zero product property, {r} or {s}.",
)
_ANSWERS = (
    "The answer is {a}.",
    "So {ask} is {a}.",
    "Answer: {a}.",
    "Therefore {ask} is {a}.",
    "Thus, {ask} is {a}.",
    "The final answer is {a}.",
    "We conclude that {ask} is {a}.",
)
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


def polynomial(b: int, c: int) -> str:
    """x^2 + bx + c with its signs put right."""
    middle = "" if b == 0 else f" {'+' if b > 0 else '-'} {'' if abs(b) == 1 else abs(b)}x"
    return f"x^2{middle} {'+' if c > 0 else '-'} {abs(c)}"


def _factor(p: int) -> str:
    return f"(x {'+' if p > 0 else '-'} {abs(p)})"


@dataclass(frozen=True)
class _Solution:
    """The coefficients as read, the pair found, the pair in the factors, and the roots."""

    b: int
    c: int
    pair: tuple[int, int]
    factors: tuple[int, int]
    roots: tuple[int, int]


def _solve(p: int, q: int) -> _Solution:
    return _Solution(p + q, p * q, (p, q), (p, q), (-p, -q))


def _draw_faulty(right: _Solution, kind: str, line: int, rng: random.Random) -> _Solution:
    """`right` with one error at `line`, carried through the later lines."""
    p, q = right.pair
    if kind == MISREAD:
        return _solve(*rng.choice([(-p, -q), (p, -q), (-p, q), (p + 1, q), (p, q + 1), (p - 1, q)]))
    if kind == SLIP:
        # One of product and sum mostly stays right, so that half of the evidence looks well.
        same_sum = (p + 1, q - 1) if rng.random() < 0.5 else (p - 1, q + 1)
        options = [(-p, -q), same_sum, *_same_product(p * q, {p, q}), (p, -q)]
        u, v = rng.choice(options)
        return _Solution(right.b, right.c, (u, v), (u, v), (-u, -v))
    if line == 2:
        u, v = rng.choice([(-p, -q), (p, -q), (-p, q)])
        return _Solution(right.b, right.c, (p, q), (u, v), (-u, -v))
    u, v = rng.choice([(p, q), (-p, q), (p, -q)])
    return _Solution(right.b, right.c, (p, q), (p, q), (u, v))


def _same_product(c: int, used: set[int]) -> list[tuple[int, int]]:
    found = [(d, c // d) for d in range(-15, 16) if d and c % d == 0 and d not in used and abs(c // d) <= 30]
    return found[:3] + found[-3:]


@dataclass(frozen=True)
class _Telling:
    style: Style
    right: _Solution
    stated: _Solution
    ask: str | None
    templates: tuple[str, ...]

    def texts(self, solution: _Solution) -> list[str]:
        """The five lines: what is needed, the pair, the factors, the roots, the answer."""
        p, q = solution.pair
        math = self.style.math
        fields = {
            "b": math(str(solution.b)),
            "c": math(str(solution.c)),
            "p": math(str(p)),
            "q": math(str(q)),
            # Where the pair was found wrongly, it is the claim that is false, not the equation's other side.
            "pq": math(f"{p} * {signed(q)} = {solution.c}"),
            "sum": math(f"{p} + {signed(q)} = {solution.b}"),
            "f": math("".join(_factor(u) for u in solution.factors) + " = 0"),
            "r": math(f"x = {solution.roots[0]}"),
            "s": math(f"x = {solution.roots[1]}"),
            "ask": self.ask or "the pair of roots",
            "a": self.style.boxed(self.answer(solution)),
        }
        return [template.format(**fields) for template in self.templates]

    def claims(self, solution: _Solution) -> list[Claims]:
        """What each of the five lines says of the quantities in `_RELATIONS`."""
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

    def redo(self, line: int, focus: int) -> str:
        """The right lines from the focus to `line`, in brief."""
        p, q = self.right.pair
        math = self.style.math
        parts = [
            f"the product is {self.right.c} and the sum {self.right.b}",
            f"the numbers are {p} and {q}",
            math("".join(_factor(u) for u in self.right.factors) + " = 0"),
            f"the roots are {self.right.roots[0]} and {self.right.roots[1]}",
            f"the answer is {self.answer(self.right)}",
        ]
        shown = parts[focus : line + 1]
        return "So " + ", and ".join(shown[-2:]) + "."


def plan_quadratic(wrong: bool, rng: random.Random, larger: bool = False) -> Plan:
    """Draw a plan of a quadratic with two different roots, neither of them 0."""
    right, faulty, kind, focus = _draw(rng, larger)
    stated = faulty if wrong else right
    style = Style.draw(rng)
    template = rng.choice(_PROBLEMS)
    ask = rng.choice(list(_ASKS)) if "{ask}" in template else None
    templates = tuple(rng.choice(options) for options in (_NEEDS, _PAIRS, _FACTORS, _ROOTS, _ANSWERS))
    telling = _Telling(style, right, stated, ask, templates)
    equation = style.math(f"{polynomial(right.b, right.c)} = 0")
    has_answer = ask is not None or rng.random() < 0.5
    count = 5 if has_answer else 4
    said = [telling.texts(stated), telling.texts(right), telling.claims(stated), telling.claims(right)]
    lines = [Line(*parts) for parts in zip(*said, strict=True)][:count]
    checks = _checks(right, stated, kind, focus, style, rng)
    return Plan(
        problem=template.format(e=equation, ask=ask),
        lines=tuple(lines),
        focus=focus,
        kind=kind,
        wrong=wrong,
        checks=tuple(checks),
        fillers=tuple(_fillers(right, stated, equation, style, rng)),
        redo=lambda line: telling.redo(line, focus),
        givens={"b": str(right.b), "c": str(right.c)},
        relations=_RELATIONS | {"answer": _ANSWERED[ask] if ask else "c"},
    )


def _draw(rng: random.Random, larger: bool) -> tuple[_Solution, _Solution, str, int]:
    low, high = (13, 24) if larger else (1, 12)
    while True:
        p, q = (rng.choice([-1, 1]) * rng.randint(low, high) for _ in range(2))
        kind = rng.choices((SLIP, MISREAD, SIGN), [0.5, 0.2, 0.3])[0]
        focus = {SLIP: 1, MISREAD: 0}.get(kind, rng.choice([2, 3, 3]))
        right = _solve(p, q)
        faulty = _draw_faulty(right, kind, focus, rng)
        distinct = all(len({abs(u) for u in s.roots}) == 2 and 0 not in s.roots for s in (right, faulty))
        if distinct and right.b and faulty.b and set(faulty.roots) != set(right.roots):
            return right, faulty, kind, focus


def _checks(
    right: _Solution, stated: _Solution, kind: str, focus: int, style: Style, rng: random.Random
) -> Iterator[Check]:
    wrong = stated != right

    def check(name: str, target: int, text: str, passes: bool, settles: bool = True) -> Check:
        return Check(name, target, text, passes, settles and passes != wrong)

    r, s = stated.roots
    p, q = stated.pair
    product, total = style.math(f"{r} * {signed(s)} = {r * s}"), style.math(f"{r} + {signed(s)} = {r + s}")
    by_product, by_sum = verdict_of(r * s, right.c, rng), verdict_of(r + s, -right.b, rng)
    yield check("product of roots", 3, f"the product of the roots is {product}, {by_product}.", r * s == right.c)
    yield check("sum of roots", 3, f"the sum of the roots is {total}, {by_sum}.", r + s == -right.b)
    both = (r * s, r + s) == (right.c, -right.b)
    yield check("sum and product", 3, f"{product}, {by_product}, and {total}, {by_sum}.", both)
    yield _substitution(right, rng.choice(stated.roots), style, check, rng)
    u, v = stated.factors
    factors, spread = f"{_factor(u)}{_factor(v)}", polynomial(u + v, u * v)
    given = polynomial(right.b, right.c)
    tail = rng.choice(_EXPANDED)[spread != given].format(e=given)
    same = spread == given
    sees = focus < 3
    yield check("expand", 2, f"{style.math(f'{factors} = {spread}')}, {tail}.", same, sees)
    text = f"{style.math(f'{p} * {signed(q)} = {p * q}')} and {style.math(f'{p} + {signed(q)} = {p + q}')}, "
    fits = (p * q, p + q) == (stated.c, stated.b)
    yield check(
        "pair", 1, text + rng.choice(_FITS)[not fits].format(c=stated.c, b=stated.b) + ".", fits, kind == SLIP
    )
    read = (stated.b, stated.c) == (right.b, right.c)
    text = f"the problem has constant {right.c} and middle number {right.b}, {'as used' if read else 'not '}"
    text += "" if read else f"{stated.c} and {stated.b}"
    yield check("reread", 0, text + ".", read, kind == MISREAD)


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


def verdict_of(found: int, needed: int, rng: random.Random) -> str:
    words = returns if rng.random() < 0.5 else verdict
    if words is verdict:
        return "as needed" if found == needed else f"not {needed}"
    return returns(found, needed, rng)


def _substitution(
    right: _Solution, root: int, style: Style, check: Callable[..., Check], rng: random.Random
) -> Check:
    square, middle = root * root, right.b * root
    value = square + middle + right.c
    terms = f"{square} {'+' if middle >= 0 else '-'} {abs(middle)} {'+' if right.c >= 0 else '-'} {abs(right.c)}"
    tail = rng.choice([("as it must", "not 0"), ("so it is a root", "so it is no root")])[value != 0]
    text = f"{style.math(f'x = {root}')} gives {style.math(f'{terms} = {value}')}, {tail}."
    return check("substitute", 3, text, value == 0)


def _fillers(
    right: _Solution, stated: _Solution, equation: str, style: Style, rng: random.Random
) -> Iterator[Filler]:
    restate = rng.choice(["We want to solve {e}.", "The equation is {e}.", "We are given {e}."]).format(e=equation)
    yield Filler(-1, "restating", restate, restate)
    degree = rng.choice(["A quadratic has two roots at most.", "This is an equation of degree 2."])
    yield Filler(-1, "aside", degree, degree)
    pairs = [f"As said, the numbers are {s.pair[0]} and {s.pair[1]}." for s in (stated, right)]
    yield Filler(1, "restating", *pairs)
    turned = [style.math("".join(_factor(u) for u in reversed(s.factors)) + " = 0") for s in (stated, right)]
    yield Filler(2, "restating", *(f"The same may be written {text}." for text in turned))
    aside = rng.randint(2, 9)
    text = f"By the way, {style.math(f'{abs(right.c)} + {aside} = {abs(right.c) + aside}')}."
    yield Filler(-1, "aside", text, text)
