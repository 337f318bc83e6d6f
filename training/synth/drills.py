"""Drills: short traces of unrelated equations, each either right or wrong, written as in real solutions.

The text of an equation is generated together with its value, so its label is exact by construction. No equation
depends on an earlier one, so every step of a drill is labelled.
"""

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import comb, factorial, gcd, lcm

from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace

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

WRONG = 0.5
"""The default share of wrong equations."""

Equation = tuple[str, str, str]
"""A left side, its correct value, and a wrong one."""


def generate(seed: int, size: int, wrong: float = WRONG) -> Iterator[Trace]:
    """Yield `size` drills of 1 to 6 equations each. On average, the fraction `wrong` of the equations is wrong.
    Drill k depends only on `seed`, `wrong` and k."""
    for number in range(size):
        rng = random.Random(f"drill:{seed}:{number}")
        latex = rng.random() < 0.6
        steps = tuple(_step(latex, wrong, rng) for _ in range(rng.randint(1, 6)))
        yield Trace(f"drill-{seed}-{number}", rng.choice(_PROBLEMS), steps)


def _step(latex: bool, share: float, rng: random.Random) -> Step:
    left, right, wrong = rng.choice(_KINDS)(latex, rng)
    is_wrong = rng.random() < share
    text = f"{left} = {wrong if is_wrong else right}"
    text = f"${text}$" if latex else text
    return Step((rng.choice(_FRAMES).format(text),), Label.NEG if is_wrong else Label.POS)


def _near(value: int, rng: random.Random) -> int:
    """Return a wrong value as a slip would produce it: a nearby number, one wrong digit, or the wrong sign."""
    ways = [value + rng.choice([-1, 1]), value + rng.choice([-10, 10]), value + rng.randint(-9, 9), -value]
    if abs(value) > 9:
        text = str(abs(value))
        place = rng.randrange(len(text))
        digit = rng.choice([d for d in "123456789" if d != text[place]])
        ways += [int(text[:place] + digit + text[place + 1 :]) * (-1 if value < 0 else 1)] * 2
    wrong = [way for way in ways if way != value]
    return rng.choice(wrong or [value + 1])


def _integer(left: str, value: int, rng: random.Random) -> Equation:
    return left, str(value), str(_near(value, rng))


def _size(rng: random.Random) -> int:
    return rng.randint(0, rng.choice([9, 9, 20, 20, 99, 99, 999]))


def _signed(rng: random.Random) -> int:
    return _size(rng) * rng.choice([1, 1, 1, -1])


def _in_brackets(value: int) -> str:
    return f"({value})" if value < 0 else str(value)


def _sum(latex: bool, rng: random.Random) -> Equation:
    values = [_signed(rng) for _ in range(rng.choice([2, 2, 2, 3, 4]))]
    text, total = str(values[0]), values[0]
    for value in values[1:]:
        sign = rng.choice("+-")
        text += f" {sign} {_in_brackets(value)}"
        total += value if sign == "+" else -value
    return _integer(text, total, rng)


def _product(latex: bool, rng: random.Random) -> Equation:
    a, b = _signed(rng), rng.choice([1, 1, 1, -1]) * rng.randint(0, 12)
    if rng.random() < 0.5:
        a, b = b, a
    return _integer(f"{a} {rng.choice(_TIMES[latex])} {_in_brackets(b)}", a * b, rng)


def _quotient(latex: bool, rng: random.Random) -> Equation:
    b, value = rng.randint(1, 25), _size(rng)
    shape = rng.choice([r"\frac{%d}{%d}", "%d/%d", r"%d \div %d"] if latex else ["%d/%d", "%d / %d", "%d ÷ %d"])
    return _integer(shape % (b * value, b), value, rng)


def _power(latex: bool, rng: random.Random) -> Equation:
    base, exponent = rng.randint(-12, 25), 2
    if abs(base) < 7:
        exponent = rng.randint(2, 4)
    text = (
        f"{_in_brackets(base)}^{{{exponent}}}"
        if latex and rng.random() < 0.3
        else f"{_in_brackets(base)}^{exponent}"
    )
    return _integer(text, base**exponent, rng)


