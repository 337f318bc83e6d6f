"""Quadratic equations by the formula: discriminants, roots, and what their coefficients tell."""

from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_ROOT = Given((-9, -8, -7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9), "")
_SQUARED = (
    "The square of the middle coefficient is {eq}.",
    "First, {eq}.",
    "For the discriminant, {eq}.",
    "We need the square {eq}.",
)
_ASKS_OUTLINES = (
    "Use the quadratic formula.",
    "We find the discriminant first.",
    "Apply the quadratic formula to the coefficients.",
)

_DISCRIMINANT = Story(
    (
        "What is the discriminant of [<a,b,c>]?",
        "Find the discriminant of the quadratic [<a,b,c>].",
        "Compute the discriminant of the equation [<a,b,c> = 0].",
        "Let [f(x) = <a,b,c>]. Find the discriminant of f.",
    ),
    {
        "b": Given(
            (-15, -13, -11, -9, -8, -7, -6, -5, -4, -3, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12), "as coefficient of x"
        ),
        "a": Given((2, 3, 4, 5, 6, 7), "as coefficient of x squared", fixed=True),
        "c": Given((-9, -7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8), "as constant"),
    },
    (
        Op(
            "e",
            "b ** 2",
            "the square of the middle coefficient",
            _SQUARED,
            (
                Mistake(FORMULA, "2 * b", _SQUARED[:1]),
                Mistake(SIGN, "-(b ** 2)", (_SQUARED[0].replace("eq", "res"),)),
            ),
        ),
        Op(
            "p",
            "4 * a * c",
            "the product to subtract",
            (
                "Four times the outer coefficients: {eq}.",
                "{What} is {eq}.",
                "Next, {eq}.",
                "For the second term we have {eq}.",
            ),
            (
                Mistake(FORMULA, "2 * a * c", ("For the second term we have {eq}.", "{What} is {eq}.")),
                Mistake(DROPPED, "4 * c", ("For the second term we have {eq}.",)),
            ),
        ),
        Op(
            "d",
            "e - p",
            "the discriminant",
            (
                "The discriminant is {eq}.",
                "So {what} is {eq}.",
                "Subtract: {eq}.",
                "Hence the discriminant equals {eq}.",
            ),
            (Mistake(SIGN, "e + p", ("The discriminant is {eq}.", "So {what} is {eq}.")),),
        ),
    ),
    {},
    (
        Verify(
            (Op("u", "b ** 2"), Op("v", "u - answer"), Op("w", "4 * a"), Op("z", "v / w")), "z", "c", "work back"
        ),
    ),
    smallest=-500,
    largest=700,
    fits=("d != 0",),
)

_LARGER_ROOT = Story(
    (
        "Find the larger solution of [<1,b,c> = 0].",
        "What is the greatest x with [<1,b,c> = 0]?",
        "Use the quadratic formula to find the larger root of [<1,b,c>].",
        "Solve [<1,b,c> = 0] and give the larger solution.",
    ),
    {
        "b": Given((), "as coefficient of x", made="0 - p - q"),
        "c": Given((), "as constant", made="p * q"),
    },
    (
        Op("e", "b ** 2", "the square of the middle coefficient", _SQUARED),
        Op(
            "d",
            "e - 4 * c",
            "the discriminant",
            (
                "The discriminant is {eq}.",
                "Under the root we have {eq}.",
                "So {what} is {eq}.",
                "Hence the discriminant equals {eq}.",
            ),
        ),
        Op(
            "r",
            "sqrt(d)",
            "the root of the discriminant",
            (
                "Its square root is {eq}.",
                "Taking the root, {eq}.",
                "{What} is {eq}.",
                "We need {eq}.",
            ),
            (Mistake(FORMULA, "d / 2", ("Its square root is {eq}.", "{What} is {eq}.")),),
        ),
        Op(
            "s",
            "-b + r",
            "the numerator",
            (
                "The numerator of the larger root is {eq}.",
                "With the plus sign, {eq}.",
                "{What} is {eq}.",
                "For the larger root take {eq}.",
            ),
            (
                Mistake(
                    SIGN,
                    "b + r",
                    ("With the plus sign, {eq}.", "{What} is {eq}.", "For the larger root take {eq}."),
                ),
                Mistake(CASE, "-b - r", ("{What} of the larger root is {eq}.", "For the larger root take {eq}.")),
            ),
        ),
        Op(
            "x",
            "s / 2",
            "the larger solution",
            (
                "So the larger solution is {eq}.",
                "Dividing by 2, {eq}.",
                "{What} is {eq}.",
                "Hence {eq} for {what}.",
            ),
            (Mistake(DROPPED, "s", ("So the larger solution is {res}.", "{What} is {res}.")),),
        ),
    ),
    {},
    (
        Verify(
            (Op("u", "answer ** 2"), Op("v", "b * answer"), Op("w", "u + v"), Op("z", "0 - w")),
            "z",
            "c",
            "substitute",
        ),
        Verify((Op("u", "c / answer"), Op("v", "u + answer"), Op("z", "0 - v")), "z", "b", "Vieta"),
    ),
    smallest=-500,
    largest=900,
    fits=("d > 0", "b != 0", "x != 0"),
    outlines=_ASKS_OUTLINES,
    seeds={"p": _ROOT, "q": _ROOT},
)

