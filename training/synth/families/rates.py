"""The rates: proportion, unit prices and map scales, besides joint work."""

from stepsight.training.synth.families.joint import JOINT_WORK
from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_WORKERS = Story(
    (
        "{m} workers need {d} days for a road. How many days does it take if {k} more workers help from the start?",
        "A job takes {m} people {d} days. With {k} extra people of the same speed, how many days does it take?",
        "The feed lasts {d} days for {m} horses. How many days does it last if there are {k} more horses?",
        "{m} pumps drain a lake in {d} days. {k} pumps of the same kind are added at the start. In how many days "
        "is the lake drained?",
    ),
    {
        "m": Given(range(2, 16), "of them at first"),
        "d": Given(range(4, 31), "days"),
        "k": Given(range(1, 13), "more of them"),
    },
    (
        Op(
            "w",
            "m * d",
            "the work for one alone, in days",
            (
                "One alone would take {eq} days.",
                "For a single one it would be {eq} days.",
                "In all this is {eq} days for one.",
                "The work for one alone, in days, is {eq}.",
            ),
        ),
        Op("n", "m + k", "the new number of them"),
        Op(
            "x",
            "w / n",
            "the number of days",
            (
                "All {n} share it, so it takes {eq} days.",
                "With {n} of them the number of days is {eq}.",
                "For {n} of them that is {eq} days.",
                "So we get {eq} days.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "d * n / m",
                    (
                        "The days grow in proportion to the number, so it takes {eq} days.",
                        "With {n} of them the number of days is {eq}.",
                        "For {n} of them, in proportion, that is {eq} days.",
                        "So we get {eq} days.",
                    ),
                ),
                Mistake(INFERENCE, "d - k"),
                Mistake(CASE, "w / k"),
            ),
        ),
    ),
    {},
    (Verify((Op("n", "m + k"), Op("w", "answer * n"), Op("z", "w / m")), "z", "d", "substitute"),),
    (Bound("x < d", "with more of them it must be fewer days than {d}: {x} must be less than {d}"),),
    largest=900,
)

_PRICE = Story(
    (
        "{a} kg of {things} cost @{p}. {name} buys {b} kg and pays with @{q}. How much change does {name} get?",
        "If {a} kg of {things} cost @{p}, how much of @{q} is left after buying {b} kg?",
        "A bag of {a} kg of {things} is sold for @{p}. At the same price per kg, {name} buys {b} kg and has @{q}. "
        "How many dollars remain?",
    ),
    {
        "a": Given(range(2, 13), "kg at first"),
        "p": Given((), "dollars for them", made="a * u"),
        "b": Given(range(3, 20), "kg bought"),
        "q": Given((50, 80, 100, 120, 150, 200, 250), "dollars to pay with"),
    },
    (
        Op(
            "u",
            "p / a",
            "the price of one kg",
            (
                "One kg costs {eq} dollars.",
                "The price of one kg is {eq}.",
                "Per kg that is {eq}.",
                "For one kg: {eq}.",
            ),
        ),
        Op("c", "u * b", "the price of {b} kg", mistakes=(Mistake(INFERENCE, "p + b - a"),)),
        Op("r", "q - c", "the rest"),
    ),
    {"name": NAMES, "things": ("apples", "potatoes", "cherries", "nuts", "carrots", "grapes")},
    (Verify((Op("x", "q - answer"), Op("y", "x / b"), Op("z", "y * a")), "z", "p", "substitute"),),
    (Bound("r >= 0", "the rest {r} must be at least 0"), Bound("r < q", "the rest {r} must be less than {q}")),
    fits=("r > 0", "b != a"),
    smallest=-400,
    seeds={"u": Given(range(2, 12), "")},
)

_MAP = Story(
    (
        "On a map with scale [1 : {s}] two towns are {d} cm apart. {name} walks there and back. How many km is "
        "that?",
        "A map has the scale [1 : {s}]. A path on it is {d} cm long, and {name} walks it both ways. How many km "
        "does {name} walk?",
        "A trail measures {d} cm on a [1 : {s}] map. How many kilometers does one walk along the trail and back?",
    ),
    {
        "s": Given(
            (10000, 20000, 25000, 40000, 50000, 100000, 200000), "cm in nature for each on the map", fixed=True
        ),
        "d": Given(range(3, 40), "cm on the map"),
    },
    (
        Op("r", "d * s", "the distance in cm"),
        Op("m", "r / 100", "the distance in m"),
        Op("k", "m / 1000", "the distance in km"),
        Op("w", "2 * k", "the way there and back", mistakes=(Mistake(CASE, "k"),)),
    ),
    {"name": NAMES},
    (
        Verify(
            (Op("x", "answer / 2"), Op("y", "x * 1000"), Op("z", "y * 100"), Op("u", "z / s")),
            "u",
            "d",
            "convert back",
        ),
    ),
    (Bound("m < r", "the number of meters, {m}, must be less than the number of cm, {r}"),),
    largest=10**7,
    smallest=0,
    whole=False,
    decimals=True,
)

_MACHINES = Story(
    (
        "{a} machines make {n} parts in {h} hours. How many parts do {b} such machines make in {k} hours?",
        "In {h} hours {a} bakers make {n} rolls. At this rate, how many rolls do {b} bakers make in {k} hours?",
        "{n} letters are folded by {a} helpers in {h} hours. How many letters do {b} helpers fold in {k} hours?",
        "{a} printers print {n} pages in {h} minutes. How many pages do {b} printers print in {k} minutes?",
    ),
    {
        "a": Given(range(2, 9), "of them at first"),
        "n": Given((), "pieces made", made="v * a * h"),
        "h": Given(range(2, 10), "units of time at first"),
        "b": Given(range(3, 14), "of them later"),
        "k": Given(range(2, 12), "units of time later"),
    },
    (
        Op("u", "n / a", "what one makes in the first time", mistakes=(Mistake(CASE, "n"),)),
        Op("v", "u / h", "what one makes in one unit of time"),
        Op("w", "v * b", "what {b} make in one unit of time"),
        Op("x", "w * k", "what they make in the second time"),
    ),
    {},
    (
        Verify(
            (Op("y", "answer / k"), Op("z", "y / b"), Op("r", "z * h"), Op("t", "r * a")), "t", "n", "substitute"
        ),
    ),
    (Bound("v < n", "what one makes in one unit of time, {v}, must be less than the {n} of all"),),
    fits=("a != b",),
    largest=40000,
    seeds={"v": Given(range(3, 14), "")},
)

RATES = (*JOINT_WORK, _WORKERS, _PRICE, _MAP, _MACHINES)