def _root(latex: bool, rng: random.Random) -> Equation:
    value = rng.randint(1, 30)
    return _integer(f"\\sqrt{{{value**2}}}" if latex else f"sqrt({value**2})", value, rng)


def _mixed(latex: bool, rng: random.Random) -> Equation:
    a, b, c = rng.randint(1, 30), rng.randint(2, 12), rng.randint(2, 12)
    times = rng.choice(_TIMES[latex])
    left, value = rng.choice([
        (f"{a} + {b} {times} {c}", a + b * c), (f"{b} {times} {c} - {a}", b * c - a),
        (f"{b}({a} + {c})", b * (a + c)), (f"({a} - {c}) {times} {b}", (a - c) * b),
        (f"{b}({a}) + {c}", b * a + c), (f"{b}({c})^2", b * c * c),
    ])  # fmt: skip
    return _integer(left, value, rng)


def _chain(latex: bool, rng: random.Random) -> Equation:
    """Generate a product plus a number, calculated in two steps. The wrong version has a slip in either step."""
    a, b, c = rng.randint(2, 20), rng.randint(2, 12), rng.randint(1, 60)
    times = rng.choice(_TIMES[latex])
    product = a * b
    slip = _near(product, rng)
    right = f"{product} + {c} = {product + c}"
    wrong = rng.choice([f"{slip} + {c} = {slip + c}", f"{product} + {c} = {_near(product + c, rng)}"])
    return f"{a} {times} {b} + {c}", right, wrong


def _written(value: Fraction, latex: bool) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    top = abs(value.numerator)
    return f"{sign}\\frac{{{top}}}{{{value.denominator}}}" if latex else f"{sign}{top}/{value.denominator}"


def _fraction(latex: bool, rng: random.Random) -> Equation:
    a, b = (Fraction(rng.randint(1, 12), rng.randint(1, 12)) for _ in range(2))
    sign = rng.choice("+-*")
    value = {"+": a + b, "-": a - b, "*": a * b}[sign]
    added = Fraction(a.numerator + b.numerator, a.denominator + b.denominator)
    wrongs = [
        value + Fraction(1, value.denominator),
        -value,
        added,
        Fraction(_near(value.numerator, rng), value.denominator),
    ]
    wrong = rng.choice([w for w in wrongs if w != value] or [value + 1])
    shown = rng.choice(_TIMES[latex]) if sign == "*" else sign
    return f"{_written(a, latex)} {shown} {_written(b, latex)}", _written(value, latex), _written(wrong, latex)


def _reduced(latex: bool, rng: random.Random) -> Equation:
    value, factor = Fraction(rng.randint(1, 15), rng.randint(2, 15)), rng.randint(2, 12)
    top, bottom = value.numerator * factor, value.denominator * factor
    left = f"\\frac{{{top}}}{{{bottom}}}" if latex else f"{top}/{bottom}"
    wrong = Fraction(_near(value.numerator, rng), value.denominator)
    return left, _written(value, latex), _written(wrong, latex)


def _decimal(latex: bool, rng: random.Random) -> Equation:
    a, b = rng.randint(1, 999), rng.randint(1, 99)
    if rng.random() < 0.5:
        value, left = a * 10 + b, f"{a / 10:g} + {b / 100:g}"
        return left, f"{value / 100:g}", f"{_near(value, rng) / 100:g}"
    value, left = a * (b % 12 + 1), f"{a / 100:g} {rng.choice(_TIMES[latex])} {b % 12 + 1}"
    return left, f"{value / 100:g}", f"{_near(value, rng) / 100:g}"


