"""The expressions: numbers, brackets, powers and fractions, worked out part by part in the right order."""

from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Given, Mistake, Op, Story, Verify

_ASKS = (
    "Evaluate [{e}].",
    "Compute [{e}].",
    "What is the value of [{e}]?",
    "Find the value of [{e}].",
    "Calculate [{e}].",
    "Simplify [{e}].",
    "What is [{e}]?",
)
_OUTLINES = (
    "We work from the inside out.",
    "We follow the order of operations.",
    "Brackets come first, then powers, then products and quotients, then sums.",
    "Go through the expression part by part.",
)
_LEFT = (
    "From left to right, {eq}.",
    "Working from left to right: {eq}.",
    "We start at the left: {eq}.",
    "Going from left to right we get {eq}.",
)


def _expression(
    expression: str,
    givens: dict[str, Given],
    ops: tuple[Op, ...],
    verifies: tuple[Verify, ...] = (),
    whole: bool = True,
    fits: tuple[str, ...] = (),
    seeds: dict[str, Given] | None = None,
) -> Story:
    texts = tuple(ask.replace("{e}", expression) for ask in _ASKS)
    return Story(
        texts,
        givens,
        ops,
        verifies=verifies,
        fits=fits,
        largest=4000,
        smallest=-4000,
        whole=whole,
        outlines=_OUTLINES,
        reads=False,
        seeds=seeds or {},
    )


def _left_with(rest: str) -> tuple[str, ...]:
    """Templates of a step that works out a part and says what is then left of the expression."""
    return (
        f"{{eq}}, which leaves [{rest}].",
        f"Since {{eq}}, we have [{rest}].",
        f"We compute {{eq}} and are left with [{rest}].",
        f"As {{eq}}, the expression becomes [{rest}].",
        f"With {{eq}}, what remains is [{rest}].",
        f"{{What}} is {{eq}}, so it becomes [{rest}].",
    )


_LAST = (
    "The result is {eq}.",
    "Finally, {eq}.",
    "Now {eq}.",
    "It remains to compute {eq}.",
    "This equals {eq}.",
    "In the end, {eq}.",
)
_SMALL = Given(range(2, 13), "as a factor")
_TERM = Given(range(5, 60), "as a term")

_ORDER = _expression(
    "{a} + {b} * {c} - {d} * {e}",
    {"a": _TERM, "b": _SMALL, "c": Given(range(3, 15), "as second factor"), "d": _SMALL, "e": _SMALL},
    (
        Op(
            "s",
            "a + b * c",
            "the first part",
            _left_with("{s} - {d} * {e}"),
            (Mistake(FORMULA, "(a + b) * c", tuple(f"{says[:-1]}, and minus [{{d}} * {{e}}]." for says in _LEFT)),),
        ),
        Op("p", "d * e", "the second product", _left_with("{s} - {p}")),
        Op("t", "s - p", "the value", _LAST, (Mistake(FORMULA, "(s - d) * e", _LEFT),)),
    ),
    (Verify((Op("p", "d * e"), Op("x", "answer + p"), Op("y", "x - a"), Op("z", "y / b")), "z", "c"),),
)

_POWER = _expression(
    "{a} * ({b} - {c})^{n} + {d}",
    {
        "a": Given(range(2, 8), "as factor"),
        "b": Given(range(2, 13), "as first term"),
        "c": Given(range(2, 13), "as second term"),
        "n": Given((2, 2, 3), "as exponent", fixed=True),
        "d": _TERM,
    },
    (
        Op("q", "b - c", "the bracket", _left_with("{a} * {(q)}^{n} + {d}")),
        Op(
            "r",
            "q ** n",
            "the power",
            _left_with("{a} * {(r)} + {d}"),
            (
                Mistake(FORMULA, "q * n"),
                Mistake(SIGN, "-(q ** n)"),
                Mistake(FORMULA, "b ** n - c ** n"),
            ),
        ),
        Op(
            "u",
            "a * r",
            "the product",
            _left_with("{u} + {d}"),
            (Mistake(FORMULA, "(a * q) ** n"), Mistake(SIGN, "-a * r")),
        ),
        Op("v", "u + d", "the value", _LAST),
    ),
    (Verify((Op("w", "b - c"), Op("r", "w ** n"), Op("x", "answer - d"), Op("z", "x / r")), "z", "a"),),
    fits=("b != c", "abs(b - c) != 1"),
)

