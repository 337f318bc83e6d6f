"""Ages: how old persons are now, were or will be."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_KIN = Story(
    (
        "{name} is {a} years old. {other} is {d} years older, and their {kin} is {k} times as old as "
        "{other}. How old will the {kin} be in {t} years?",
        "Their {kin} is {k} times as old as {other}, who is {d} years older than {name}. {name} is {a}. "
        "Find the age of the {kin} {t} years from now.",
        "{name} is {a}, and {other} is {d} years older than {name}. Their {kin} is {k} times as old as {other}. "
        "What will the age of the {kin} be after {t} years?",
    ),
    {
        "a": Given(range(5, 20), "years for {name}"),
        "d": Given(range(2, 14), "years more for {other}"),
        "k": Given((2, 3, 4), "times the age", fixed=True),
        "t": Given(range(3, 30), "years to come"),
    },
    (
        Op("b", "a + d", "the age of {other}"),
        Op("c", "k * b", "the age of the {kin}", mistakes=(Mistake(INFERENCE, "k * a"),)),
        Op("e", "c + t", "the later age"),
    ),
    {"name": NAMES[:8], "other": NAMES[8:], "kin": ("aunt", "uncle", "coach", "teacher")},
    (Verify((Op("x", "answer - t"), Op("y", "x / k"), Op("z", "y - d")), "z", "a"),),
    (
        Bound("b > a", "{other} must be older than {name}: {b} must be greater than {a}"),
        Bound("e > c", "the later age {e} must be greater than the age {c} now"),
    ),
    largest=160,
)

_SUM = Story(
    (
        "{name} is {k} times as old as {other}. In {t} years the sum of their ages will be {s}. How old is {name} "
        "now?",
        "Today {name} is {k} times as old as {other}, and in {t} years they will be {s} years old together. Find "
        "the present age of {name}.",
        "In {t} years the ages of {name} and {other} will add up to {s}. Now {name} is {k} times as old as "
        "{other}. How old is {name}?",
    ),
    {
        "k": Given((2, 3, 4, 5, 6), "times the age", fixed=True),
        "t": Given(range(2, 16), "years to come"),
        "s": Given((), "years as later sum", made="(k + 1) * x + 2 * t"),
    },
    (
        Op(
            "u",
            "2 * t",
            "the growth of the sum",
            (
                "Both grow older, so the sum grows by {eq}.",
                "In {t} years the sum of the ages grows by {eq}.",
                "The growth of the sum is {eq}.",
                "Until then the sum increases by {eq}.",
            ),
            (
                Mistake(
                    CASE,
                    "t",
                    (
                        "{t} years pass, so the sum grows by {res}.",
                        "In {t} years the sum of the ages grows by {res}.",
                        "The growth of the sum is {res}.",
                        "Until then the sum increases by {res}.",
                    ),
                ),
            ),
        ),
        Op("v", "s - u", "the sum of the ages now"),
        Op(
            "w",
            "k + 1",
            "the number of equal parts in this sum",
            (
                "The sum is {eq} times the age of {other}.",
                "In this sum the age of {other} is contained {eq} times.",
                "Counted in ages of {other}, the sum has {eq} parts.",
                "The number of equal parts is {eq}.",
            ),
            (Mistake(INFERENCE, "k"),),
        ),
        Op("x", "v / w", "the age of {other}"),
        Op("y", "k * x", "the age of {name}"),
    ),
    {"name": NAMES[:8], "other": NAMES[8:]},
    (
        Verify(
            (Op("x", "answer / k"), Op("y", "answer + x"), Op("u", "2 * t"), Op("z", "y + u")),
            "z",
            "s",
            "substitute",
        ),
    ),
    (
        Bound("y < s", "the age {y} must be less than the later sum {s}"),
        Bound("y > x", "{name} must be older than {other}: {y} must be greater than {x}"),
    ),
    seeds={"x": Given(range(3, 15), "")},
)

_LATER = Story(
    (
        "{name} is {a} years old. In {t} years {name} will be {k} times as old as {other} will be then. How old is "
        "{other} now?",
        "In {t} years {name}, who is {a} now, will be {k} times as old as {other}. Find the age of {other} today.",
        "{t} years from now {name} will be {k} times as old as {other}. Today {name} is {a}. What is the present "
        "age of {other}?",
    ),
    {
        "a": Given((), "years for {name}", made="k * (x + t) - t"),
        "t": Given(range(2, 10), "years to come"),
        "k": Given((2, 3, 4), "times the age", fixed=True),
    },
    (
        Op("u", "a + t", "the later age of {name}"),
        Op("v", "u / k", "the later age of {other}", mistakes=(Mistake(INFERENCE, "a / k"),)),
        Op(
            "x",
            "v - t",
            "the age of {other} now",
            mistakes=(
                Mistake(
                    CASE,
                    "v",
                    (
                        "So {other} is {res} now.",
                        "{What} is {res}.",
                        "This means that {what} is {res}.",
                        "Now {other} is {res} years old.",
                    ),
                ),
            ),
        ),
    ),
    {"name": NAMES[:8], "other": NAMES[8:]},
    (Verify((Op("x", "answer + t"), Op("y", "x * k"), Op("z", "y - t")), "z", "a", "substitute"),),
    (
        Bound("x < v", "the age {x} now must be less than the later age {v}"),
        Bound("v < u", "{other} must be younger than {name}: {v} must be less than {u}"),
    ),
    seeds={"x": Given(range(3, 14), "")},
)

AGES = (_KIN, _SUM, _LATER)
