"""Joint work: two that work together or against each other, such as a pump and a leak."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify


def _share(key: str, hours: str, what: str) -> Op:
    says = (
        f"In one hour, {what} is {{eq}}.",
        f"Per hour, {what} is {{eq}}.",
        f"Each hour {what} is {{eq}} of the whole.",
        "{What} in an hour is {eq}.",
    )
    return Op(key, f"1 / {hours}", what, says)


_JOINT = Story(
    (
        "{name} paints a room in {a} hours, and {other} paints it in {b} hours. How many hours do they need "
        "together?",
        "One pipe fills a tank in {a} hours, another fills it in {b} hours. How many hours does it take if both "
        "are open?",
        "Working alone, {name} needs {a} hours for a job and {other} needs {b}. How long does the job take them "
        "together, in hours?",
        "Machine A finishes an order in {a} hours and machine B in {b} hours. In how many hours do they finish it "
        "when they work side by side?",
    ),
    {
        "a": Given(range(2, 16), "hours for the first alone"),
        "b": Given(range(3, 21), "hours for the second alone"),
    },
    (
        _share("u", "a", "the first one's part"),
        _share("w", "b", "the second one's part"),
        Op(
            "s",
            "u + w",
            "the joint part in an hour",
            (
                "Together they do {eq} of it in an hour.",
                "The joint part per hour is {eq}.",
                "Adding the two parts: {eq}.",
                "In an hour both together do {eq}.",
            ),
            (
                Mistake(FORMULA, "2 / (a + b)"),
                Mistake(FORMULA, "1 / (a + b)"),
                Mistake(INFERENCE, "(u + w) / 2"),
            ),
        ),
        Op(
            "t",
            "1 / s",
            "the time together",
            (
                "The whole takes {eq} hours.",
                "So together they need {eq} hours.",
                "The time together is {eq} hours.",
                "For the whole we get {eq} hours.",
            ),
            (Mistake(INFERENCE, "(a + b) / 2"), Mistake(INFERENCE, "a + b")),
        ),
    ),
    {"name": NAMES[:5], "other": NAMES[5:]},
    (
        Verify(
            (Op("x", "answer / a"), Op("y", "1 - x"), Op("z", "answer / y")),
            "z",
            "b",
            "substitute",
        ),
    ),
    (
        Bound("t < a", "together they must be faster than the first alone: {t} must be less than {a}"),
        Bound("t < b", "together they must be faster than the second alone: {t} must be less than {b}"),
        Bound("s < 1", "in an hour they must do less than the whole: {s} must be less than 1"),
    ),
    fits=("a != b", "s < 1"),
    smallest=0,
    whole=False,
)

_LEAK = Story(
    (
        "A pump fills a tank in {a} hours, but a leak would empty the full tank in {b} hours. How many hours does "
        "the pump need to fill the leaking tank?",
        "A tap fills a tub in {a} minutes, and the open drain empties it in {b} minutes. How many minutes does it "
        "take to fill the tub with the drain open?",
        "One pipe fills a pool in {a} hours; another empties it in {b} hours. Starting empty, when is the pool "
        "full if both are open, in hours?",
    ),
    {
        "a": Given(range(2, 13), "for filling"),
        "b": Given(range(4, 25), "for emptying"),
    },
    (
        Op(
            "u",
            "1 / a",
            "the part that flows in per unit of time",
            ("Per unit of time {eq} of it flows in.", "{What} is {eq}.", "Each time unit adds {eq} of the whole."),
        ),
        Op(
            "w",
            "1 / b",
            "the part that flows out per unit of time",
            (
                "Per unit of time {eq} of it flows out.",
                "{What} is {eq}.",
                "Each time unit takes {eq} of the whole.",
            ),
        ),
        Op(
            "s",
            "u - w",
            "the part that is gained per unit of time",
            (
                "What stays in per unit of time is {eq}.",
                "The part gained per unit of time is {eq}.",
                "In and out together give {eq}.",
                "So the gain per unit of time is {eq} of the whole.",
            ),
            (Mistake(FORMULA, "1 / (b - a)"), Mistake(CASE, "u")),
        ),
        Op("t", "1 / s", "the time to fill it", mistakes=(Mistake(INFERENCE, "b - a"),)),
    ),
    {},
    (
        Verify(
            (Op("x", "answer / a"), Op("y", "x - 1"), Op("z", "answer / y")),
            "z",
            "b",
            "substitute",
        ),
    ),
    (Bound("t > a", "with the outflow it must take longer than without it: {t} must be greater than {a}"),),
    fits=("a < b",),
    smallest=0,
    whole=False,
)

_TANK = Story(
    (
        "A tank for {c} liters holds {f} liters. A tap adds {p} liters a minute, and {q} liters a minute run out. "
        "In how many minutes is the tank full?",
        "{f} of {c} liters are in a pool. Each minute {p} liters flow in and {q} liters leak out. After how many "
        "minutes is the pool full?",
        "A barrel of {c} liters already holds {f} liters. It gains {p} liters and loses {q} liters every minute. "
        "How long does it take to fill it, in minutes?",
    ),
    {
        "c": Given((), "liters in a full one", made="f + g * t"),
        "f": Given(range(20, 150), "liters at the start"),
        "p": Given((), "liters in a minute", made="q + g"),
        "q": Given(range(3, 20), "liters out a minute"),
    },
    (
        Op("e", "c - f", "the missing amount", mistakes=(Mistake(CASE, "c"),)),
        Op(
            "r",
            "p - q",
            "the gain in a minute",
            (
                "In a minute the gain is {eq} liters.",
                "Each minute it gains {eq} liters.",
                "The gain in a minute is {eq}.",
                "Per minute that is {eq} liters more.",
            ),
            (Mistake(CASE, "p"),),
        ),
        Op("t", "e / r", "the number of minutes"),
    ),
    {},
    (Verify((Op("r", "p - q"), Op("x", "answer * r"), Op("y", "x + f")), "y", "c", "substitute"),),
    (Bound("e < c", "the missing amount {e} must be less than the {c} of a full one"),),
    largest=900,
    seeds={"g": Given(range(2, 15), ""), "t": Given(range(6, 40), "")},
)

JOINT_WORK = (_JOINT, _LEAK, _TANK)