_LEADING = Story(
    (
        "Find the larger solution of [<a,b,c> = 0].",
        "The equation [<a,b,c> = 0] has two whole solutions. What is the larger one?",
        "What is the greater root of [<a,b,c>]?",
        "Solve [<a,b,c> = 0] by the quadratic formula and give the larger root.",
    ),
    {
        "a": Given((2, 3, 4, 5), "as coefficient of x squared", fixed=True),
        "b": Given((), "as coefficient of x", made="0 - a * p - a * q"),
        "c": Given((), "as constant", made="a * p * q"),
    },
    (
        Op(
            "d",
            "b ** 2 - 4 * a * c",
            "the discriminant",
            (
                "The discriminant is {eq}.",
                "Under the root we have {eq}.",
                "First the discriminant: {eq}.",
                "{What} is {eq}.",
            ),
        ),
        Op(
            "r",
            "sqrt(d)",
            "the root of the discriminant",
            ("Its square root is {eq}.", "Taking the root, {eq}.", "{What} is {eq}.", "We need {eq}."),
        ),
        Op(
            "s",
            "-b + r",
            "the numerator",
            (
                "The numerator of the larger root is {eq}.",
                "With the plus sign, {eq}.",
                "{What} is {eq}.",
                "For the larger root take {eq}.",
            ),
            (
                Mistake(
                    SIGN,
                    "b + r",
                    ("With the plus sign, {eq}.", "{What} is {eq}.", "For the larger root take {eq}."),
                ),
            ),
        ),
        Op(
            "t",
            "2 * a",
            "the denominator",
            (
                "The denominator is {eq}.",
                "{What} of the formula is {eq}.",
                "Below the line stands {eq}.",
                "We divide by {eq}.",
            ),
            (
                Mistake(DROPPED, "2", ("The denominator is [2].", "We divide by [2].")),
                Mistake(FORMULA, "a", ("The denominator is {res}.", "We divide by {res}.")),
            ),
        ),
        Op("x", "s / t", "the larger root"),
    ),
    {},
    (
        Verify(
            (Op("u", "answer ** 2"), Op("v", "a * u"), Op("w", "b * answer"), Op("y", "v + w"), Op("z", "0 - y")),
            "z",
            "c",
            "substitute",
        ),
    ),
    smallest=-600,
    largest=4000,
    fits=("d > 0", "b != 0", "x != 0"),
    outlines=_ASKS_OUTLINES,
    seeds={"p": Given((-5, -4, -3, -2, -1, 1, 2, 3), ""), "q": Given((-2, -1, 1, 2, 3, 4, 5, 6), "")},
)

_SQUARES = Story(
    (
        "Let r and s be the roots of [<1,b,c>]. Find [r^2 + s^2].",
        "The solutions of [<1,b,c> = 0] are r and s. What is [r^2 + s^2]?",
        "Find the sum of the squares of the roots of [<1,b,c> = 0].",
        "What is the sum of the squares of the two solutions of [<1,b,c> = 0]?",
    ),
    {
        "b": Given(
            (-19, -17, -16, -15, -14, -13, -12, -11, -10, 10, 11, 12, 13, 14, 15, 17, 18), "as coefficient of x"
        ),
        "c": Given((-9, -8, -7, -5, -4, -3, -2, 2, 3, 4, 5, 6, 7, 9, 11, 12, 15), "as constant"),
    },
    (
        Op(
            "s",
            "0 - b",
            "the sum of the roots",
            (
                "By Vieta, {what} is {res}.",
                "The sum of the roots is {res}.",
                "The roots add to {res}.",
                "From the coefficient of x, {what} is {res}.",
            ),
            (
                Mistake(
                    SIGN,
                    "b",
                    ("By Vieta, {what} is {res}.", "The sum of the roots is {res}.", "The roots add to {res}."),
                ),
            ),
        ),
        Op("e", "s ** 2", "the square of the sum"),
        Op(
            "t",
            "2 * c",
            "twice the product",
            (
                "The product of the roots is [{c}], and twice that is {eq}.",
                "Twice the product of the roots is {eq}.",
                "The constant is the product; doubled, {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(
                    DROPPED,
                    "c",
                    ("The product of the roots, {res}, is to be taken away.", "Subtract {res} for the mixed term."),
                ),
            ),
        ),
        Op(
            "v",
            "e - t",
            "the sum of the squares",
            (
                "So the sum of the squares is {eq}.",
                "Subtract: {eq}.",
                "{What} is {eq}.",
                "Since [(r + s)^2 = r^2 + 2rs + s^2], we get {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "e",
                    (
                        "The sum of the squares is the square of the sum, {res}.",
                        "Since [(r + s)^2 = r^2 + s^2], {what} is {res}.",
                    ),
                ),
                Mistake(SIGN, "e + t", ("So the sum of the squares is {eq}.", "Add the mixed term: {eq}.")),
            ),
        ),
    ),
    {},
    (Verify((Op("k", "2 * c"), Op("l", "answer + k"), Op("m", "b ** 2")), "l", "m", "work back"),),
    smallest=-60,
    largest=700,
    reads=False,
)

