"""Geometric sequences: their terms, ratios and sums."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_RATIO = Given((2, 2, 3, 4, 5), "as common ratio", fixed=True)
_POWERED = (
    "The ratio to that power is {eq}.",
    "{What} is {eq}.",
    "Now {eq}.",
    "We need {eq}.",
    "The power of the ratio is {eq}.",
)

_TERM = Story(
    (
        "A geometric sequence starts with {f} and has common ratio {r}. Find its term number {n}.",
        "What is term number {n} of the geometric sequence with first term {f} and ratio {r}?",
        "In a sequence every term is {r} times the one before, and the first term is {f}. Find term number {n}.",
        "On day 1 {name} gets {f} {thing}, and on every later day {r} times as many as the day before. How many "
        "are "
        "there to get on day {n}?",
    ),
    {
        "f": Given(range(2, 25), "as first term"),
        "r": _RATIO,
        "n": Given(range(3, 8), "as number of the term", fixed=True),
    },
    (
        Op(
            "k",
            "n - 1",
            "the number of multiplications",
            (
                "From the first term on we multiply {eq} times.",
                "The exponent of the ratio is {eq}.",
                "{What} is {eq}.",
                "There are {eq} steps from the first term.",
            ),
            (
                Mistake(
                    CASE,
                    "n",
                    (
                        "We multiply {res} times, once for every term.",
                        "The exponent of the ratio is {res}.",
                        "There are {res} steps.",
                    ),
                ),
            ),
        ),
        Op(
            "p",
            "r ** k",
            "the power of the ratio",
            _POWERED,
            (
                Mistake(
                    FORMULA,
                    "r * k",
                    ("The ratio is applied [{k}] times: {eq}.", "The ratio to that power is {eq}.", "Now {eq}."),
                ),
            ),
        ),
        Op("t", "f * p", "the term"),
    ),
    {"name": NAMES, "thing": ("coins", "grains of rice", "points", "beans")},
    (Verify((Op("u", "answer / f"), Op("v", "log(r, u)"), Op("w", "v + 1")), "w", "n", "divide back"),),
    (Bound("t > f", "the term {t} must be above the first term {f}"),),
    largest=5000,
)

_SUM = Story(
    (
        "Find the sum of the first {n} terms of the geometric sequence with first term {f} and ratio {r}.",
        "A geometric series has first term {f}, ratio {r} and {n} terms. What is its sum?",
        "{name} walks {f} m on the first day and {r} times as far on each day as on the day before. How many "
        "metres "
        "are that in {n} days?",
        "In week 1 a shop sells {f} {thing}, and in every later week {r} times as many as in the week before. How "
        "many does it sell in {n} weeks?",
    ),
    {"f": Given(range(2, 25), "at the start"), "r": _RATIO, "n": Given(range(3, 7), "terms", fixed=True)},
    (
        Op(
            "q",
            "r ** n",
            "the power of the ratio",
            _POWERED,
            (
                Mistake(FORMULA, "r * n", ("The ratio to that power is {eq}.", "Now {eq}.")),
                Mistake(
                    CASE,
                    "r ** (n - 1)",
                    ("The ratio is applied one time less than there are terms: {eq}.", "We need {eq}."),
                ),
            ),
        ),
        Op(
            "m",
            "q - 1",
            "the numerator without the first term",
            (
                "In the formula for the sum we need {eq}.",
                "Subtract one: {eq}.",
                "{What} is {eq}.",
                "The numerator of the formula has the factor {eq}.",
            ),
            (Mistake(SIGN, "q + 1", ("In the formula for the sum we need {eq}.",)),),
        ),
        Op("u", "f * m", "the numerator"),
        Op("d", "r - 1", "the denominator"),
        Op(
            "s",
            "u / d",
            "the sum",
            (
                "By the formula for a geometric sum, {eq}.",
                "So {what} is {eq}.",
                "{What} is {eq}.",
                "Dividing, {eq}.",
            ),
            (Mistake(FORMULA, "u / r", ("By the formula for a geometric sum, {eq}.", "Dividing, {eq}.")),),
        ),
    ),
    {"name": NAMES, "thing": ("mugs", "tickets", "caps", "games")},
    (
        Verify(
            (Op("d", "r - 1"), Op("u", "answer * d"), Op("v", "u / f"), Op("w", "v + 1"), Op("z", "log(r, w)")),
            "z",
            "n",
            "divide back",
        ),
    ),
    (
        Bound("s > f", "the sum {s} must be above the first term {f}"),
        Bound("s > f * r", "the sum {s} must be above the second term [{f} * {r}]"),
    ),
    largest=8000,
)

_BETWEEN = Story(
    (
        "The first term of a geometric sequence of positive numbers is {f} and the third is {t}. Find the fourth "
        "term.",
        "In a geometric sequence with positive terms, the first is {f} and the third {t}. What comes right after "
        "the "
        "third?",
        "The positive numbers {f}, x, {t}, y are in geometric sequence. What is y?",
        "A population grows by the same factor every year. It was {f} at first and {t} two years later. How "
        "large is it "
        "after three years?",
    ),
    {"f": Given(range(2, 20), "at first"), "t": Given((), "as third number", made="f * h * h")},
    (
        Op(
            "q",
            "t / f",
            "the square of the ratio",
            (
                "Two steps multiply by {eq}.",
                "{What} is {eq}.",
                "From the first to the third the factor is {eq}.",
                "The ratio squared is {eq}.",
            ),
            (Mistake(INFERENCE, "t - f", ("Two steps make a difference of {eq}, the square of the ratio.",)),),
        ),
        Op(
            "r",
            "sqrt(q)",
            "the ratio",
            (
                "So the ratio is {eq}.",
                "The positive root is the ratio: {eq}.",
                "Take the root: {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "q / 2",
                    (
                        "Each of the two steps takes half of it, so the ratio is {eq}.",
                        "Half of that is the ratio: {eq}.",
                        "So the ratio is {eq}.",
                    ),
                ),
                Mistake(CASE, "q", ("So the ratio is {res}.", "The terms grow by the factor {res}.")),
            ),
        ),
        Op(
            "y",
            "t * r",
            "the fourth number",
            mistakes=(Mistake(INFERENCE, "t + r", ("The next number is {eq}.", "Go on by the ratio: {eq}.")),),
        ),
    ),
    {},
    (
        Verify(
            (Op("u", "answer / t"), Op("v", "t / u"), Op("w", "v / u")),
            "w",
            "f",
            "divide back",
        ),
    ),
    (Bound("y > t", "the fourth number {y} must be above the third, {t}"),),
    largest=6000,
    seeds={"h": Given(range(2, 8), "", fixed=True)},
)

_INFINITE = Story(
    (
        "Find the sum of the infinite geometric series with first term {f} and common ratio [1/{q}].",
        "What is the sum of the infinite series that begins with {f} and whose terms are each [1/{q}] of the one "
        "before?",
        "A frog jumps {f} cm, and each of its jumps is [1/{q}] of the jump before. How far does it get in the long "
        "run, in cm?",
        "An infinite geometric series has first term {f} and ratio [1/{q}]. Evaluate it.",
    ),
    {
        "q": Given(range(2, 10), "as denominator of the ratio", fixed=True),
        "f": Given((), "as first term", made="(q - 1) * g"),
    },
    (
        Op(
            "d",
            "1 - 1 / q",
            "one minus the ratio",
            (
                "One minus the ratio is {eq}.",
                "The denominator of the formula is {eq}.",
                "{What} is {eq}.",
                "For the formula we need {eq}.",
            ),
            (
                Mistake(SIGN, "1 + 1 / q", ("The denominator of the formula is {eq}.", "We need {eq}.")),
                Mistake(DROPPED, "1 / q", ("The denominator of the formula is the ratio, {res}.",)),
            ),
        ),
        Op(
            "s",
            "f / d",
            "the sum",
            (
                "The sum of the series is {eq}.",
                "By the formula for an infinite geometric series, {eq}.",
                "Divide the first term by it: {eq}.",
                "So {what} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "f * d",
                    (
                        "By the formula for an infinite geometric series, {eq}.",
                        "Multiply the first term by it: {eq}.",
                    ),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("u", "answer / q"), Op("v", "answer - u")), "v", "f", "take one term away"),),
    (Bound("s > f", "the sum {s} must be above the first term {f}"),),
    smallest=0,
    whole=False,
    seeds={"g": Given(range(2, 30), "")},
)

GEOMETRIC = (_TERM, _SUM, _BETWEEN, _INFINITE)
