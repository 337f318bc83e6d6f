"""Remainders: of products and powers, on a clock, and what is left over."""

from stepsight.training.synth.families.names import NAMES, THINGS
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE, UNIT
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_REMAINDER = (
    "So the remainder is {eq}.",
    "Reduce once more: {eq}.",
    "Finally, {eq}.",
    "{What} is {eq}.",
    "Dividing again, {eq}.",
)

_PRODUCT = Story(
    (
        "Find the remainder when [{a} * {b} + {c}] is divided by {m}.",
        "What is the remainder of [{a} * {b} + {c}] upon division by {m}?",
        "Compute [({a} * {b} + {c}) mod {m}].",
        "A number is {c} more than the product of {a} and {b}. Which remainder does it leave on division by {m}?",
    ),
    {
        "a": Given(range(23, 300), "as first factor"),
        "b": Given(range(23, 300), "as second factor"),
        "c": Given(range(3, 60), "as added number"),
        "m": Given(range(5, 20), "as divisor"),
    },
    (
        Op(
            "u",
            "mod(a, m)",
            "the remainder of {a}",
            (
                "[{a}] leaves the remainder {eq}.",
                "Reduce the first factor: {eq}.",
                "First, {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(INFERENCE, "m - mod(a, m)", ("[{a}] leaves the remainder {res}.", "{What} is {res}.")),
                Mistake(FORMULA, "floor(a / m)", ("{What} is {eq}.", "Divide the first factor: {eq}.")),
            ),
        ),
        Op(
            "v",
            "mod(b, m)",
            "the remainder of {b}",
            (
                "[{b}] leaves the remainder {eq}.",
                "Reduce the second factor: {eq}.",
                "Next, {eq}.",
                "{What} is {eq}.",
            ),
        ),
        Op("p", "u * v", "the product of the remainders"),
        Op("s", "p + c", "the number that is left to reduce"),
        Op(
            "r",
            "mod(s, m)",
            "the remainder",
            _REMAINDER,
            (
                Mistake(DROPPED, "s", ("So the remainder is {res}.", "{What} is {res}.")),
                Mistake(INFERENCE, "s - m", ("Take the divisor away once: {eq}.", "So the remainder is {eq}.")),
            ),
        ),
    ),
    {},
    (),
    (Bound("r < m", "the remainder {r} must be less than the divisor {m}"),),
    smallest=0,
    fits=("s > 2 * m", "u > 0", "v > 0"),
    outlines=("Reduce the numbers first.", "We work with remainders.", "Replace each factor by its remainder."),
)

_UNITS_DIGIT = Story(
    (
        "What is the units digit of [{a}^{n}]?",
        "Find the last digit of [{a}^{n}].",
        "The number [{a}^{n}] is written out. Which digit stands at the end?",
        "Determine the ones digit of [{a}^{n}].",
    ),
    {
        "n": Given(range(9, 120), "as exponent"),
        "a": Given((2, 3, 7, 8, 12, 13, 17), "as base", fixed=True),
    },
    (
        Op(
            "k",
            "mod(n, 4)",
            "the place in the cycle",
            (
                "Units digits of powers repeat every 4 steps, and {eq}.",
                "The cycle of last digits has length 4: {eq}.",
                "{What} is {eq}.",
                "Since the last digits repeat with period 4, we need {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "mod(n, 10)",
                    ("There are 10 digits, so the cycle has length 10: {eq}.", "{What} is {eq}."),
                ),
                Mistake(INFERENCE, "mod(n, 3)", ("The cycle of last digits has length 3: {eq}.",)),
                Mistake(CASE, "4 - mod(n, 4)", ("Counting from the end of the cycle, {res}.", "{What} is {res}.")),
            ),
        ),
        Op(
            "d",
            "a ** k",
            "a power with the same last digit",
            (
                "So the last digit is that of {eq}.",
                "A power with the same last digit is {eq}.",
                "It ends like {eq}.",
                "We look at {eq}.",
            ),
            (Mistake(FORMULA, "a * k", ("So the last digit is that of {eq}.", "It ends like {eq}.")),),
        ),
        Op(
            "r",
            "mod(d, 10)",
            "the last digit",
            (
                "Its last digit: {eq}.",
                "{What} is [{r}].",
                "It ends in [{r}].",
                "So the last digit is {eq}.",
            ),
        ),
    ),
    {},
    (),
    (Bound("r < 10", "a digit such as {r} must be below 10"),),
    fits=("k > 0",),
    smallest=0,
    largest=6000,
    outlines=("The last digits of powers repeat.", "Look for the cycle of last digits.", "We use a cycle."),
    reads=False,
)