_DOUBLE = Story(
    (
        "For which value of k does [x^2 - {b}x + k = 0] have exactly one solution?",
        "Find k such that [x^2 - {b}x + k] is the square of a binomial.",
        "The graph of [y = x^2 - {b}x + k] touches the x-axis in one point. What is k?",
        "The equation [x^2 - {b}x + k = 0] has a double root. Find k.",
    ),
    {"b": Given(range(4, 42, 2), "as the number before x")},
    (
        Op(
            "e",
            "b ** 2",
            "the square of the coefficient",
            (
                "In the discriminant, the square of the coefficient is {eq}.",
                "{What} is {eq}.",
                "The discriminant must vanish; its first term is {eq}.",
                "First, {eq}.",
            ),
            (Mistake(FORMULA, "2 * b", ("{What} is {eq}.",)),),
        ),
        Op(
            "k",
            "e / 4",
            "[k]",
            (
                "Four times k must equal this, so {weq}.",
                "A zero discriminant means {weq}.",
                "Hence {weq}.",
                "Solving for k, {weq}.",
            ),
            (
                Mistake(FORMULA, "e / 2", ("Hence {weq}.", "Twice k must equal this, so {weq}.")),
                Mistake(DROPPED, "e", ("A zero discriminant means {wres}.", "So k must be equal to it, {wres}.")),
                Mistake(INFERENCE, "b / 2", ("Half of the coefficient does it: {weq}.",)),
            ),
        ),
    ),
    {},
    (Verify((Op("u", "sqrt(answer)"), Op("v", "2 * u")), "v", "b", "square the binomial"),),
    (Bound("4 * k <= b * b", "four times {k} must not be above [{b}^2]"),),
    largest=1700,
)

_WIDTH = Story(
    (
        "A rectangle is {d} m longer than wide, and its area is {a} m². How wide is it?",
        "The area of a garden is {a} m². Its length exceeds its width by {d} m. Find the width in m.",
        "Two positive numbers differ by {d} and have the product {a}. Find the smaller one.",
        "A positive number times the number that is {d} greater gives {a}. What is the number?",
    ),
    {
        "d": Given(range(2, 16), "as difference"),
        "a": Given((), "as product", made="w * w + w * d"),
    },
    (
        Op(
            "e",
            "d ** 2 + 4 * a",
            "the discriminant",
            (
                "The equation [x^2 + {d}x - {a} = 0] has the discriminant {eq}.",
                "From [x(x + {d}) = {a}] we get the discriminant {eq}.",
                "{What} of [x^2 + {d}x = {a}] is {eq}.",
                "With [x^2 + {d}x - {a} = 0], under the root stands {eq}.",
            ),
        ),
        Op("r", "sqrt(e)", "the root of the discriminant"),
        Op(
            "s",
            "r - d",
            "twice the number wanted",
            (
                "Only the positive root fits: {eq} in the numerator.",
                "The numerator of the positive root is {eq}.",
                "{What} is {eq}.",
                "As the number is positive, the numerator is {eq}.",
            ),
            (
                Mistake(
                    SIGN,
                    "r + d",
                    ("The numerator of the positive root is {eq}.", "{What} is {eq}."),
                ),
            ),
        ),
        Op(
            "w",
            "s / 2",
            "the number wanted",
            mistakes=(Mistake(DROPPED, "s", ("So {what} is {res}.", "{What} is {res}.")),),
        ),
    ),
    {},
    (Verify((Op("u", "answer + d"), Op("v", "answer * u")), "v", "a", "substitute"),),
    (Bound("w * w < a", "[{w}^2] must be less than the product {a}"),),
    largest=4000,
    seeds={"w": Given(range(2, 20), "")},
)

DISCRIMINANTS = (_DISCRIMINANT, _LARGER_ROOT, _LEADING, _SQUARES, _DOUBLE, _WIDTH)
