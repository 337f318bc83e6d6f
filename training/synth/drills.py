"""Drills: short traces of unrelated equations, each either right or wrong, written as in real solutions.

The text of an equation is generated together with its value, so its label is exact by construction. No equation
depends on an earlier one, so every step of a drill is labelled.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from stepsight.core.trace import Label, Step, Trace
from stepsight.training.synth.formula import parse_formula
from stepsight.training.synth.style import Style, signed

_PROBLEMS = (
    "Check each calculation.",
    "Which of these equations hold?",
    "Are the following steps right?",
    "Look at each line by itself.",
)
_FRAMES = (
    "{}", "{}", "{}.", "So {}.", "We have {}.", "This gives {}.", "Then {}.", "Thus, {}.", "We get {}.",
    "That means {}.", "Now {}, as we can compute.", "I know that {}.", "Simplifying, we get {}.",
)  # fmt: skip
_TIMES = {True: (r"\cdot", r"\times"), False: ("*", "*", "x", "×")}
_STYLES = {latex: Style(latex, "*", "/") for latex in (True, False)}
_LETTERS = "xxxyntab"

WRONG = 0.5
"""The default share of wrong equations."""

Equation = tuple[str, int] | tuple[str, str, str]
"""A left side and its value, or a left side with a correct and a wrong right side."""


def generate(seed: int, size: int, wrong: float = WRONG) -> Iterator[Trace]:
    """Yield `size` drills of 1 to 6 equations each. On average, the fraction `wrong` of the equations is wrong.
    Drill k depends only on `seed`, `wrong` and k."""
    for number in range(size):
        rng = random.Random(f"drill:{seed}:{number}")
        latex = rng.random() < 0.6
        steps = tuple(_step(latex, wrong, rng) for _ in range(rng.randint(1, 6)))
        yield Trace(f"drill-{seed}-{number}", rng.choice(_PROBLEMS), steps)


def _step(latex: bool, share: float, rng: random.Random) -> Step:
    match rng.choice(_KINDS)(latex, rng):
        case left, int(value):
            right, wrong = str(value), str(_draw_near(value, rng))
        case left, right, wrong:
            pass
    is_wrong = rng.random() < share
    text = f"{left} = {wrong if is_wrong else right}"
    text = f"${text}$" if latex else text
    return Step((rng.choice(_FRAMES).format(text),), Label.NEG if is_wrong else Label.POS)


def _draw_near(value: int, rng: random.Random) -> int:
    """Return a wrong value as a slip would produce it: a nearby number, one wrong digit, or the wrong sign."""
    ways = [value + rng.choice([-1, 1]), value + rng.choice([-10, 10]), value + rng.randint(-9, 9), -value]
    if abs(value) > 9:
        text = str(abs(value))
        place = rng.randrange(len(text))
        digit = rng.choice([d for d in "123456789" if d != text[place]])
        ways += [int(text[:place] + digit + text[place + 1 :]) * (-1 if value < 0 else 1)] * 2
    return rng.choice([way for way in ways if way != value] or [value + 1])


def _size(rng: random.Random) -> int:
    return rng.randint(0, rng.choice([9, 9, 20, 20, 99, 99, 999]))


def _sign(rng: random.Random) -> int:
    return rng.choice([-1, 1])


def _mostly_positive(rng: random.Random) -> int:
    return rng.choice([1, 1, 1, -1])


def _sum(latex: bool, rng: random.Random) -> Equation:
    values = [_size(rng) * _mostly_positive(rng) for _ in range(rng.choice([2, 2, 2, 3, 4]))]
    text, total = str(values[0]), values[0]
    for value in values[1:]:
        sign = rng.choice("+-")
        text += f" {sign} {signed(value)}"
        total += value if sign == "+" else -value
    return text, total


def _product(latex: bool, rng: random.Random) -> Equation:
    a, b = _size(rng) * _mostly_positive(rng), _mostly_positive(rng) * rng.randint(0, 12)
    if rng.random() < 0.5:
        a, b = b, a
    return f"{a} {rng.choice(_TIMES[latex])} {signed(b)}", a * b


def _quotient(latex: bool, rng: random.Random) -> Equation:
    b, value = rng.randint(1, 25), _size(rng)
    shape = rng.choice([r"\frac{%d}{%d}", "%d/%d", r"%d \div %d"] if latex else ["%d/%d", "%d / %d", "%d ÷ %d"])
    return shape % (b * value, b), value


def _power(latex: bool, rng: random.Random) -> Equation:
    base, exponent = rng.randint(-12, 25), 2
    if abs(base) < 7:
        exponent = rng.randint(2, 4)
    braces = latex and rng.random() < 0.3
    return f"{signed(base)}^{f'{{{exponent}}}' if braces else exponent}", base**exponent


def _root(latex: bool, rng: random.Random) -> Equation:
    return _draw_calculation("sqrt(a)", latex, a=rng.randint(1, 30) ** 2)


def _draw_mixed(latex: bool, rng: random.Random) -> Equation:
    a, b, c = rng.randint(1, 30), rng.randint(2, 12), rng.randint(2, 12)
    times = rng.choice(_TIMES[latex])
    return rng.choice([
        (f"{a} + {b} {times} {c}", a + b * c), (f"{b} {times} {c} - {a}", b * c - a),
        (f"{b}({a} + {c})", b * (a + c)), (f"({a} - {c}) {times} {b}", (a - c) * b),
        (f"{b}({a}) + {c}", b * a + c), (f"{b}({c})^2", b * c * c),
    ])  # fmt: skip


def _chain(latex: bool, rng: random.Random) -> Equation:
    """Generate a product plus a number, calculated in two steps. The wrong version has a slip in either step."""
    a, b, c = rng.randint(2, 20), rng.randint(2, 12), rng.randint(1, 60)
    left, product = f"{a} {rng.choice(_TIMES[latex])} {b} + {c}", a * b
    slip = _draw_near(product, rng)
    wrong = rng.choice([f"{slip} + {c} = {slip + c}", f"{product} + {c} = {_draw_near(product + c, rng)}"])
    return left, f"{product} + {c} = {product + c}", wrong


def _fraction(latex: bool, rng: random.Random) -> Equation:
    a, b = (Fraction(rng.randint(1, 12), rng.randint(1, 12)) for _ in range(2))
    sign = rng.choice("+-*")
    value = {"+": a + b, "-": a - b, "*": a * b}[sign]
    added = Fraction(a.numerator + b.numerator, a.denominator + b.denominator)
    near = Fraction(_draw_near(value.numerator, rng), value.denominator)
    wrongs = [value + Fraction(1, value.denominator), -value, added, near]
    wrong = rng.choice([w for w in wrongs if w != value] or [value + 1])
    shown = rng.choice(_TIMES[latex]) if sign == "*" else sign
    written = _STYLES[latex].number
    return f"{written(a)} {shown} {written(b)}", written(value), written(wrong)


def _draw_reduced(latex: bool, rng: random.Random) -> Equation:
    value, factor = Fraction(rng.randint(1, 15), rng.randint(2, 15)), rng.randint(2, 12)
    top, bottom = value.numerator * factor, value.denominator * factor
    left = f"\\frac{{{top}}}{{{bottom}}}" if latex else f"{top}/{bottom}"
    wrong = Fraction(_draw_near(value.numerator, rng), value.denominator)
    return left, _STYLES[latex].number(value), _STYLES[latex].number(wrong)


def _decimal(latex: bool, rng: random.Random) -> Equation:
    a, b = rng.randint(1, 999), rng.randint(1, 99)
    if rng.random() < 0.5:
        value, left = a * 10 + b, f"{a / 10:g} + {b / 100:g}"
    else:
        value, left = a * (b % 12 + 1), f"{a / 100:g} {rng.choice(_TIMES[latex])} {b % 12 + 1}"
    return left, f"{value / 100:g}", f"{_draw_near(value, rng) / 100:g}"


def _percent(latex: bool, rng: random.Random) -> Equation:
    share, whole = rng.choice([5, 10, 20, 25, 30, 40, 50, 60, 75, 80]), 20 * rng.randint(1, 40)
    return _draw_calculation("percent(a, b)", latex, a=share, b=whole)


def _expand(latex: bool, rng: random.Random) -> Equation:
    """Generate a product to multiply out, either of two brackets or of a number and a bracket."""
    x, a, b = rng.choice(_LETTERS), _sign(rng) * rng.randint(1, 12), _sign(rng) * rng.randint(1, 12)
    if rng.random() < 0.5:
        factors = [f"({_polynomial([1, number], x)})" for number in (a, b)]
        return _draw_expanded(f"{factors[0]}^2" if a == b else "".join(factors), [1, a + b, a * b], x, rng)
    c = rng.randint(1, 9)
    return _draw_expanded(f"{a}({_polynomial([c, b], x)})", [a * c, a * b], x, rng)


def _collect(latex: bool, rng: random.Random) -> Equation:
    x = rng.choice(_LETTERS)
    a, b, c, d = (_sign(rng) * rng.randint(1, 20) for _ in range(4))
    left = f"{_polynomial([a, b], x)} {'-' if c < 0 else '+'} {_polynomial([abs(c), d], x)}"
    return _draw_expanded(left, [a + c, b + d], x, rng)


def _draw_expanded(left: str, right: list[int], x: str, rng: random.Random) -> Equation:
    """Return an equation whose right side is a polynomial, one coefficient of which a slip may change."""
    index = rng.choice([i for i, value in enumerate(right) if value] or list(range(len(right))))
    value = right[index]
    changed = rng.choice([-value, 0, _draw_near(value, rng), _draw_near(value, rng)])
    wrong = [*right[:index], changed if changed != value else value + 1, *right[index + 1 :]]
    return left, _polynomial(right, x), _polynomial(wrong, x)


def _polynomial(coefficients: Sequence[int], letter: str) -> str:
    return _STYLES[False].polynomial(coefficients, letter)


def _draw_solved(latex: bool, rng: random.Random) -> Equation:
    """Generate a linear equation and its solution. The left side of the result is all the text before the solution,
    such as `3x + 2 = 8, so x`."""
    x, a, value, b = rng.choice(_LETTERS), rng.randint(2, 12), rng.randint(-12, 12), rng.randint(-30, 30)
    plain = [", so ", ", then ", " => "]
    joint = rng.choice([r" \Rightarrow ", r" \implies ", ", so ", "$, so $"] if latex else plain)
    return f"{_polynomial([a, b], x)} = {a * value + b}{joint}{x}", value


def _whole_numbers(latex: bool, rng: random.Random) -> Equation:
    a, b, n, k = rng.randint(2, 60), rng.randint(2, 60), rng.randint(3, 9), rng.randint(1, 3)
    formulas = ["gcd(a, b)", "lcm(a, b)", "binom(n, k)", "factorial(f)", "abs(a - b)", "mod(m, a)"]
    return _draw_calculation(rng.choice(formulas), latex, a=a, b=b, n=n, k=k, f=n % 7 + 1, m=a * 7 + n)


def _draw_calculation(text: str, latex: bool, **values: int) -> Equation:
    formula = parse_formula(text)
    value = formula.value(values)
    assert value is not None
    return formula.written(values, _STYLES[latex]), int(value)


_KINDS: tuple[Callable[[bool, random.Random], Equation], ...] = (
    _sum, _sum, _product, _product, _quotient, _power, _root, _draw_mixed, _draw_mixed, _chain, _fraction,
    _draw_reduced, _decimal, _percent, _expand, _expand, _collect, _draw_solved, _draw_solved, _whole_numbers,
)  # fmt: skip