_CLOCK = Story(
    (
        "It is {h} o'clock now. Which hour will a clock with 12 hours show in {n} hours?",
        "A clock with 12 hours shows {h}. What will it show {n} hours from now?",
        "{name} starts a machine when the clock shows {h}. It runs for {n} hours. Which hour does the clock, "
        "with hours "
        "1 to 12, show at the end?",
        "On a clock face numbered 1 to 12 the hand points to {h}. Where does it point {n} hours later?",
    ),
    {"h": Given(range(1, 12), "as first hour", fixed=True), "n": Given(range(20, 200), "hours")},
    (
        Op("s", "h + n", "the hours counted from 12 o'clock"),
        Op(
            "r",
            "mod(s, 12)",
            "the hour shown",
            (
                "The clock repeats every 12 hours: {eq}.",
                "{What} is {eq}.",
                "Take away full turns: {eq}.",
                "So the clock shows {eq}.",
                "Modulo 12 we get {eq}.",
            ),
            (
                Mistake(UNIT, "mod(s, 10)", ("Take away full turns: {eq}.", "So the clock shows {eq}.")),
                Mistake(
                    UNIT, "mod(s, 24)", ("A day has 24 hours: {eq}.", "The clock repeats every 24 hours: {eq}.")
                ),
                Mistake(UNIT, "mod(s, 60)", ("The clock repeats every 60: {eq}.",)),
                Mistake(INFERENCE, "floor(s / 12)", ("Divide by 12: the clock shows {eq}.", "{What} is {eq}.")),
            ),
        ),
    ),
    {"name": NAMES},
    (),
    (Bound("r <= 12", "the hour {r} must not be above 12"),),
    fits=("r > 0",),
)

_LEFTOVER = Story(
    (
        "{name} has {a} trays of {b} {thing} and {c} single ones. They are packed in boxes of {m}. How many "
        "{thing} are "
        "left over?",
        "{a} bags with {b} {thing} each and {c} loose ones are put together and packed in boxes of {m}. How many "
        "do not "
        "fill a box?",
        "In {a} rows of {b} there are {thing}, and {c} more lie beside. After filling as many boxes of {m} as "
        "possible, "
        "how many {thing} remain?",
    ),
    {
        "a": Given(range(3, 16), "full lots"),
        "b": Given(range(6, 25), "{thing} in each lot"),
        "c": Given(range(2, 30), "single {thing}"),
        "m": Given(range(7, 25), "{thing} in a box"),
    },
    (
        Op("p", "a * b", "the {thing} in full lots"),
        Op("s", "p + c", "all the {thing}"),
        Op(
            "r",
            "mod(s, m)",
            "the number left over",
            (
                "Dividing into boxes leaves {eq}.",
                "{What} is {eq}.",
                "What does not fill a box is {eq}.",
                "The remainder is {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "floor(s / m)",
                    ("Dividing into boxes leaves {eq}.", "{What} is {eq}."),
                ),
                Mistake(INFERENCE, "m - mod(s, m)", ("What does not fill a box is {res}.", "{What} is {res}.")),
            ),
        ),
    ),
    {"name": NAMES, "thing": THINGS},
    (),
    (Bound("r < m", "the {r} left over must be fewer than {m}, or they would fill a box"),),
    fits=("r > 0",),
)

_NEXT = Story(
    (
        "What is the smallest integer greater than {n} that leaves the remainder {k} when divided by {m}?",
        "Find the least number above {n} which is {k} more than a multiple of {m}.",
        "{name} has more than {n} {thing}. In groups of {m}, {k} are left over. What is the least number that "
        "{name} can "
        "have?",
    ),
    {
        "n": Given((), "as lower bound", made="m * u + v"),
        "m": Given(range(11, 30), "as divisor"),
        "k": Given(range(1, 5), "as remainder", fixed=True),
    },
    (
        Op(
            "q",
            "floor(n / m)",
            "the number of full groups in {n}",
            (
                "[{m}] fits into [{n}] fully [{q}] times.",
                "{What} is {eq}.",
                "Divide and round down: {eq}.",
                "First, {eq}.",
            ),
        ),
        Op(
            "t",
            "q + 1",
            "the number of groups to take",
            (
                "That many groups are too few, so take {eq}.",
                "One group more is needed: {eq}.",
                "{What} is {eq}.",
                "We need the next multiple, with {eq} groups.",
            ),
            (Mistake(INFERENCE, "q", ("That many groups are enough, so take {res}.", "{What} is {res}.")),),
        ),
        Op("p", "t * m", "the multiple"),
        Op("x", "p + k", "the number wanted"),
    ),
    {"name": NAMES, "thing": THINGS},
    (Verify((Op("w", "answer - k"), Op("y", "w / m"), Op("z", "w / y")), "z", "m"),),
    (Bound("x > n", "the number {x} must be above {n}"), Bound("x <= n + m", "{x} must be within {m} of {n}")),
    largest=900,
    seeds={"u": Given(range(3, 25), ""), "v": Given(range(5, 10), "", fixed=True)},
)

REMAINDERS = (_PRODUCT, _UNITS_DIGIT, _CLOCK, _LEFTOVER, _NEXT)
