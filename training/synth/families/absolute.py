"""Absolute values and squares: equations with two solutions, of which one is easily forgotten."""

from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_FIRST = (
    "If the inside is positive, {weq}.",
    "First case: {weq}.",
    "Without the bars and with a plus, {weq}.",
    "One solution is {weq}.",
    "In the first case, {weq}.",
)
_SECOND = (
    "If the inside is negative, {weq}.",
    "Second case: {weq}.",
    "With the minus sign, {weq}.",
    "The other solution is {weq}.",
    "In the second case, {weq}.",
)
_ONLY = (
    "An absolute value is never negative, so only {p} counts and {what} is {res}.",
    "The equation has the single solution {p}, so {what} is {res}.",
    "Removing the bars gives {p} and nothing else, so {what} is {res}.",
)
_OUTLINES = (
    "We take two cases.",
    "An absolute value has two cases.",
    "We look at both signs.",
    "Remove the bars with plus and with minus.",
)

_CENTRE = {"a": Given(range(3, 30), "as the number taken from x"), "b": Given(range(2, 40), "as absolute value")}
_TWO = (
    Op("p", "a + b", "[x]", _FIRST, (Mistake(SIGN, "b - a", ("In the first case, {weq}.",)),)),
    Op("q", "a - b", "[x]", _SECOND, (Mistake(SIGN, "b - a", _SECOND[1:]),)),
)

_PRODUCT = Story(
    (
        "Find the product of all solutions of [|x - {a}| = {b}].",
        "What is the product of the values of x for which [|x - {a}| = {b}]?",
        "Let [|x - {a}| = {b}]. Multiply all the solutions. What do you get?",
        "Two points on the number line are {b} units away from {a}. What is the product of their coordinates?",
    ),
    _CENTRE,
    (
        *_TWO,
        Op(
            "r",
            "p * q",
            "the product",
            (
                "The product is {eq}.",
                "Multiplying the solutions, {eq}.",
                "So the product of the solutions is {eq}.",
                "Multiply them: {eq}.",
                "Together, {eq}.",
            ),
            (
                Mistake(CASE, "p", _ONLY),
                Mistake(INFERENCE, "p * p", ("Both cases lead to the same number, so the product is {eq}.",)),
            ),
        ),
    ),
    {},
    (Verify((Op("u", "a + b"), Op("v", "answer / u"), Op("w", "a - v")), "w", "b", "substitute"),),
    smallest=-900,
    largest=900,
    fits=("q != 0", "q != 1"),
    outlines=_OUTLINES,
)

_SMALLER = Story(
    (
        "What is the smallest solution of [|{m}x - {a}| = {b}]?",
        "Find the smaller value of x with [|{m}x - {a}| = {b}].",
        "Which is the smaller of the two solutions of [|{m}x - {a}| = {b}]?",
        "The equation [|{m}x - {a}| = {b}] has two solutions. Find the smaller one.",
    ),
    {
        "m": Given(range(2, 6), "as factor of x", fixed=True),
        "a": Given((), "as the number taken away", made="m * h"),
        "b": Given((), "as absolute value", made="m * k"),
    },
    (
        Op(
            "v",
            "a - b",
            "the x term",
            (
                "For the smaller solution the inside is negative, and the x term is {eq}.",
                "Take the minus sign: the x term equals {eq}.",
                "The smaller solution belongs to the negative case, where the x term is {eq}.",
                "With the negative sign, the x term is {eq}.",
            ),
            (
                Mistake(
                    CASE,
                    "a + b",
                    (
                        "The absolute value is positive, so the x term is {eq}.",
                        "Dropping the bars, the x term is {eq}.",
                        "We remove the bars and add: the x term is {eq}.",
                    ),
                ),
                Mistake(SIGN, "b - a", ("The inside is negative, so the x term is {eq}.",)),
            ),
        ),
        Op(
            "x",
            "v / m",
            "the smaller solution",
            (
                "Divide by [{m}]: {what} is {eq}.",
                "Dividing by the factor of x gives {eq}.",
                "So the smaller solution is {eq}.",
                "Hence [x = {v} / {m} = {x}].",
            ),
        ),
    ),
    {},
    (Verify((Op("u", "m * answer"), Op("w", "a - u")), "w", "b", "substitute"),),
    smallest=-300,
    fits=("v != 0",),
    outlines=_OUTLINES,
    seeds={"h": Given(range(2, 20), ""), "k": Given(range(1, 25), "")},
)

