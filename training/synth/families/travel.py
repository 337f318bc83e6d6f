"""Travel: distances, speeds and times, fuel, meeting and catching up."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_PARTS = Story(
    (
        "A {car} goes {v} km/h for {t_} and then {w} km/h for {u_}. How far does it go?",
        "{name} rides a {car} for {t_} at {v} km/h, then for {u_} at {w} km/h. Find the whole distance.",
        "For {t_} a {car} travels at {v} km/h, and for the next {u_} at {w} km/h. What distance does it cover?",
        "{name} takes a {car} that makes {v} km an hour. After {t_} it goes on at {w} km an hour for {u_}. How "
        "many km is that in all?",
    ),
    {
        "v": Given(range(12, 49), "km in each of the first hours"),
        "t": Given(range(2, 8), "hours"),
        "w": Given(range(13, 45), "km in each later hour"),
        "u": Given(range(2, 8), "hours"),
    },
    (
        Op(
            "a",
            "v * t",
            "the first part",
            (
                "In the first {t} hours the {car} goes {eq} km.",
                "The first part is {eq} km.",
                "For the first part we get {eq} km.",
                "Distance is speed times time: {eq} km at first.",
            ),
            (Mistake(FORMULA, "v / t"),),
        ),
        Op("b", "w * u", "the second part"),
        Op("c", "a + b", "the whole way", mistakes=(Mistake(INFERENCE, "(v + w) * (t + u)"),)),
    ),
    {"name": NAMES, "car": ("truck", "bus", "tram", "boat", "ferry", "scooter")},
    (
        Verify((Op("x", "w * u"), Op("y", "answer - x"), Op("z", "y / t")), "z", "v"),
        Verify((Op("x", "v * t"), Op("y", "answer - x"), Op("z", "y / u")), "z", "w"),
    ),
    (Bound("c > a", "the whole way {c} must be longer than its first part {a}"),),
    largest=900,
)

_REST = Story(
    (
        "The way to the {place} is {s} km. {name} drives {v} km/h for {t_}, and the rest in {u_}. "
        "How fast must the rest be?",
        "{name} has {s} km to go to the {place} and covers {v} km an hour for {t_}. At what speed are "
        "the remaining {u} hours driven?",
        "To reach the {place}, {s} km away, {name} drives {t_} at {v} km/h and needs {u} more hours. What is the "
        "speed in these hours, in km/h?",
        "A trip of {s} km to the {place} starts with {t_} at {v} km/h. The rest takes {u} hours. Find the speed on "
        "the rest of the way.",
    ),
    {
        "s": Given(range(100, 400, 4), "km of way"),
        "v": Given(range(15, 60), "km an hour"),
        "t": Given(range(2, 7), "hours"),
        "u": Given(range(2, 7), "hours"),
    },
    (
        Op("a", "v * t", "the way done"),
        Op("b", "s - a", "the way left"),
        Op("c", "b / u", "the speed", mistakes=(Mistake(CASE, "s / u"), Mistake(INFERENCE, "s / (t + u)"))),
    ),
    {"name": NAMES, "place": ("lake", "coast", "camp", "city", "border", "farm")},
    (Verify((Op("x", "answer * u"), Op("y", "v * t"), Op("z", "x + y")), "z", "s", "add back"),),
    (Bound("b < s", "the way left, {b}, must be less than the whole way {s}"),),
)

_MEETING = Story(
    (
        "Two {cars}, {s} km apart, start at the same time toward each other, one at {v} km/h and one at {w} km/h. "
        "How many km does the first one go before they meet?",
        "{name} and {other} live {s} km apart and set out to meet each other. {name} goes {v} km/h and {other} {w} "
        "km/h. How far from the home of {name} do they meet, in km?",
        "Towns A and B are {s} km apart. A train leaves A at {v} km/h, and at the same moment another leaves B at "
        "{w} km/h on the same line. How far from A do they pass each other?",
    ),
    {
        "s": Given((), "km between them", made="(v + w) * h"),
        "v": Given(range(12, 70), "km/h for the first"),
        "w": Given(range(12, 70), "km/h for the second"),
    },
    (
        Op(
            "r",
            "v + w",
            "the speed at which they come closer",
            (
                "They come closer by {eq} km every hour.",
                "The speed at which they come closer is {eq}.",
                "In an hour the distance shrinks by {eq} km.",
                "Moving toward each other, they close {eq} km an hour.",
            ),
            (Mistake(FORMULA, "(v + w) / 2"),),
        ),
        Op("t", "s / r", "the time until they meet", mistakes=(Mistake(INFERENCE, "s / v"),)),
        Op("d", "v * t", "the way of the first one", mistakes=(Mistake(INFERENCE, "s / 2"),)),
    ),
    {"name": NAMES[:8], "other": NAMES[8:], "cars": ("cyclists", "cars", "riders", "boats")},
    (Verify((Op("t", "answer / v"), Op("y", "w * t"), Op("z", "answer + y")), "z", "s", "add back"),),
    (Bound("d < s", "the way of the first one, {d}, must be less than the distance {s}"),),
    fits=("v != w",),
    largest=900,
    seeds={"h": Given(range(2, 8), "")},
)

_CHASE = Story(
    (
        "{name} leaves at {v} km/h. {h} hours later {other} follows at {w} km/h on the same road. After how many "
        "hours of riding does {other} catch up?",
        "A ship sails at {v} km/h. A faster one follows {h} hours later at {w} km/h. How many hours does the "
        "faster one need to reach it?",
        "A truck drives {v} km/h and has a lead of {h} hours over a car that drives {w} km/h. How long does the "
        "car take to catch the truck, in hours?",
    ),
    {
        "v": Given((), "km/h for the slower", made="g * m"),
        "h": Given(range(2, 7), "hours of lead"),
        "w": Given((), "km/h for the faster", made="g * m + g"),
    },
    (
        Op(
            "l",
            "v * h",
            "the lead in km",
            (
                "In {h} hours the lead becomes {eq} km.",
                "The lead is {eq} km.",
                "At the start of the chase the distance is {eq} km.",
                "The first one is ahead by {eq} km.",
            ),
            (Mistake(CASE, "v"),),
        ),
        Op("d", "w - v", "the gain in km per hour"),
        Op("t", "l / d", "the time of the chase", mistakes=(Mistake(INFERENCE, "l / w"),)),
    ),
    {"name": NAMES[:8], "other": NAMES[8:]},
    (
        Verify((Op("x", "w * answer"), Op("y", "answer + h"), Op("z", "x / y")), "z", "v"),
        Verify((Op("y", "answer + h"), Op("x", "v * y"), Op("z", "x / answer")), "z", "w"),
    ),
    (Bound("d < w", "the gain per hour, {d}, must be less than the speed {w}"),),
    largest=900,
    seeds={"g": Given(range(4, 16), ""), "m": Given(range(2, 7), "")},
)

_FUEL = Story(
    (
        "A car needs {l} liters of fuel for 100 km. {name} drives {s} km, and a liter costs @{p}. What does the "
        "fuel cost?",
        "On a trip of {s} km a van uses {l} liters per 100 km. Fuel is @{p} a liter. How many dollars are spent "
        "on it?",
        "{name}'s bus burns {l} liters every 100 km. Find the price of the fuel for {s} km at @{p} a liter.",
    ),
    {
        "l": Given(range(4, 30), "liters for 100 km"),
        "s": Given(range(150, 1200, 50), "km"),
        "p": Given((2, 3, 4), "dollars a liter"),
    },
    (
        Op("a", "s / 100", "the number of hundreds of km"),
        Op("b", "a * l", "the fuel in liters", mistakes=(Mistake(FORMULA, "s / l"), Mistake(INFERENCE, "s * l"))),
        Op("c", "b * p", "the price of the fuel"),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer / p"), Op("y", "x / l"), Op("z", "y * 100")), "z", "s"),),
    (Bound("b < s", "the fuel in liters, {b}, must be less than the distance in km, {s}"),),
    largest=40000,
    smallest=0,
    whole=False,
    decimals=True,
)

TRAVEL = (_PARTS, _REST, _MEETING, _CHASE, _FUEL)