_BRACKET = _expression(
    "{d} * ({a} - ({b} - {c})) - {g}",
    {
        "d": Given(range(2, 10), "as factor"),
        "a": Given(range(10, 50), "as first term"),
        "b": Given(range(5, 40), "as second term"),
        "c": Given(range(2, 30), "as third term"),
        "g": _TERM,
    },
    (
        Op(
            "e",
            "a - b + c",
            "the bracket",
            (
                "Removing the inner brackets gives {eq}, which leaves [{d} * {(e)} - {g}].",
                "Without the inner brackets, {eq}, so we have [{d} * {(e)} - {g}].",
                "The minus turns both signs: {eq}, which makes it [{d} * {(e)} - {g}].",
                "Inside we have {eq}. What remains is [{d} * {(e)} - {g}].",
            ),
            (
                Mistake(
                    SIGN,
                    "a - b - c",
                    (
                        "Removing the inner brackets gives {eq}, which leaves [{d} * {(e)} - {g}].",
                        "Without the inner brackets, {eq}, so we have [{d} * {(e)} - {g}].",
                        "Dropping the brackets: {eq}, which makes it [{d} * {(e)} - {g}].",
                        "Inside we have {eq}. What remains is [{d} * {(e)} - {g}].",
                    ),
                ),
            ),
        ),
        Op("f", "d * e", "the product", _left_with("{f} - {g}"), (Mistake(INFERENCE, "d * a - b + c"),)),
        Op("h", "f - g", "the value", _LAST, (Mistake(FORMULA, "d * (e - g)"),)),
    ),
    (Verify((Op("x", "answer + g"), Op("y", "x / d"), Op("z", "y + b"), Op("w", "z - c")), "w", "a"),),
    fits=("e != 0",),
)

_NEGATIVE = _expression(
    "-{a} * {b} - (-{c}) * {d} + {e}",
    {"a": _SMALL, "b": _SMALL, "c": _SMALL, "d": _SMALL, "e": _TERM},
    (
        Op(
            "p",
            "-a * b",
            "the first product",
            _left_with("{p} - (-{c}) * {d} + {e}"),
            (Mistake(SIGN, "a * b"),),
        ),
        Op(
            "q",
            "-c * d",
            "the second product",
            _left_with("{p} - {(q)} + {e}"),
            (Mistake(SIGN, "c * d"),),
        ),
        Op("r", "p - q", "the difference", _left_with("{r} + {e}"), (Mistake(SIGN, "p + q"),)),
        Op("s", "r + e", "the value", _LAST),
    ),
    (Verify((Op("x", "answer - e"), Op("q", "-c * d"), Op("p", "x + q"), Op("z", "-p / a")), "z", "b"),),
)

_FRACTION = _expression(
    "({a}/{b} + {c}/{d}) * {e}",
    {
        "a": Given(range(1, 8), "as first numerator"),
        "b": Given((2, 3, 4, 5, 6, 8, 9), "as first denominator"),
        "c": Given(range(1, 8), "as second numerator"),
        "d": Given((2, 3, 4, 5, 6, 7, 10, 12), "as second denominator"),
        "e": Given(range(2, 25), "as factor"),
    },
    (
        Op(
            "l",
            "lcm(b, d)",
            "the common denominator",
            (
                "The common denominator is {eq}.",
                "The least common denominator is {eq}.",
                "As common denominator we take {eq}.",
                "Bring both fractions to the denominator {eq}.",
            ),
            (Mistake(FORMULA, "b + d"),),
        ),
        Op(
            "n",
            "a * l / b + c * l / d",
            "the numerator of the sum",
            mistakes=(
                Mistake(FORMULA, "a + c"),
                Mistake(CASE, "a * l / b + c"),
            ),
        ),
        Op("s", "n / l", "the sum of the fractions", mistakes=(Mistake(INFERENCE, "(a + c) / (b + d)"),)),
        Op("t", "s * e", "the value", _LAST),
    ),
    (Verify((Op("x", "answer / e"), Op("z", "x - c / d"), Op("w", "z * b")), "w", "a"),),
    whole=False,
    fits=("a < b", "c < d", "gcd(a, b) == 1", "gcd(c, d) == 1", "b != d"),
)

