"""Work: boxes packed, seats taken, overtime paid, pages read."""

from stepsight.training.synth.families.names import NAMES, WEEKS, dozens
from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_BOXES = Story(
    (
        "{name} packs {r} boxes an hour, {h} hours a day, for {d_}. {l} boxes were needed. How many are left over?",
        "In an hour {name} fills {r} boxes. After {d_} of {h} hours, {l} boxes go. How many remain?",
        "A job of {h} hours a day lasts {d_}. {name} finishes {r} boxes every hour, and {l} of them are sold. How "
        "many boxes are not sold?",
        "{name} works {d_}, {h} hours each day, and packs {r} boxes per hour. Then {l} boxes are sent off. How "
        "many boxes stay?",
    ),
    {
        "r": Given(range(3, 13), "boxes an hour"),
        "h": Given(range(3, 9), "hours a day"),
        "d": Given(range(2, 8), "days", WEEKS),
        "l": Given(range(20, 140), "boxes to give away"),
    },
    (
        Op("a", "r * h", "the day's work"),
        Op("b", "a * d", "the work in all"),
        Op("c", "b - l", "the rest", mistakes=(Mistake(CASE, "a - l"),)),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer + l"), Op("y", "x / d"), Op("z", "y / h")), "z", "r"),),
    (
        Bound("c >= 0", "the rest {c} must be at least 0"),
        Bound("c < b", "the rest {c} must be less than all {b} boxes"),
    ),
    fits=("c > 0",),
    smallest=-200,
    largest=700,
)

_SEATS = Story(
    (
        "A hall has {r_} of {c} seats. {e} seats are empty and {k} guests are children. How many adults are there?",
        "In a hall with {r_} of {c} seats each, {e} seats stay free. {k} of the guests are children. "
        "How many guests are adults?",
        "The {place} has {r_} with {c} seats in each. All but {e} seats are taken, {k} of them by children. How "
        "many adults came?",
        "{k} children and some adults sit in a {place} with {r_} of {c} seats, and {e} seats are free. Find the "
        "number of adults.",
    ),
    {
        "r": Given(range(8, 20), "rows", dozens("rows")),
        "c": Given(range(8, 22), "seats in a row"),
        "e": Given(range(11, 60), "empty seats"),
        "k": Given(range(11, 80), "children"),
    },
    (
        Op("a", "r * c", "the number of seats"),
        Op("b", "a - e", "the number of guests"),
        Op("g", "b - k", "the number of adults", mistakes=(Mistake(INFERENCE, "a - k"),)),
    ),
    {"place": ("theater", "cinema", "circus", "concert hall")},
    (Verify((Op("x", "answer + k"), Op("y", "x + e"), Op("z", "y / r")), "z", "c", "add back"),),
    (
        Bound("g < a", "the number of adults, {g}, must be less than the number of seats, {a}"),
        Bound("b < a", "the number of guests, {b}, must be less than the number of seats, {a}"),
    ),
)

_OVERTIME = Story(
    (
        "{name} earns @{w} an hour for the first {h} hours of a week and @{x} more for each hour beyond. What does "
        "{name} earn in a week of {t} hours?",
        "The pay is @{w} an hour up to {h} hours a week; every further hour is paid @{x} better. {name} works {t} "
        "hours. Find the pay for the week.",
        "For up to {h} hours a week a {job} gets @{w} an hour, and for overtime @{x} an hour on top of that. How "
        "much is paid for {t} hours?",
    ),
    {
        "w": Given(range(8, 31), "dollars an hour"),
        "h": Given((30, 35, 36, 38, 40), "hours at the usual pay", fixed=True),
        "x": Given(range(2, 13), "dollars more an hour"),
        "t": Given(range(42, 61), "hours in the week"),
    },
    (
        Op("b", "w * h", "the usual pay"),
        Op("o", "t - h", "the overtime in hours"),
        Op("r", "w + x", "the pay for an hour of overtime", mistakes=(Mistake(CASE, "x"), Mistake(CASE, "w"))),
        Op("e", "o * r", "the pay for overtime", mistakes=(Mistake(INFERENCE, "t * r"),)),
        Op("s", "b + e", "the pay for the week"),
    ),
    {"name": NAMES, "job": ("driver", "nurse", "cook", "guard")},
    (
        Verify(
            (Op("b", "w * h"), Op("y", "answer - b"), Op("o", "t - h"), Op("r", "y / o"), Op("z", "r - w")),
            "z",
            "x",
            "add back",
        ),
    ),
    (Bound("o < t", "the overtime {o} must be less than all {t} hours"),),
    largest=3000,
)

_PAGES = Story(
    (
        "A book has {p} pages. {name} reads {a} pages a day for {d_} and then {b} pages a day. How many days does "
        "the book take in all?",
        "{name} reads {a} pages of a book of {p} pages on each of {d} days, and after that {b} pages a day. In "
        "how many days is the book read?",
        "For {d_} {name} reads {a} pages daily, later {b}. The book has {p} pages. Find the number of days needed "
        "for it.",
        "A road of {p} m is built, at first {a} m a day for {d_}, then {b} m a day. How many days does it take "
        "altogether?",
    ),
    {
        "p": Given((), "in all", made="a * d + b * e"),
        "a": Given(range(8, 30), "a day at first"),
        "d": Given(range(3, 15), "days", WEEKS),
        "b": Given(range(10, 45), "a day later"),
    },
    (
        Op("u", "a * d", "what is done at first"),
        Op("r", "p - u", "what is left"),
        Op("e", "r / b", "the number of days for the rest", mistakes=(Mistake(FORMULA, "r / a"),)),
        Op("t", "d + e", "the number of days in all", mistakes=(Mistake(CASE, "e"),)),
    ),
    {"name": NAMES},
    (Verify((Op("e", "answer - d"), Op("y", "b * e"), Op("z", "p - y"), Op("w", "z / d")), "w", "a", "add back"),),
    (
        Bound("r < p", "what is left, {r}, must be less than the whole {p}"),
        Bound("t > d", "the number of days in all, {t}, must be greater than {d}"),
    ),
    fits=("a != b",),
    largest=1200,
    seeds={"e": Given(range(3, 20), "")},
)

WORK = (_BOXES, _SEATS, _OVERTIME, _PAGES)
