"""Shares: reductions, fractions of a number, ratios and fractions of what is left."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_REDUCTION = Story(
    (
        "A {thing} costs @{p}. The price falls by {r}%, and delivery costs @{s}. What is paid in all?",
        "Find the final bill for a {thing} of @{p} after {r}% off, with @{s} for delivery.",
        "{name} orders a {thing} of @{p} at a discount of {r}% and pays @{s} for delivery. How much is that "
        "together?",
        "The price of @{p} for a {thing} is cut by {r}%. With @{s} for delivery, what does {name} pay?",
    ),
    {
        "p": Given(range(20, 400, 20), "dollars at first"),
        "r": Given(range(5, 65, 5), "percent off", fixed=True),
        "s": Given(range(4, 30), "dollars for delivery"),
    },
    (
        Op("a", "percent(r, p)", "the reduction", mistakes=(Mistake(INFERENCE, "r"), Mistake(FORMULA, "p / r"))),
        Op("b", "p - a", "the new price", mistakes=(Mistake(CASE, "a"),)),
        Op("c", "b + s", "the bill"),
    ),
    {"name": NAMES, "thing": ("coat", "desk", "bike", "chair", "tent", "carpet", "mirror")},
    (Verify((Op("x", "answer - s"), Op("w", "percent(r, p)"), Op("y", "x + w")), "y", "p", "add back"),),
    (
        Bound("b < p", "the new price {b} must be less than {p}"),
        Bound("a < p", "the reduction {a} must be less than the price {p}"),
    ),
    largest=800,
)

_SOLD = Story(
    (
        "Of {n} {things}, [{u}/{v}] are sold and {k} more are given away. How many are left?",
        "{name} has {n} {things}, sells [{u}/{v}] of them and gives {k} away. How many remain?",
        "{name} starts with {n} {things}. [{u}/{v}] of the {things} go to a shop, and {k} go to friends. How many "
        "does {name} keep?",
        "From a box of {n} {things}, [{u}/{v}] are taken out, and later another {k}. How many {things} stay in "
        "the box?",
    ),
    {
        "n": Given(range(24, 240, 4), "{things}"),
        "v": Given((3, 4, 5, 6, 7, 8), "equal parts", fixed=True),
        "u": Given((2, 3, 4, 5), "parts sold", fixed=True),
        "k": Given(range(3, 40), "given away"),
    },
    (
        Op("a", "n / v", "one part"),
        Op("b", "u * a", "the number in {u} parts", mistakes=(Mistake(CASE, "a"),)),
        Op("c", "n - b", "the number without these parts"),
        Op("d", "c - k", "the rest", mistakes=(Mistake(INFERENCE, "b - k"),)),
    ),
    {"name": NAMES, "things": ("stamps", "plums", "eggs", "tickets", "shells", "nuts")},
    (
        Verify(
            (Op("x", "answer + k"), Op("y", "n - x"), Op("z", "y / u"), Op("w", "z * v")),
            "w",
            "n",
            "add back",
        ),
    ),
    (
        Bound("d < n", "the rest {d} must be less than the {n} at the start"),
        Bound("b < n", "a part of {b} must be less than the whole {n}"),
    ),
    fits=("gcd(u, v) == 1", "u < v", "d > 0"),
    smallest=-40,
)

_RATIO = Story(
    (
        "{name} and {other} share {n} {things} in the ratio [{a}:{b}]. How many more does {name} get?",
        "{n} {things} are divided between {name} and {other} in the ratio [{a}:{b}]. Find the difference of their "
        "shares.",
        "The {things} of {name} and {other} are in the ratio [{a}:{b}], and together they have {n}. How many more "
        "does {name} have?",
    ),
    {
        "n": Given((), "{things}", made="(a + b) * u"),
        "a": Given(range(3, 12), "parts for {name}"),
        "b": Given(range(1, 8), "parts for {other}"),
    },
    (
        Op("p", "a + b", "the number of parts", mistakes=(Mistake(INFERENCE, "2"),)),
        Op("u", "n / p", "one part", mistakes=(Mistake(FORMULA, "n / a"), Mistake(FORMULA, "n / b"))),
        Op("v", "u * a", "the share of {name}"),
        Op("w", "u * b", "the share of {other}"),
        Op("d", "v - w", "the difference"),
    ),
    {"name": NAMES[:8], "other": NAMES[8:], "things": ("marbles", "coins", "cards", "stickers", "beads")},
    (
        Verify(
            (Op("k", "a - b"), Op("x", "answer / k"), Op("p", "a + b"), Op("z", "x * p")),
            "z",
            "n",
            "add back",
        ),
    ),
    (
        Bound("v < n", "the share {v} must be less than the whole {n}"),
        Bound("d < n", "the difference {d} must be less than the whole {n}"),
    ),
    fits=("a > b", "gcd(a, b) == 1"),
    largest=1500,
    seeds={"u": Given(range(3, 30), "")},
)

_LEFT = Story(
    (
        "{name} has @{m}, spends [1/{a}] of it on {thing} and then [1/{b}] of the rest on food. How much is left?",
        "From @{m}, [1/{a}] goes to {thing} and [1/{b}] of what remains to food. How many dollars remain?",
        "A tank holds {m} liters. First [1/{a}] of this is let out, and then [1/{b}] of the rest. How many liters "
        "are left?",
        "{name} reads [1/{a}] of a book of {m} pages on Monday and [1/{b}] of the remaining pages on Tuesday. How "
        "many pages are left?",
    ),
    {
        "m": Given((), "at first", made="a * b * u"),
        "a": Given((2, 3, 4, 5, 6, 7, 8), "equal parts at first"),
        "b": Given((2, 3, 4, 5, 6), "equal parts of the rest"),
    },
    (
        Op("c", "m / a", "the first part"),
        Op("r", "m - c", "the rest after that"),
        Op("v", "r / b", "the second part", mistakes=(Mistake(INFERENCE, "m / b"), Mistake(CASE, "c / b"))),
        Op("x", "r - v", "what is left", mistakes=(Mistake(CASE, "m - v"),)),
    ),
    {"name": NAMES, "thing": ("clothes", "books", "a present", "tickets")},
    (
        Verify(
            (Op("k", "b - 1"), Op("y", "answer / k"), Op("r", "y * b"), Op("j", "a - 1"), Op("z", "r / j * a")),
            "z",
            "m",
            "add back",
        ),
    ),
    (
        Bound("r < m", "the rest {r} must be less than the {m} at first"),
        Bound("x < r", "in the end {x} must be less than {r}"),
    ),
    largest=1000,
    seeds={"u": Given(range(2, 25), "")},
)

SHARES = (_REDUCTION, _SOLD, _RATIO, _LEFT)
