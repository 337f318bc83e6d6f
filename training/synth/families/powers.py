"""Powers: their rules, roots, logarithms in whole numbers, and what doubles again and again."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_BASE = Given((2, 2, 2, 3, 3, 4, 5), "as base")
_VALUE = (
    "So the value is {eq}.",
    "That is {eq}.",
    "Now {eq}.",
    "Evaluating the power, {eq}.",
    "{What} is {eq}.",
)
_TIMES = (
    Mistake(
        FORMULA,
        "a * f",
        (
            "So the value is [{a} * {f} = {v}].",
            "Multiply base and exponent: [{a} * {f} = {v}].",
            "[{a}^{f}] is [{a} * {f} = {v}].",
        ),
    ),
)

_QUOTIENT = Story(
    (
        "Evaluate [{a}^{m} * {a}^{n} / {a}^{k}].",
        "What is the value of [{a}^{m} * {a}^{n} / {a}^{k}]?",
        "Simplify [{a}^{m} * {a}^{n}], divide by [{a}^{k}] and give the result as a whole number.",
        "Compute the product of [{a}^{m}] and [{a}^{n}], divided by [{a}^{k}].",
    ),
    {
        "a": _BASE,
        "m": Given(range(3, 12), "as first exponent", fixed=True),
        "n": Given(range(2, 12), "as second exponent", fixed=True),
        "k": Given(range(4, 20), "as exponent of the divisor", fixed=True),
    },
    (
        Op(
            "e",
            "m + n",
            "the exponent of the product",
            (
                "Multiplying powers of the same base adds the exponents: {eq}.",
                "The exponents add: {eq}.",
                "The product has the exponent {eq}.",
                "Add the exponents of the product: {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "m * n",
                    (
                        "Multiplying powers multiplies the exponents: {eq}.",
                        "The exponents multiply: {eq}.",
                        "The product has the exponent {eq}.",
                    ),
                ),
            ),
        ),
        Op(
            "f",
            "e - k",
            "the exponent of the quotient",
            (
                "Dividing subtracts the exponents: {eq}.",
                "The quotient has the exponent {eq}.",
                "For the division, take the exponents apart: {eq}.",
                "Subtract the exponent of the divisor: {eq}.",
            ),
        ),
        Op("v", "a ** f", "the value", _VALUE, _TIMES),
    ),
    {},
    (
        Verify(
            (Op("l", "log(a, answer)"), Op("o", "l + k"), Op("p", "o - n")),
            "p",
            "m",
            "substitute",
        ),
    ),
    fits=("m + n > k", "f < 7"),
    largest=20000,
    outlines=("We use the rules for exponents.", "First find the exponent.", "All powers have the same base."),
)

_NESTED = Story(
    (
        "Evaluate [({a}^{m})^{n} / {a}^{k}].",
        "What is [({a}^{m})^{n} / {a}^{k}] as a whole number?",
        "The number [{a}^{m}] is raised to the power {n} and divided by [{a}^{k}]. What results?",
        "Find the value of [({a}^{m})^{n}] divided by [{a}^{k}].",
    ),
    {
        "a": _BASE,
        "m": Given(range(2, 8), "as inner exponent", fixed=True),
        "n": Given(range(2, 6), "as outer exponent", fixed=True),
        "k": Given(range(3, 24), "as exponent of the divisor", fixed=True),
    },
    (
        Op(
            "e",
            "m * n",
            "the exponent of the power",
            (
                "A power of a power multiplies the exponents: {eq}.",
                "The exponents multiply: {eq}.",
                "The numerator has the exponent {eq}.",
                "First, the nested power has the exponent {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "m + n",
                    (
                        "A power of a power adds the exponents: {eq}.",
                        "The exponents add: {eq}.",
                        "The numerator has the exponent {eq}.",
                    ),
                ),
            ),
        ),
        Op(
            "f",
            "e - k",
            "the exponent of the quotient",
            (
                "Dividing subtracts the exponents: {eq}.",
                "The quotient has the exponent {eq}.",
                "Subtract the exponent of the divisor: {eq}.",
                "What remains is the exponent {eq}.",
            ),
        ),
        Op("v", "a ** f", "the value", _VALUE, _TIMES),
    ),
    {},
    (Verify((Op("l", "log(a, answer)"), Op("o", "l + k"), Op("p", "o / n")), "p", "m", "substitute"),),
    fits=("m * n > k", "f < 7"),
    largest=20000,
    outlines=("We use the rules for exponents.", "First find the exponent.", "All powers have the same base."),
)

_ROOTS = Story(
    (
        "Evaluate [sqrt({a}) + {c} * sqrt({b})].",
        "What is [sqrt({a}) + {c} * sqrt({b})]?",
        "Compute [{c} * sqrt({b})] and add [sqrt({a})].",
        "To the square root of {a}, add {c} times the square root of {b}. What is the result?",
    ),
    {
        "a": Given((), "under the first root", made="h * h"),
        "b": Given((), "under the second root", made="k * k"),
        "c": Given(range(2, 12), "as factor"),
    },
    (
        Op(
            "r",
            "sqrt(a)",
            "the first root",
            mistakes=(
                Mistake(
                    FORMULA,
                    "a / 2",
                    (
                        "The first root is {eq}.",
                        "The square root of [{a}] is half of it, {eq}.",
                        "[sqrt({a})] is {eq}.",
                    ),
                ),
            ),
        ),
        Op(
            "s",
            "sqrt(b)",
            "the second root",
            mistakes=(
                Mistake(
                    FORMULA,
                    "b / 2",
                    ("The second root is {eq}.", "The square root of [{b}] is half of it, {eq}."),
                ),
            ),
        ),
        Op("t", "c * s", "the second term"),
        Op("v", "r + t", "the value"),
    ),
    {},
    (
        Verify(
            (Op("l", "sqrt(a)"), Op("o", "answer - l"), Op("p", "o / c"), Op("q", "p ** 2")),
            "q",
            "b",
            "square back",
        ),
    ),
    largest=300,
    seeds={"h": Given(range(3, 20), ""), "k": Given(range(3, 20), "")},
)

_DOUBLING = Story(
    (
        "A culture of {n} bacteria doubles every {h} hours. How many bacteria are there after {t} hours?",
        "{name} keeps {n} {thing} that double in number every {h} hours. How many are there after {t} hours?",
        "Every {h} hours the number of {thing} in a pond doubles. At first there are {n}. Find their number {t} "
        "hours "
        "later.",
    ),
    {
        "n": Given(range(3, 40), "at first"),
        "h": Given(range(2, 9), "hours for one doubling"),
        "t": Given((), "hours in all", made="h * k"),
    },
    (
        Op("k", "t / h", "the number of doublings"),
        Op(
            "f",
            "2 ** k",
            "the factor of growth",
            (
                "Doubling [{k}] times is a factor of {eq}.",
                "The number grows by the factor {eq}.",
                "{What} is {eq}.",
                "After [{k}] doublings the factor is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "2 * k",
                    (
                        "Doubling [{k}] times is a factor of {eq}.",
                        "The number grows by the factor {eq}.",
                        "Each doubling counts twice, so the factor is {eq}.",
                    ),
                ),
                Mistake(INFERENCE, "k", ("After [{k}] doublings the factor is {res}.",)),
            ),
        ),
        Op("v", "n * f", "the number in the end"),
    ),
    {"name": NAMES, "thing": ("yeast cells", "algae", "water fleas", "duckweed plants")},
    (Verify((Op("u", "answer / n"), Op("l", "log(2, u)"), Op("w", "l * h")), "w", "t", "divide back"),),
    (Bound("v > n", "the number {v} in the end must exceed the first {n}"),),
    largest=3000,
    seeds={"k": Given(range(2, 7), "", fixed=True)},
)

_LOGARITHM = Story(
    (
        "Solve [{b}^(x - {c}) = {d}].",
        "For which x is [{b}^(x - {c}) = {d}]?",
        "If [{b}^(x - {c}) = {d}], what is x?",
        "Find the value of x such that [{b}^(x - {c}) = {d}].",
    ),
    {
        "b": Given((2, 2, 3, 4, 5, 6, 10), "as base", fixed=True),
        "c": Given(range(2, 30), "taken from x"),
        "d": Given((), "on the right", made="b ** k"),
    },
    (
        Op(
            "e",
            "log(b, d)",
            "the exponent",
            (
                "Since [{b}^{e} = {d}], the exponent is [{e}].",
                "The exponent must be {eq}.",
                "Write [{d}] as [{b}^{e}].",
                "As [{d} = {b}^{e}], compare the exponents: it is [{e}].",
            ),
            (
                Mistake(
                    FORMULA,
                    "d / b",
                    ("The exponent must be {eq}.", "Divide by the base: the exponent is {eq}."),
                ),
            ),
        ),
        Op(
            "x",
            "e + c",
            "[x]",
            ("So {weq}.", "Then {weq}.", "Adding [{c}], {weq}.", "Hence {weq}."),
            (Mistake(SIGN, "e - c", ("So {weq}.", "Bringing [{c}] over, {weq}.")),),
        ),
    ),
    {},
    (Verify((Op("u", "answer - c"), Op("v", "b ** u")), "v", "d", "substitute"),),
    (Bound("x > c", "x = {x} must be above {c}, since the exponent is positive"),),
    smallest=-60,
    outlines=("Write both sides with the same base.", "We compare exponents.", "Find the exponent first."),
    seeds={"k": Given(range(2, 5), "", fixed=True)},
)

_LOGARITHMS = Story(
    (
        "Evaluate [log_{b}({d}) * log_{c}({e})].",
        "What is the product of [log_{b}({d})] and [log_{c}({e})]?",
        "Compute [log_{b}({d})], compute [log_{c}({e})], and multiply the results.",
        "Find the value of [log_{b}({d}) * log_{c}({e})].",
    ),
    {
        "b": Given((2, 3, 4, 5, 10), "as base of the first logarithm", fixed=True),
        "d": Given((), "as number of the first logarithm", made="b ** h"),
        "c": Given((2, 3, 6, 7, 10), "as base of the second logarithm", fixed=True),
        "e": Given((), "as number of the second logarithm", made="c ** k"),
    },
    (
        Op(
            "p",
            "log(b, d)",
            "the first logarithm",
            (
                "Since [{b}^{p} = {d}], the first logarithm is [{p}].",
                "{What} is {eq}.",
                "{eq}, because [{b}^{p} = {d}].",
                "First, {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "d / b",
                    ("The first logarithm is [{d} / {b} = {p}].", "A logarithm divides: [{d} / {b} = {p}]."),
                ),
            ),
        ),
        Op(
            "q",
            "log(c, e)",
            "the second logarithm",
            (
                "Since [{c}^{q} = {e}], the second logarithm is [{q}].",
                "{What} is {eq}.",
                "{eq}, because [{c}^{q} = {e}].",
                "Then {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "e / c",
                    ("The second logarithm is [{e} / {c} = {q}].", "Divide for the second one: [{e} / {c} = {q}]."),
                ),
            ),
        ),
        Op(
            "v",
            "p * q",
            "the product",
            mistakes=(Mistake(INFERENCE, "p + q", ("A product of logarithms is a sum: {eq}.",)),),
        ),
    ),
    {},
    (Verify((Op("u", "log(b, d)"), Op("v", "answer / u"), Op("w", "c ** v")), "w", "e", "raise back"),),
    fits=("d < 1100", "e < 1100"),
    seeds={"h": Given(range(2, 7), "", fixed=True), "k": Given(range(2, 6), "", fixed=True)},
)

_SCIENTIFIC = Story(
    (
        "The product of [{a} * 10^{m}] and [{b} * 10^{n}] is written as [c * 10^k] with c not a multiple of 10. "
        "What is c + k?",
        "Let [({a} * 10^{m})({b} * 10^{n}) = c * 10^k], where 10 does not divide c. Find c + k.",
        "Multiply [{a} * 10^{m}] by [{b} * 10^{n}] and write the result as [c * 10^k], where c does not end in 0. "
        "What is the sum of c and k?",
    ),
    {
        "a": Given((3, 7, 9, 11, 13, 17), "as first factor", fixed=True),
        "m": Given(range(3, 20), "as first exponent of 10"),
        "b": Given((2, 3, 4, 6, 7, 8, 9, 12), "as second factor", fixed=True),
        "n": Given(range(3, 20), "as second exponent of 10"),
    },
    (
        Op("c", "a * b", "the product of the factors"),
        Op(
            "e",
            "m + n",
            "the exponent of 10",
            (
                "The powers of 10 multiply to the exponent {eq}.",
                "Add the exponents of 10: {eq}.",
                "{What} is {eq}.",
                "For the powers of 10 we have {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "m * n",
                    ("Multiply the exponents of 10: {eq}.", "The powers of 10 multiply to the exponent {eq}."),
                ),
            ),
        ),
        Op(
            "v",
            "c + e",
            "the sum",
            mistakes=(Mistake(DROPPED, "e", ("So what is asked for is {res}.", "This gives {res}.")),),
        ),
    ),
    {},
    (Verify((Op("l", "a * b"), Op("o", "answer - l"), Op("p", "o - n")), "p", "m"),),
    fits=("mod(c, 10) > 0",),
)

POWERS = (_QUOTIENT, _NESTED, _ROOTS, _DOUBLING, _LOGARITHM, _LOGARITHMS, _SCIENTIFIC)
