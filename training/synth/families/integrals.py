"""Integrals: antiderivatives of polynomials, areas under graphs, ways from speeds."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_LINEAR = Story(
    (
        "Find the integral of [<a,b>] from [0] to [{p}].",
        "Compute the definite integral of [f(x) = <a,b>] between [x = 0] and [x = {p}].",
        "Integrate [<a,b>] over the interval from [0] to [{p}].",
        "What is the area under the line [y = <a,b>] between [x = 0] and [x = {p}]?",
        "Determine the integral of the function [<a,b>] on [0 <= x <= {p}].",
    ),
    {
        "a": Given(range(2, 15), "as factor of x"),
        "b": Given(range(2, 25), "as constant"),
        "p": Given(range(2, 11), "as upper limit"),
    },
    (
        Op("s", "p ** 2", "the square of the upper limit", mistakes=(Mistake(FORMULA, "2 * p"),)),
        Op(
            "u",
            "a * s / 2",
            "the integral of the first term",
            (
                "An antiderivative of [<a,0>] is half of [<a,0,0>], which gives {eq}.",
                "{What} is {eq}.",
                "Raising the exponent and dividing by it, the first term gives {eq}.",
                "The term [<a,0>] contributes {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "a * s",
                    (
                        "An antiderivative of [<a,0>] is [<a,0,0>], which gives {eq}.",
                        "Raising the exponent, the first term gives {eq}.",
                    ),
                ),
                Mistake(INFERENCE, "a", ("The derivative of [<a,0>] is {eq}, and this is what it contributes.",)),
            ),
        ),
        Op(
            "v",
            "b * p",
            "the integral of the constant",
            (
                "An antiderivative of [{b}] is [<b,0>], which gives {eq}.",
                "{What} is {eq}.",
                "The constant contributes {eq}.",
            ),
            (Mistake(CASE, "b", ("The constant contributes {eq}.", "The constant stays as it is, {eq}.")),),
        ),
        Op("t", "u + v", "the integral"),
    ),
    {},
    (Verify((Op("w", "a * p ** 2 / 2"), Op("x", "answer - w"), Op("y", "x / p")), "y", "b"),),
    (Bound("t > b * p", "the function is at least {b}, so the integral {t} must be more than [{b} * {p}]"),),
    largest=900,
    smallest=-300,
)

_SQUARE = Story(
    (
        "Find the integral of [<a,0,0>] from [{q}] to [{p}].",
        "Compute the area between the parabola [y = <a,0,0>] and the x-axis from [x = {q}] to [x = {p}].",
        "Integrate [f(x) = <a,0,0>] over the interval from [{q}] to [{p}].",
        "What is the definite integral of [<a,0,0>] between [x = {q}] and [x = {p}]?",
    ),
    {
        "a": Given(range(3, 25, 3), "as factor of the square"),
        "q": Given(range(1, 5), "as lower limit", fixed=True),
        "p": Given(range(3, 9), "as upper limit"),
    },
    (
        Op(
            "k",
            "a / 3",
            "the factor in the antiderivative",
            (
                "With {eq}, an antiderivative is [<k,0,0,0>].",
                "{What} is {eq}, so [<k,0,0,0>] is one.",
                "Dividing by the new exponent, {eq}, we have [<k,0,0,0>].",
                "The antiderivative is [<k,0,0,0>], since {eq}.",
            ),
            (
                Mistake(FORMULA, "a", ("Raising the exponent, an antiderivative is [<k,0,0,0>].",)),
                Mistake(FORMULA, "a / 2", ("Dividing by the exponent, {eq}, we have [<k,0,0,0>].",)),
                Mistake(FORMULA, "3 * a", ("With {eq}, an antiderivative is [<k,0,0,0>].",)),
            ),
        ),
        Op(
            "u",
            "k * p ** 3",
            "the value at the upper limit",
            ("At the upper limit it is {eq}.", "{What} is {eq}.", "Putting in [{p}] gives {eq}."),
            (Mistake(FORMULA, "k * p * 3", ("At the upper limit it is {eq}.", "Putting in [{p}] gives {eq}.")),),
        ),
        Op(
            "v",
            "k * q ** 3",
            "the value at the lower limit",
            ("At the lower limit it is {eq}.", "{What} is {eq}.", "Putting in [{q}] gives {eq}."),
        ),
        Op(
            "t",
            "u - v",
            "the integral",
            (
                "Upper minus lower value is {eq}.",
                "Hence the integral is {eq}.",
                "{What} is {eq}.",
                "The difference of the values is {eq}.",
            ),
            (
                Mistake(CASE, "u", ("The upper limit gives the integral, {eq}.", "Hence the integral is {eq}.")),
                Mistake(SIGN, "v - u", ("The difference of the values is {eq}.", "Hence the integral is {eq}.")),
                Mistake(INFERENCE, "k * (p - q) ** 3", ("With the length of the interval, the integral is {eq}.",)),
            ),
        ),
    ),
    {},
    (
        Verify(
            (Op("x", "a * q ** 3 / 3"), Op("y", "answer + x"), Op("z", "3 * y"), Op("w", "z / p ** 3")), "w", "a"
        ),
    ),
    (
        Bound("t > 0", "the function is positive, so the integral {t} must be as well"),
        Bound(
            "t < a * p ** 2 * (p - q)",
            "the function is below [{a} * {p}^2], so {t} must be less than [{a} * {p}^2 * ({p} - {q})]",
        ),
    ),
    ("q < p",),
    largest=5000,
    smallest=-40_000,
)

_TRAPEZOID = Story(
    (
        "What is the area under the line [y = <a,b>] from [x = {p}] to [x = {q}]?",
        "Find the area between the graph of [f(x) = <a,b>] and the x-axis for x from [{p}] to [{q}].",
        "The line [y = <a,b>], the x-axis and the lines [x = {p}] and [x = {q}] enclose a trapezoid. Compute its "
        "area.",
        "Evaluate the integral of [<a,b>] from [{p}] to [{q}] as the area of a trapezoid.",
    ),
    {
        "a": Given(range(2, 12), "as slope"),
        "b": Given(range(1, 20), "as constant"),
        "p": Given(range(1, 7), "as left end", fixed=True),
        "q": Given(range(4, 16), "as right end"),
    },
    (
        Op("l", "a * p + b", "the height at the left end"),
        Op("r", "a * q + b", "the height at the right end"),
        Op("w", "q - p", "the width"),
        Op("s", "l + r", "the sum of the heights"),
        Op(
            "t",
            "s * w / 2",
            "the area",
            (
                "The mean height times the width is {eq}.",
                "{What} is {eq}.",
                "A trapezoid has half of the product as area: {eq}.",
                "By the formula for a trapezoid, the area is {eq}.",
            ),
            (
                Mistake(FORMULA, "s * w", ("The heights times the width are the area, {eq}.", "{What} is {eq}.")),
                Mistake(INFERENCE, "r * w", ("Height times width is the area, {eq}.",)),
                Mistake(CASE, "l * w", ("The rectangle under the line is the area, {eq}.",)),
            ),
        ),
    ),
    {},
    (
        Verify(
            (Op("x", "2 * answer"), Op("y", "x / (q - p)"), Op("z", "y - a * (p + q)"), Op("u", "z / 2")), "u", "b"
        ),
    ),
    (
        Bound(
            "t < (a * q + b) * (q - p)",
            "the line stays below its right end, so {t} must be less than [({a} * {q} + {b}) * ({q} - {p})]",
        ),
    ),
    ("p < q",),
    largest=2000,
)

_WAY = Story(
    (
        "After t seconds a car moves at [<t;a,b>] metres per second. It starts {s} m from a sign. How many metres "
        "from the sign is it after {n} seconds, if it drives away from it?",
        "A ball rolls with the velocity [v(t) = <t;a,b>] m/s. At [t = 0] it is at {s} m. Where is it at [t = "
        "{n}], in metres?",
        "{name} cycles at [<t;a,b>] metres per second after t seconds and has {s} m behind at the start. What is "
        "the whole way in metres after {n} seconds?",
        "Water flows into a pool at [<t;a,b>] litres per minute after t minutes. At first there are {s} litres. "
        "How many are there after {n} minutes?",
    ),
    {
        "a": Given(range(2, 9), "as factor of the time"),
        "b": Given(range(2, 20), "as rate at the start"),
        "s": Given(range(5, 90), "at the start"),
        "n": Given(range(2, 11), "as time"),
    },
    (
        Op(
            "u",
            "a * n ** 2 / 2",
            "the part from the growing rate",
            (
                "Integrating [<t;a,0>], we get {eq}.",
                "{What} is {eq}.",
                "The growing part adds {eq}.",
                "The integral of [<t;a,0>] is {eq}.",
            ),
            (
                Mistake(
                    FORMULA, "a * n ** 2", ("Integrating [<t;a,0>], we get {eq}.", "The growing part adds {eq}.")
                ),
                Mistake(INFERENCE, "a * n", ("At the end the growing part is {eq}, so it adds as much.",)),
            ),
        ),
        Op(
            "c",
            "b * n",
            "the part from the constant rate",
            ("The constant part adds {eq}.", "{What} is {eq}.", "Integrating [{b}], we get {eq}."),
            (Mistake(CASE, "b", ("The constant part adds {eq}.",)),),
        ),
        Op("d", "u + c", "the increase"),
        Op(
            "e",
            "s + d",
            "the final amount",
            ("With the amount at the start, {what} is {eq}.", "{What} is {eq}.", "Adding the start, we get {eq}."),
            (Mistake(DROPPED, "d", ("So {what} is {eq}.", "{What} is the increase, {eq}.")),),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("w", "a * n ** 2 / 2"), Op("x", "answer - w"), Op("y", "b * n"), Op("z", "x - y")), "z", "s"),),
    (Bound("e > s", "it grows from {s}, so {e} must be more"),),
    largest=900,
)

_ARCH = Story(
    (
        "What area do the parabola [y = {k}x - x^2] and the x-axis enclose?",
        "Find the area of the region between the curve [y = {k}x - x^2] and the x-axis.",
        "An arch has the form of [y = {k}x - x^2] above the x-axis. Compute the area under it.",
        "Determine the area that the graph of [f(x) = {k}x - x^2] cuts off above the x-axis.",
    ),
    {"k": Given(range(2, 13), "as factor of x")},
    (
        Op(
            "c",
            "k ** 3",
            "the cube of the second zero",
            (
                "The zeros are [0] and [{k}], and the cube of the second is {eq}.",
                "The curve meets the axis at [0] and [{k}], and the cube of the latter is {eq}.",
                "{What} is {eq}.",
            ),
            (Mistake(FORMULA, "3 * k", ("{What} is {eq}.",)),),
        ),
        Op(
            "u",
            "c / 2",
            "the integral of the first term",
            ("The first term gives {eq}.", "{What} is {eq}.", "Integrating [{k}x] from [0] to [{k}], we get {eq}."),
            (Mistake(FORMULA, "c", ("The first term gives {eq}.", "Integrating the first term, we get {eq}.")),),
        ),
        Op(
            "v",
            "c / 3",
            "the integral of the second term",
            ("The second term gives {eq}.", "{What} is {eq}.", "Integrating [x^2] from [0] to [{k}], we get {eq}."),
            (
                Mistake(
                    FORMULA, "c / 2", ("The second term gives {eq}.", "Integrating the second term, we get {eq}.")
                ),
            ),
        ),
        Op(
            "t",
            "u - v",
            "the area",
            ("The difference is the area {eq}.", "{What} is {eq}.", "So the enclosed area is {eq}."),
            (Mistake(SIGN, "u + v", ("Together the terms give the area {eq}.", "So the enclosed area is {eq}.")),),
        ),
    ),
    {},
    (),
    (
        Bound("t > 0", "the curve is above the axis, so the area [{t}] must be positive"),
        Bound(
            "t <= k ** 3 / 4",
            "the arch is [{k}] wide and at most [{k}^2/4] high, which the area [{t}] cannot exceed",
        ),
    ),
    largest=2500,
    smallest=-1500,
    whole=False,
)

INTEGRALS = (_LINEAR, _SQUARE, _TRAPEZOID, _WAY, _ARCH)