_DISTANCE = Story(
    (
        "How far apart on the number line are the solutions of [{m}|x| + {c} = {d}]?",
        "Find the difference between the two solutions of [{m}|x| + {c} = {d}].",
        "Let [{m}|x| + {c} = {d}]. What is the distance between the solutions?",
        "The equation [{m}|x| + {c} = {d}] has two solutions. By how much does the larger exceed the smaller?",
    ),
    {
        "m": Given(range(2, 8), "as factor"),
        "c": Given(range(2, 40), "as added number"),
        "d": Given((), "on the right", made="m * h + c"),
    },
    (
        Op(
            "t",
            "d - c",
            "the term with the absolute value",
            (
                "Subtract the constant: {what} is {eq}.",
                "Taking [{c}] away, {what} equals {eq}.",
                "Isolate the absolute value: its term is {eq}.",
                "First, {what} is {eq}.",
            ),
        ),
        Op(
            "x",
            "t / m",
            "[|x|]",
            ("So {weq}.", "Divide by [{m}]: {weq}.", "Dividing gives {weq}.", "Hence {weq}."),
        ),
        Op(
            "w",
            "2 * x",
            "the distance",
            (
                "The solutions are [{x}] and its negative, so their distance is {eq}.",
                "Plus and minus [{x}] both work; they are {eq} apart.",
                "There is one solution on each side of zero, and the distance is {eq}.",
                "From the negative solution to the positive one it is {eq}.",
            ),
            (
                Mistake(
                    CASE,
                    "x",
                    (
                        "The only solution is [{x}], so the distance is {res}.",
                        "Since an absolute value is positive, only [{x}] counts, so the distance is {res}.",
                        "As x is positive, the distance is {res}.",
                    ),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("u", "answer / 2"), Op("v", "m * u"), Op("w", "v + c")), "w", "d", "substitute"),),
    (Bound("x < d", "the absolute value {x} must be below {d}"),),
    outlines=("Isolate the absolute value first.", "We first get the absolute value alone.", *_OUTLINES[:1]),
    seeds={"h": Given(range(2, 30), "")},
)

_SQUARE = Story(
    (
        "Find the smaller solution of [(x - {a})^2 = {k}].",
        "What is the smallest x for which [(x - {a})^2 = {k}]?",
        "Solve [(x - {a})^2 = {k}] and give the smaller solution.",
        "If [(x - {a})^2 = {k}], what is the least possible value of x?",
    ),
    {
        "a": Given(range(2, 30), "as the number taken from x"),
        "k": Given((), "as the square", made="h * h"),
    },
    (
        Op(
            "r",
            "sqrt(k)",
            "the size of the bracket",
            (
                "Take the square root: {eq}.",
                "The bracket is plus or minus {eq}.",
                "Since {eq}, the bracket is [{r}] or its negative.",
                "Roots on both sides: {eq}, with either sign.",
            ),
            (Mistake(FORMULA, "k / 2", ("Take the square root: the bracket is {eq} in size.",)),),
        ),
        Op(
            "x",
            "a - r",
            "the smaller solution",
            (
                "The minus sign gives the smaller solution {eq}.",
                "For the smaller x take the negative root: {eq}.",
                "So the smaller solution is {eq}.",
                "With the negative root, {what} is {eq}.",
            ),
            (
                Mistake(
                    CASE,
                    "a + r",
                    (
                        "A square root is positive, so {what} is {eq}.",
                        "The only solution, and so the smallest, is {eq}.",
                        "There is just one solution, {eq}.",
                    ),
                ),
                Mistake(SIGN, "r - a", ("With the negative root, {what} is {eq}.",)),
            ),
        ),
    ),
    {},
    (Verify((Op("u", "answer - a"), Op("v", "u ** 2")), "v", "k", "substitute"),),
    smallest=-300,
    outlines=("A square has two roots.", "We take roots on both sides.", "Consider both signs of the root."),
    seeds={"h": Given(range(2, 20), "")},
)

_SUM_OF_SQUARES = Story(
    (
        "What is the sum of the squares of the solutions of [|x - {a}| = {b}]?",
        "Let [|x - {a}| = {b}]. Square each solution and add the squares. Find the result.",
        "The solutions of [|x - {a}| = {b}] are squared and added. What is the sum?",
    ),
    {
        "a": Given(range(2, 12), "as the number taken from x"),
        "b": Given(range(2, 15), "as absolute value"),
    },
    (
        *_TWO,
        Op("s", "p ** 2", "the first square"),
        Op("t", "q ** 2", "the second square"),
        Op(
            "w",
            "s + t",
            "the sum of the squares",
            mistakes=(
                Mistake(
                    CASE,
                    "s",
                    (
                        "Only [{p}] is a solution, so the sum of the squares is {res}.",
                        "The other number is no solution, so the sum of the squares is {res}.",
                    ),
                ),
                Mistake(INFERENCE, "(p + q) ** 2", ("The sum of the squares is the square of the sum: {eq}.",)),
            ),
        ),
    ),
    {},
    (
        Verify(
            (Op("l", "a - b"), Op("m", "l ** 2"), Op("u", "answer - m"), Op("v", "sqrt(u)"), Op("z", "v - a")),
            "z",
            "b",
        ),
    ),
    smallest=-60,
    largest=900,
    fits=("q != 0",),
    outlines=_OUTLINES,
)

_MIDPOINT = Story(
    (
        "Solve [|x - {a}| = |x - {b}|].",
        "Find x if [|x - {a}| = |x - {b}|].",
        "Which number x is as far from {a} as from {b}?",
        "For which x are the distances to {a} and to {b} on the number line equal?",
    ),
    {"a": Given(range(2, 40), "as one number"), "b": Given(range(20, 90), "as the other number")},
    (
        Op(
            "s",
            "a + b",
            "[2x]",
            (
                "The insides must be opposite, so {weq}.",
                "They differ in sign, which gives {weq}.",
                "As the two insides cannot be equal, one is minus the other and {weq}.",
                "With opposite signs, {weq}.",
            ),
            (
                Mistake(
                    SIGN,
                    "b - a",
                    ("The insides must be opposite, so {weq}.", "Collecting the terms, {weq}."),
                ),
            ),
        ),
        Op(
            "x",
            "s / 2",
            "[x]",
            ("So {weq}.", "Halving, {weq}.", "Divide by [2]: {weq}.", "Therefore {weq}."),
            (Mistake(DROPPED, "s", ("So {wres}.", "Therefore {wres}.")),),
        ),
    ),
    {},
    (Verify((Op("u", "answer - a"), Op("v", "answer + u")), "v", "b", "substitute"),),
    (Bound("a < x", "x = {x} must be above {a}"), Bound("x < b", "x = {x} must lie below {b}")),
    fits=("a < b",),
    outlines=("The point lies in the middle.", "Either the insides are equal or they are opposite."),
)

_INTEGERS = Story(
    (
        "How many integers x satisfy [|x - {a}| <= {b}]?",
        "Find the number of integers with [|x - {a}| <= {b}].",
        "Count the whole numbers on the number line that are at most {b} away from {a}, negative ones included.",
        "For how many integers is [|x - {a}| <= {b}]?",
    ),
    {"a": Given(range(3, 40), "as centre"), "b": Given(range(3, 50), "as greatest distance")},
    (
        Op("h", "a + b", "the largest integer"),
        Op(
            "l",
            "a - b",
            "the smallest integer",
            mistakes=(Mistake(CASE, "a", ("The smallest integer to count is {res}.", "We count from {res} on.")),),
        ),
        Op(
            "n",
            "h - l + 1",
            "the number of integers",
            (
                "With both ends there are {eq} integers.",
                "Counting both ends, {eq}.",
                "From the smallest to the largest there are {eq} integers.",
                "{What} is {eq}.",
                "So {eq} integers fit.",
            ),
            (
                Mistake(
                    CASE,
                    "h - l",
                    ("From the smallest to the largest there are {eq} integers.", "So {eq} integers fit."),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("u", "answer - 1"), Op("v", "u / 2")), "v", "b", "count back"),),
    (Bound("n > b", "the number {n} of integers must be above {b}"),),
    smallest=-200,
    outlines=(*_OUTLINES[2:3], "Find the two ends and count.", "We need the smallest and the largest integer."),
)

ABSOLUTES = (_PRODUCT, _SMALLER, _DISTANCE, _SQUARE, _SUM_OF_SQUARES, _MIDPOINT, _INTEGERS)