def _percent(latex: bool, rng: random.Random) -> Equation:
    share, whole = rng.choice([5, 10, 20, 25, 30, 40, 50, 60, 75, 80]), 20 * rng.randint(1, 40)
    left = f"{share}\\% \\text{{ of }} {whole}" if latex else f"{share}% of {whole}"
    return _integer(left, share * whole // 100, rng)


def _term(value: int, name: str) -> str:
    if not name:
        return str(value)
    return {1: name, -1: f"-{name}"}.get(value, f"{value}{name}")


def _poly(coefficients: dict[str, int]) -> str:
    text = ""
    for name, value in coefficients.items():
        if value:
            term = _term(abs(value), name)
            text += (f" {'-' if value < 0 else '+'} {term}") if text else (f"-{term}" if value < 0 else term)
    return text or "0"


def _expand(latex: bool, rng: random.Random) -> Equation:
    """Generate a product to multiply out, either of two brackets or of a number and a bracket."""
    x = rng.choice("xxxyntab")
    a, b = rng.choice([-1, 1]) * rng.randint(1, 12), rng.choice([-1, 1]) * rng.randint(1, 12)
    if rng.random() < 0.5:
        right = {f"{x}^2": 1, x: a + b, "": a * b}
        left = f"({_poly({x: 1, '': a})})({_poly({x: 1, '': b})})"
        if a == b:
            left = f"({_poly({x: 1, '': a})})^2"
    else:
        c = rng.randint(1, 9)
        right = {x: a * c, "": a * b}
        left = f"{_term(a, '')}({_poly({x: c, '': b})})"
    return left, _poly(right), _poly(_slipped(right, rng))


def _slipped(right: dict[str, int], rng: random.Random) -> dict[str, int]:
    name = rng.choice([key for key, value in right.items() if value] or list(right))
    value = right[name]
    changed = rng.choice([-value, 0, _near(value, rng), _near(value, rng)])
    return right | {name: changed if changed != value else value + 1}


def _collect(latex: bool, rng: random.Random) -> Equation:
    x = rng.choice("xxxyntab")
    a, b, c, d = (rng.choice([-1, 1]) * rng.randint(1, 20) for _ in range(4))
    right = {x: a + c, "": b + d}
    left = f"{_poly({x: a, '': b})} {'-' if c < 0 else '+'} {_poly({x: abs(c), '': d})}"
    return left, _poly(right), _poly(_slipped(right, rng))


def _solved(latex: bool, rng: random.Random) -> Equation:
    """Generate a linear equation and its solution. The left side of the result is all the text before the solution,
    such as `3x + 2 = 8, so x`."""
    x, a, value, b = rng.choice("xxxyntab"), rng.randint(2, 12), rng.randint(-12, 12), rng.randint(-30, 30)
    joint = rng.choice(
        [r" \Rightarrow ", r" \implies ", ", so ", "$, so $"] if latex else [", so ", ", then ", " => "]
    )
    return f"{_poly({x: a, '': b})} = {a * value + b}{joint}{x}", str(value), str(_near(value, rng))


def _whole_numbers(latex: bool, rng: random.Random) -> Equation:
    a, b = rng.randint(2, 60), rng.randint(2, 60)
    n = rng.randint(3, 9)
    k = rng.randint(1, 3)
    choose = f"\\binom{{{n}}}{{{k}}}" if latex else f"C({n}, {k})"
    left, value = rng.choice([
        (f"\\gcd({a}, {b})" if latex else f"gcd({a}, {b})", gcd(a, b)),
        (f"\\text{{lcm}}({a}, {b})" if latex else f"lcm({a}, {b})", lcm(a, b)),
        (choose, comb(n, k)), (f"{n % 7 + 1}!", factorial(n % 7 + 1)),
        (f"|{a} - {b}|", abs(a - b)), (f"{a * 7 + n} \\bmod {a}" if latex else f"{a * 7 + n} mod {a}", n % a),
    ])  # fmt: skip
    return _integer(left, value, rng)


_KINDS: tuple[Callable[[bool, random.Random], Equation], ...] = (
    _sum, _sum, _product, _product, _quotient, _power, _root, _mixed, _mixed, _chain, _fraction, _reduced, _decimal,
    _percent, _expand, _expand, _collect, _solved, _solved, _whole_numbers,
)  # fmt: skip
