"""The averages: missing values, groups taken together, a value taken away, average speed."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_MEANS = (
    "The average is {eq}.",
    "Dividing the sum by the number gives {eq}.",
    "So the mean is {eq}.",
    "{What} is therefore {eq}.",
    "Now we divide: {eq}.",
)
_TOTALS = (
    "{What} is {eq}.",
    "An average times the number of values gives their sum: {eq}.",
    "{What} must be {eq}.",
    "We get {what} from {eq}.",
    "For {what} we find {eq}.",
)

_WANTED = Story(
    (
        "{name} scores {a}, {b} and {c} points in three games. How many points are needed in the fourth game for "
        "an average of {m}?",
        "The average of the four numbers {a}, {b}, {c} and x is {m}. What is x?",
        "{name} runs {a}, {b} and {c} km on three days. How far must the run on the fourth day be to average {m} "
        "km a day?",
        "Four numbers have mean {m}. Three of them are {a}, {b} and {c}. Find the fourth.",
    ),
    {
        "a": Given(range(11, 60), "as first value"),
        "b": Given(range(11, 60), "as second value"),
        "c": Given(range(11, 60), "as third value"),
        "m": Given(range(20, 60), "as average"),
    },
    (
        Op("s", "a + b + c", "the sum of the three values"),
        Op(
            "t",
            "4 * m",
            "the sum of all four",
            _TOTALS,
            (Mistake(CASE, "3 * m"), Mistake(FORMULA, "m + 4")),
        ),
        Op("x", "t - s", "the fourth value", mistakes=(Mistake(INFERENCE, "m - s / 3"),)),
    ),
    {"name": NAMES},
    (
        Verify((Op("u", "a + b + c"), Op("v", "u + answer"), Op("w", "v / 4")), "w", "m"),
        Verify((Op("u", "4 * m"), Op("v", "u - answer"), Op("w", "v - c"), Op("y", "w - b")), "y", "a"),
    ),
    (Bound("x > 0", "the fourth value, {x}, must be positive"),),
    fits=("x > 2",),
    largest=500,
    smallest=-200,
)

_REMOVED = Story(
    (
        "The average of {n} numbers is {m}. The number {k}, which is the largest, is removed. What is the average "
        "of the others?",
        "{n} players have an average weight of {m} kg. The heaviest, who weighs {k} kg, leaves. Find the average "
        "weight of those who stay.",
        "The mean of {n} test scores is {m}. When the best score, {k}, is left out, what is the mean of the rest?",
        "In {n} games {name} made {m} points on average, and {k} points in the best of them. What is the average "
        "without the best game?",
    ),
    {
        "n": Given(range(4, 10), "values"),
        "m": Given(range(40, 90), "as average"),
        "k": Given((), "as largest value", made="n * m - (n - 1) * (m - f)"),
    },
    (
        Op("s", "n * m", "the sum of all values", _TOTALS),
        Op("r", "s - k", "the sum of the others"),
        Op("q", "n - 1", "the number of the others", mistakes=(Mistake(CASE, "n"),)),
        Op("x", "r / q", "the new average", _MEANS),
    ),
    {"name": NAMES},
    (
        Verify((Op("p", "n - 1"), Op("u", "answer * p"), Op("v", "u + k"), Op("w", "v / n")), "w", "m"),
        Verify((Op("p", "n - 1"), Op("u", "answer * p"), Op("v", "n * m"), Op("w", "v - u")), "w", "k"),
    ),
    (
        Bound("x < m", "without the largest value the average {x} must be less than {m}"),
        Bound("r < s", "the sum of the others, {r}, must be less than the sum of all, {s}"),
    ),
    largest=1500,
    seeds={"f": Given(range(1, 9), "")},
)

_CLASSES = Story(
    (
        "In a class {a} girls have an average of {p} points and {b} boys an average of {q} points. What is the "
        "average of the whole class?",
        "The mean of {a} numbers is {p}, and the mean of {b} other numbers is {q}. Find the mean of all the "
        "numbers.",
        "{name} buys {a} plants at an average price of @{p} and {b} plants at an average price of @{q}. What is "
        "the average price of all of them?",
        "A hen house has {a} young hens with an average of {p} eggs a year and {b} old ones with an average of "
        "{q}. What is the average over all hens?",
    ),
    {
        "a": Given((4, 6, 8, 10, 12, 15, 16, 20, 24), "in the first group"),
        "p": Given(range(40, 90), "as average of the first group"),
        "b": Given((5, 6, 8, 10, 12, 14, 16, 20, 30), "in the second group"),
        "q": Given(range(50, 100), "as average of the second group"),
    },
    (
        Op("s", "a * p", "the sum of the first group"),
        Op("t", "b * q", "the sum of the second group"),
        Op("u", "s + t", "the sum of all"),
        Op("n", "a + b", "the number of all"),
        Op(
            "x",
            "u / n",
            "the average of all",
            _MEANS,
            (
                Mistake(
                    INFERENCE,
                    "(p + q) / 2",
                    (
                        "The average is {eq}.",
                        "Halfway between the two means we get {eq}.",
                        "So the mean is {eq}.",
                        "{What} is therefore the mean of the two averages: {eq}.",
                        "Now we divide: {eq}.",
                    ),
                ),
            ),
        ),
    ),
    {"name": NAMES},
    (
        Verify(
            (Op("n", "a + b"), Op("u", "n * answer"), Op("s", "a * p"), Op("t", "u - s"), Op("w", "t / b")),
            "w",
            "q",
        ),
    ),
    (
        Bound("p < x", "the average of all, {x}, must be greater than the {p} of the first group"),
        Bound("x < q", "the average of all, {x}, must be less than the {q} of the second group"),
    ),
    fits=("p < q",),
    largest=6000,
    whole=False,
    decimals=True,
)

_OTHERS = Story(
    (
        "The average of {n} numbers is {m}. The average of {k} of them is {p}. Find the average of the others.",
        "{n} workers earn @{m} a day on average, and {k} of them earn @{p} on average. What do the others earn on "
        "average?",
        "A team of {n} scored {m} points per player, while its {k} starters scored {p} per player. What was the "
        "average of the rest?",
    ),
    {
        "n": Given((), "values", made="k + g"),
        "m": Given(range(40, 90), "as average of all"),
        "k": Given(range(2, 8), "in the first part"),
        "p": Given((), "as average of the first part", made="m - g * f"),
    },
    (
        Op("s", "n * m", "the sum of all", _TOTALS),
        Op("t", "k * p", "the sum of the first part", _TOTALS),
        Op("r", "s - t", "the sum of the others"),
        Op("j", "n - k", "the number of the others"),
        Op(
            "x",
            "r / j",
            "the average of the others",
            _MEANS,
            (Mistake(FORMULA, "r / n"), Mistake(FORMULA, "r / k")),
        ),
    ),
    {},
    (
        Verify(
            (Op("u", "n - k"), Op("v", "u * answer"), Op("w", "k * p"), Op("y", "v + w"), Op("z", "y / n")),
            "z",
            "m",
        ),
    ),
    (
        Bound("x > m", "as {p} is less than {m}, the average of the others, {x}, must be greater than {m}"),
        Bound("r < s", "the sum of the others, {r}, must be less than the sum of all, {s}"),
    ),
    fits=("p > 5",),
    largest=1500,
    seeds={"g": Given(range(2, 6), ""), "f": Given(range(1, 8), "")},
)

_HALFWAY = (
    "The average speed is {eq} km/h.",
    "As an average of {v} and {w} we get {eq} km/h.",
    "The mean of both speeds: {eq} km/h.",
    "So on average it is {eq} km/h.",
)

_RETURN = Story(
    (
        "{name} drives {s} km at {v} km/h and the same way back at {w} km/h. What is the average speed of the "
        "whole trip?",
        "A truck covers {s} km at {v} km/h and then another {s} km at {w} km/h. Find its average speed.",
        "The distance between two towns is {s} km. A bus goes there at {v} km/h and returns at {w} km/h. What is "
        "its average speed for the round trip, in km/h?",
    ),
    {
        "s": Given(range(120, 720, 120), "km each way"),
        "v": Given((20, 24, 30, 40), "km/h on the first way", fixed=True),
        "w": Given((40, 60, 120), "km/h on the second way", fixed=True),
    },
    (
        Op("t", "s / v", "the time of the first way"),
        Op("u", "s / w", "the time of the second way"),
        Op("h", "t + u", "the whole time"),
        Op("d", "2 * s", "the whole distance", mistakes=(Mistake(CASE, "s"),)),
        Op(
            "x",
            "d / h",
            "the average speed",
            (
                "The average speed is {eq} km/h.",
                "Distance over time gives {eq} km/h.",
                "The whole distance in the whole time: {eq} km/h.",
                "So on average it is {eq} km/h.",
            ),
            (Mistake(INFERENCE, "(v + w) / 2", _HALFWAY),),
        ),
    ),
    {"name": NAMES},
    (
        Verify(
            (Op("d", "2 * s"), Op("h", "d / answer"), Op("u", "s / w"), Op("t", "h - u"), Op("y", "s / t")),
            "y",
            "v",
        ),
    ),
    (
        Bound("v < x", "the average speed {x} must be greater than the {v} of the first way"),
        Bound("x < w", "the average speed {x} must be less than the {w} of the way back"),
    ),
    fits=("v < w",),
    largest=1500,
    whole=False,
)

AVERAGES = (_WANTED, _REMOVED, _CLASSES, _OTHERS, _RETURN)
