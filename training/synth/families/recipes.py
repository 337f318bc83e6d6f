"""Recipes: ingredients for several cakes, juice in glasses, amounts for more persons, flour in loaves."""

from stepsight.training.synth.families.names import NAMES, dozens
from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_CAKES = Story(
    (
        "A cake needs {f} g of flour. {name} bakes {n_} and has {h} g. How many grams are missing?",
        "{name} wants {n_}, each with {f} g of flour, but has only {h} g. How much more flour is needed?",
        "For one cake {name} takes {f} g of flour. There are {h} g in the kitchen. How many grams must be bought "
        "for {n_}?",
        "{h} g of flour are at hand, and each cake takes {f} g. How many more grams does {name} need to bake {n_}?",
    ),
    {
        "f": Given(range(11, 45), "g for one cake"),
        "n": Given(range(4, 15), "cakes", dozens("cakes")),
        "h": Given(range(20, 150), "g at hand"),
    },
    (
        Op("a", "f * n", "the flour needed"),
        Op("b", "a - h", "the missing flour", mistakes=(Mistake(CASE, "a"), Mistake(INFERENCE, "(f - h) * n"))),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer + h"), Op("y", "x / n")), "y", "f", "add back"),),
    (Bound("b < a", "the missing flour, {b} g, must be less than the {a} g needed"),),
    fits=("b > 0",),
    largest=800,
    smallest=-2000,
)

_JUICE = Story(
    (
        "{name} squeezes {k_}, {m} ml from each, adds {w} ml of water and fills {g} equal glasses. "
        "How much is in a glass?",
        "From {k_} {name} gets {m} ml of juice each. With {w} ml of water it fills {g} glasses evenly. "
        "How many ml are in one?",
        "An orange gives {m} ml of juice. {name} presses {k_}, pours in {w} ml of water and shares the drink "
        "among {g} glasses. How many ml does each glass hold?",
        "{g} glasses are filled to the same height with the juice of {k_} ({m} ml each) and {w} ml of water. Find "
        "the amount in one glass in ml.",
    ),
    {
        "k": Given(range(3, 13), "oranges", dozens("oranges")),
        "m": Given(range(11, 40), "ml from each"),
        "w": Given(range(20, 150), "ml of water"),
        "g": Given(range(2, 10), "glasses"),
    },
    (
        Op("a", "k * m", "the juice"),
        Op("b", "a + w", "the drink", mistakes=(Mistake(INFERENCE, "k * (m + w)"),)),
        Op("c", "b / g", "one glass", mistakes=(Mistake(CASE, "a / g"),)),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer * g"), Op("y", "x - w"), Op("z", "y / k")), "z", "m"),),
    (Bound("c < b", "one glass with {c} ml must hold less than the whole drink of {b} ml"),),
    largest=900,
)

_PERSONS = Story(
    (
        "A recipe for {p} persons takes {f} g of {food}. {name} cooks for {n} persons and has {h} g. How many "
        "grams of {food} are missing?",
        "{f} g of {food} are enough for {p} people. {n} people come, and {h} g are in the cupboard. How many more "
        "grams are needed?",
        "To feed {p} persons one needs {f} g of {food}. How many grams must {name} buy for {n} persons if {h} g "
        "are left from yesterday?",
    ),
    {
        "p": Given(range(2, 9), "persons in the recipe"),
        "f": Given((), "g in the recipe", made="p * u"),
        "n": Given(range(5, 25), "persons to feed"),
        "h": Given(range(20, 300, 5), "g at hand"),
    },
    (
        Op(
            "u",
            "f / p",
            "the amount for one person",
            (
                "One person needs {eq} g.",
                "The amount for one person is {eq} g.",
                "Per person that is {eq} g.",
                "For one person it takes {eq} g.",
            ),
        ),
        Op(
            "a",
            "u * n",
            "the amount for all",
            mistakes=(Mistake(INFERENCE, "f + n - p"), Mistake(FORMULA, "f * n")),
        ),
        Op("m", "a - h", "the missing amount"),
    ),
    {"name": NAMES, "food": ("rice", "pasta", "beans", "lentils", "potatoes")},
    (Verify((Op("x", "answer + h"), Op("y", "x / n"), Op("z", "y * p")), "z", "f", "add back"),),
    (Bound("u < f", "the amount for one person, {u} g, must be less than the {f} g of the recipe"),),
    fits=("n != p", "m > 0"),
    largest=40000,
    smallest=-4000,
    seeds={"u": Given(range(20, 125, 5), "")},
)

_LOAVES = Story(
    (
        "A bakery has {k} kg of flour and puts {g} g into each loaf. A loaf sells for @{p}. What do all the loaves "
        "bring in?",
        "{name} bakes loaves with {g} g of flour each until {k} kg are used up and sells every loaf for @{p}. How "
        "many dollars does {name} take in?",
        "From {k} kg of flour a baker makes loaves of {g} g of flour each. How much money do they bring at @{p} a "
        "loaf?",
    ),
    {
        "k": Given(range(2, 31), "kg of flour"),
        "g": Given((125, 200, 250, 400, 500), "g in a loaf", fixed=True),
        "p": Given(range(2, 8), "dollars for a loaf"),
    },
    (
        Op("s", "k * 1000", "the flour in grams"),
        Op("n", "s / g", "the number of loaves"),
        Op("i", "n * p", "the income"),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer / p"), Op("y", "x * g"), Op("z", "y / 1000")), "z", "k", "convert back"),),
    (Bound("n < s", "the number of loaves, {n}, must be less than the number of grams, {s}"),),
    largest=31000,
)

RECIPES = (_CAKES, _JUICE, _PERSONS, _LOAVES)