_ABSOLUTE = _expression(
    "|{a} - {b}| + {c}^2 - {d} * {e}",
    {
        "a": Given(range(2, 30), "as first term"),
        "b": Given(range(10, 60), "as second term"),
        "c": Given(range(3, 13), "as base"),
        "d": _SMALL,
        "e": _SMALL,
    },
    (
        Op(
            "k",
            "abs(a - b)",
            "the absolute value",
            _left_with("{k} + {c}^2 - {d} * {e}"),
            (Mistake(SIGN, "a - b"), Mistake(FORMULA, "a + b")),
        ),
        Op("q", "c ** 2", "the square", _left_with("{k} + {q} - {d} * {e}"), (Mistake(FORMULA, "c * 2"),)),
        Op("p", "d * e", "the product", _left_with("{k} + {q} - {p}")),
        Op("t", "k + q - p", "the value", _LAST, (Mistake(SIGN, "k - q - p"),)),
    ),
    (
        Verify(
            (Op("k", "abs(a - b)"), Op("q", "c ** 2"), Op("p", "k + q - answer"), Op("z", "p / d")),
            "z",
            "e",
        ),
    ),
    fits=("a < b",),
)

_QUOTIENT = _expression(
    "({a} + {b}) / {c} * {d} - {e}^2",
    {
        "a": Given((), "as first term", made="c * k - b"),
        "b": Given(range(2, 40), "as second term"),
        "c": Given(range(2, 13), "as divisor"),
        "d": _SMALL,
        "e": Given(range(2, 10), "as base"),
    },
    (
        Op("s", "a + b", "the bracket", _left_with("{s} / {c} * {d} - {e}^2")),
        Op(
            "u",
            "s / c * d",
            "the first part",
            _left_with("{u} - {e}^2"),
            (Mistake(FORMULA, "s / (c * d)"), Mistake(FORMULA, "a + b / c * d")),
        ),
        Op("q", "e ** 2", "the square", _left_with("{u} - {q}"), (Mistake(FORMULA, "e * 2"),)),
        Op("v", "u - q", "the value", _LAST, (Mistake(FORMULA, "(u - e) ** 2"),)),
    ),
    (
        Verify(
            (Op("q", "e ** 2"), Op("x", "answer + q"), Op("y", "x * c"), Op("z", "y / d"), Op("w", "z - b")),
            "w",
            "a",
        ),
    ),
    fits=("a > 1",),
    seeds={"k": Given(range(3, 20), "")},
)

_OPERATION = Story(
    (
        "For all numbers, let [u @ v = {p}u + {q}v - uv]. What is [{a} @ {b}]?",
        "If [u @ v = {p}u + {q}v - uv], find [{a} @ {b}].",
        "The operation @ is defined by [u @ v = {p}u + {q}v - uv]. Evaluate [{a} @ {b}].",
        "Define [u @ v = {p}u + {q}v - uv] for all integers. Compute [{a} @ {b}].",
    ),
    {
        "p": Given(range(2, 10), "as first factor"),
        "q": Given(range(2, 10), "as second factor"),
        "a": Given(range(2, 15), "as first number"),
        "b": Given(range(2, 15), "as second number"),
    },
    (
        Op("s", "p * a", "the first term"),
        Op("t", "q * b", "the second term"),
        Op("w", "a * b", "the product of the numbers"),
        Op("r", "s + t - w", "the value", _LAST, (Mistake(CASE, "s + t"),)),
    ),
    verifies=(
        Verify(
            (Op("w", "a * b"), Op("x", "answer + w"), Op("s", "p * a"), Op("y", "x - s"), Op("z", "y / b")),
            "z",
            "q",
        ),
    ),
    fits=("a != b", "p != q"),
    smallest=-4000,
    largest=4000,
    reads=False,
)

EXPRESSIONS = (_ORDER, _POWER, _BRACKET, _NEGATIVE, _FRACTION, _ABSOLUTE, _QUOTIENT, _OPERATION)
