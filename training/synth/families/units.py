"""The units: problems of time, length, weight, money and speed in which units must be converted."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE, UNIT
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_SPEED = Story(
    (
        "A {mover} covers {d} m in {t} s. What is its speed in km/h?",
        "In {t} seconds a {mover} goes {d} meters. Find its speed in kilometers per hour.",
        "A {mover} moves {d} meters every {t} seconds. How many kilometers does it go in an hour?",
        "It takes a {mover} {t} seconds to cover {d} meters at constant speed. Express this speed in km/h.",
    ),
    {
        "d": Given(range(250, 1500, 50), "meters"),
        "t": Given((20, 25, 40, 50), "seconds", fixed=True),
    },
    (
        Op(
            "v",
            "d / t",
            "the speed in meters per second",
            (
                "In one second the {mover} covers {eq} meters.",
                "Speed is distance over time: {eq} m/s.",
                "The speed is {eq} meters per second.",
                "Per second that makes {eq} m.",
            ),
        ),
        Op(
            "h",
            "v * 3600",
            "the way in an hour, in meters",
            (
                "For an hour we get {eq} meters.",
                "In one hour the {mover} goes {eq} meters.",
                "Convert seconds to hours: {eq} m per hour.",
                "That is {eq} meters in an hour.",
            ),
            (Mistake(UNIT, "v * 60"),),
        ),
        Op(
            "k",
            "h / 1000",
            "the speed in km/h",
            (
                "In kilometers this is {eq} km/h.",
                "Convert meters to kilometers: {eq} km/h.",
                "The speed is {eq} km/h.",
                "So the {mover} goes {eq} km in an hour.",
            ),
        ),
    ),
    {"mover": ("train", "falcon", "motorbike", "sports car", "swallow", "drone")},
    (
        Verify((Op("x", "answer * 1000"), Op("y", "x / 3600"), Op("z", "y * t")), "z", "d", "convert back"),
        Verify((Op("x", "answer / 18"), Op("y", "x * 5"), Op("z", "y * t")), "z", "d", "convert back"),
    ),
    (Bound("k > v", "the number of km/h, {k}, must be greater than the number of m/s, {v}"),),
    largest=200000,
    smallest=0,
    whole=False,
    decimals=True,
)

_SCHOOL = Story(
    (
        "School lasts from {s} o'clock to {e} o'clock. There are {b} breaks of {m} minutes and {n} lessons of "
        "equal length. How many minutes is a lesson?",
        "A school day runs from [{s}:00] to [{e}:00] with {n} equally long lessons and {b} breaks of {m} minutes "
        "each. How long is one lesson, in minutes?",
        "Between [{s}:00] and [{e}:00] a class has {n} lessons, all of the same length, and {b} breaks, each of "
        "{m} minutes. Find the length of a lesson in minutes.",
    ),
    {
        "s": Given((7, 8, 9), "o'clock as start", fixed=True),
        "e": Given((12, 13, 14, 15, 16), "o'clock as end", fixed=True),
        "b": Given((2, 3, 4), "breaks"),
        "m": Given((10, 15, 20, 25, 30), "minutes a break"),
        "n": Given((4, 5, 6), "lessons"),
    },
    (
        Op("h", "e - s", "the number of hours at school"),
        Op(
            "t",
            "h * 60",
            "the time at school in minutes",
            (
                "In minutes this is {eq}.",
                "Convert to minutes: {eq}.",
                "The day has {eq} minutes.",
                "{h} hours are {eq} minutes.",
                "The whole time is {eq} minutes.",
            ),
        ),
        Op("p", "b * m", "the time for breaks", mistakes=(Mistake(CASE, "m"),)),
        Op("r", "t - p", "the time for lessons"),
        Op("l", "r / n", "the length of a lesson"),
    ),
    {},
    (
        Verify(
            (Op("x", "answer * n"), Op("y", "b * m"), Op("z", "x + y"), Op("w", "z / 60"), Op("v", "s + w")),
            "v",
            "e",
            "convert back",
        ),
    ),
    largest=800,
)

_STOCK = Story(
    (
        "A {keeper} has {k} kg of {food} and {n} animals. Each animal eats {g} g a day. How many grams are left "
        "after {d_}?",
        "A sack holds {k} kg of {food}. Each of {n} animals gets {g} g of it every day. How many grams remain "
        "after {d_}?",
        "There are {k} kg of {food} in the barn. A {keeper} feeds {n} animals {g} grams each per day. How much, "
        "in grams, is left after {d_}?",
    ),
    {
        "k": Given(range(5, 41), "kg of {food}"),
        "n": Given(range(3, 13), "animals"),
        "g": Given(range(40, 260, 10), "g a day for each"),
        "d": Given(range(3, 15), "days", {7: "a week", 14: "two weeks"}),
    },
    (
        Op(
            "s",
            "k * 1000",
            "the stock in grams",
            (
                "The stock in grams is {eq}.",
                "In grams, the stock is {eq}.",
                "Convert the {food} to grams: {eq}.",
                "{k} kg are {eq} g.",
                "As grams, that is {eq} g of {food}.",
            ),
        ),
        Op("u", "n * g", "what all animals eat in a day"),
        Op("t", "u * d", "what they eat in all", mistakes=(Mistake(INFERENCE, "g * d"),)),
        Op("r", "s - t", "the rest in grams"),
    ),
    {"keeper": ("farmer", "shepherd", "ranger", "breeder"), "food": ("grain", "feed", "hay", "oats")},
    (
        Verify(
            (Op("x", "n * g"), Op("y", "x * d"), Op("z", "answer + y"), Op("w", "z / 1000")),
            "w",
            "k",
            "convert back",
        ),
    ),
    (
        Bound("r >= 0", "the rest of {r} g must be at least 0"),
        Bound("r < s", "the rest of {r} g must be less than the stock of {s} g"),
    ),
    fits=("r > 0",),
    largest=60000,
    smallest=-60000,
)

_FENCE = Story(
    (
        "A straight fence is {m} m long and has a post every {c} cm, with a post at both ends. How many posts are "
        "there?",
        "Lamps stand along a straight path of {m} m, one every {c} cm, the first at its start and the last at its "
        "end. How many lamps are there?",
        "Flags are put up along a {m} m wall at distances of {c} cm, including both ends of the wall. How many "
        "flags are needed?",
    ),
    {
        "m": Given(range(10, 120, 2), "m of length"),
        "c": Given((20, 25, 40, 50, 80, 125), "cm between neighbors", fixed=True),
    },
    (
        Op("l", "m * 100", "the length in centimeters"),
        Op("g", "l / c", "the number of gaps"),
        Op(
            "p",
            "g + 1",
            "the number asked for",
            (
                "There is one more than there are gaps: {eq}.",
                "Counting both ends, {eq}.",
                "Both ends count, so the number is {eq}.",
                "With the one at the start, that is {eq}.",
                "Together with the first one, this makes {eq}.",
            ),
            (
                Mistake(
                    CASE,
                    "g",
                    (
                        "There is one for each gap, so the number is {res}.",
                        "Each gap has one, which makes {res}.",
                        "So the number asked for is {res}, as many as there are gaps.",
                    ),
                ),
                Mistake(CASE, "g - 1", ("There is one less than there are gaps: {eq}.", "Between the ends, {eq}.")),
            ),
        ),
    ),
    {},
    (Verify((Op("x", "answer - 1"), Op("y", "x * c"), Op("z", "y / 100")), "z", "m", "convert back"),),
    (Bound("p > g", "with one at both ends the number {p} must be greater than the number of gaps {g}"),),
    largest=20000,
)

_CALLS = Story(
    (
        "A call costs {c} cents a minute. {name} makes {n} calls of {m} minutes. How many dollars is that?",
        "{name} makes {n} calls, each {m} minutes long, at {c} cents per minute. Find the cost in dollars.",
        "Renting a scooter costs {c} cents a minute. {name} rents it {n} times for {m} minutes. How many dollars "
        "does {name} pay in all?",
    ),
    {
        "c": Given((4, 5, 6, 8, 10, 12, 15, 16, 18, 20, 25), "cents a minute"),
        "n": Given(range(2, 16), "times"),
        "m": Given(range(4, 36), "minutes each time"),
    },
    (
        Op("a", "n * m", "the number of minutes"),
        Op("b", "a * c", "the cost in cents"),
        Op(
            "d",
            "b / 100",
            "the cost in dollars",
            (
                "In dollars this is {eq}.",
                "Convert to dollars: {eq}.",
                "The cost in dollars is {eq}.",
                "As dollars, that is {eq}.",
                "{name} pays {eq} dollars.",
            ),
        ),
    ),
    {"name": NAMES},
    (
        Verify((Op("x", "answer * 100"), Op("y", "x / c"), Op("z", "y / n")), "z", "m", "convert back"),
        Verify((Op("x", "answer * 100"), Op("y", "n * m"), Op("z", "x / y")), "z", "c", "convert back"),
    ),
    (Bound("d < b", "the number of dollars, {d}, must be less than the number of cents, {b}"),),
    largest=12000,
    smallest=0,
    whole=False,
    decimals=True,
)


def _leg(key: str, speed: str, minutes: str, part: str) -> Op:
    says = (
        f"The {part} part is {{eq}} km long.",
        f"In {{{minutes}}} minutes at {{{speed}}} km/h the car goes {{eq}} km.",
        f"For the {part} part we get {{eq}} km.",
        f"{{{minutes}}} minutes at {{{speed}}} km/h make {{eq}} km.",
        f"The {part} part: {{eq}} km.",
    )
    mistakes = (
        Mistake(UNIT, f"{speed} * {minutes} / 100"),
        Mistake(UNIT, f"{speed} * {minutes}"),
        Mistake(FORMULA, f"{speed} / {minutes}"),
        Mistake(FORMULA, f"{minutes} * 60 / {speed}"),
    )
    return Op(key, f"{speed} * {minutes} / 60", f"the {part} part in km", says, mistakes)


_DRIVE = Story(
    (
        "A car goes {v} km/h for {m} minutes and then {w} km/h for {n} minutes. How many kilometers is that?",
        "{name} drives {m} minutes at {v} km/h through the {town} and {n} minutes at {w} km/h behind it. How long "
        "is the way in km?",
        "Driving at {v} km/h for {m} minutes and at {w} km/h for another {n} minutes, what distance in kilometers "
        "does a car cover?",
    ),
    {
        "v": Given(range(24, 66, 6), "km/h at first"),
        "m": Given(range(5, 60, 5), "minutes at first", fixed=True),
        "w": Given(range(66, 130, 6), "km/h later"),
        "n": Given(range(5, 60, 5), "minutes later", fixed=True),
    },
    (
        _leg("a", "v", "m", "first"),
        _leg("b", "w", "n", "second"),
        Op("c", "a + b", "the whole way in km"),
    ),
    {"name": NAMES, "town": ("town", "village", "park", "valley")},
    (
        Verify(
            (Op("x", "v * m"), Op("y", "x / 60"), Op("z", "answer - y"), Op("r", "z * 60"), Op("u", "r / n")),
            "u",
            "w",
            "convert back",
        ),
    ),
    (
        Bound("a < v", "in less than an hour the first part {a} must be less than {v} km"),
        Bound("b < w", "in less than an hour the second part {b} must be less than {w} km"),
    ),
    largest=8000,
    smallest=0,
    whole=False,
    decimals=True,
)

UNITS = (_SPEED, _SCHOOL, _STOCK, _FENCE, _CALLS, _DRIVE)
