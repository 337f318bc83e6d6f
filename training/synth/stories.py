"""The stories: word problems in the manner of GSM8K and MATH, by family."""

from training.synth.story import Given, Op, Story, Verify

NAMES = ("Ann", "Ben", "Mia", "Tom", "Lena", "Omar", "Ruth", "Ivan", "Nora", "Sam")
THINGS = ("pens", "books", "mugs", "toys", "lamps", "cups", "hats", "balls")
WEEKS = {7: "a week", 14: "two weeks"}
DOZENS = {12: "a dozen {unit}", 24: "two dozen {unit}", 6: "half a dozen {unit}"}


def dozens(unit: str) -> dict[int, str]:
    return {value: text.format(unit=unit) for value, text in DOZENS.items()}


SHOPPING = (
    Story(
        (
            "{name} buys {n_} at @{p} each and a bag for @{q}, and pays with @{paid}. What is the change?",
            "One of the {thing} costs @{p}. {name} takes {n} of them, adds a bag for @{q} and gives @{paid}. "
            "What is the change?",
            "With @{paid} in hand, {name} buys {n_} (each @{p}) and a bag (@{q}). How much money is left?",
        ),
        {
            "n": Given(range(3, 16), "{thing}", {12: "a dozen {thing}", 6: "half a dozen {thing}"}),
            "p": Given(range(3, 19), "dollars for one"),
            "q": Given(range(5, 40), "dollars for the bag"),
            "paid": Given((50, 60, 80, 100, 150, 200, 250, 300), "dollars paid"),
        },
        (
            Op("a", "n", "*", "p", "the cost of the {thing}"),
            Op("b", "a", "+", "q", "the total"),
            Op("c", "paid", "-", "b", "the change"),
        ),
        {"name": NAMES, "thing": THINGS},
        Verify(
            (Op("x", "n", "*", "p"), Op("y", "x", "+", "q"), Op("z", "y", "+", "answer")),
            "z",
            "paid",
            "add back",
        ),
    ),
    Story(
        (
            "{name} has @{s} and earns @{w} a day for {d_}. Then {name} buys {n} {thing} at @{p} each. "
            "How many dollars remain?",
            "Working {d_} at @{w} a day, {name} adds to savings of @{s} and then buys {n} {thing} at @{p}. "
            "How much is left?",
        ),
        {
            "s": Given(range(15, 99), "dollars saved"),
            "w": Given(range(6, 25), "dollars a day"),
            "d": Given(range(3, 15), "days", WEEKS),
            "n": Given(range(2, 10), "{thing}"),
            "p": Given(range(4, 20), "dollars for one"),
        },
        (
            Op("a", "w", "*", "d", "the pay"),
            Op("b", "s", "+", "a", "the money in all"),
            Op("c", "n", "*", "p", "the price of the {thing}"),
            Op("e", "b", "-", "c", "the rest"),
        ),
        {"name": NAMES, "thing": THINGS},
    ),
)

TRAVEL = (
    Story(
        (
            "A {car} goes {v} km/h for {t_} and then {w} km/h for {u_}. How far does it go?",
            "{name} rides a {car} for {t_} at {v} km/h, then for {u_} at {w} km/h. Find the whole distance.",
        ),
        {
            "v": Given(range(12, 49), "km in each of the first hours"),
            "t": Given(range(2, 8), "hours"),
            "w": Given(range(13, 45), "km in each later hour"),
            "u": Given(range(2, 8), "hours"),
        },
        (
            Op("a", "v", "*", "t", "the first part"),
            Op("b", "w", "*", "u", "the second part"),
            Op("c", "a", "+", "b", "the whole way"),
        ),
        {"name": NAMES, "car": ("truck", "bus", "tram", "boat")},
        Verify((Op("x", "w", "*", "u"), Op("y", "answer", "-", "x"), Op("z", "y", "/", "t")), "z", "v"),
        largest=450,
    ),
    Story(
        (
            "The way to the {place} is {s} km. {name} drives {v} km/h for {t_}, and the rest in {u_}. "
            "How fast must the rest be?",
            "{name} has {s} km to go to the {place} and covers {v} km an hour for {t_}. At what speed are "
            "the remaining {u} hours driven?",
        ),
        {
            "s": Given(range(100, 400, 4), "km of way"),
            "v": Given(range(15, 60), "km an hour"),
            "t": Given(range(2, 7), "hours"),
            "u": Given(range(2, 7), "hours"),
        },
        (
            Op("a", "v", "*", "t", "the way done"),
            Op("b", "s", "-", "a", "the way left"),
            Op("c", "b", "/", "u", "the speed"),
        ),
        {"name": NAMES, "place": ("lake", "coast", "camp", "city")},
        Verify(
            (Op("x", "answer", "*", "u"), Op("y", "v", "*", "t"), Op("z", "x", "+", "y")),
            "z",
            "s",
            "add back",
        ),
    ),
)

RECIPES = (
    Story(
        (
            "A cake needs {f} g of flour. {name} bakes {n_} and has {h} g. How many grams are missing?",
            "{name} wants {n_}, each with {f} g of flour, but has only {h} g. How much more flour is needed?",
        ),
        {
            "f": Given(range(11, 45), "g for one cake"),
            "n": Given(range(4, 15), "cakes", dozens("cakes")),
            "h": Given(range(20, 150), "g at hand"),
        },
        (
            Op("a", "f", "*", "n", "the flour needed"),
            Op("b", "a", "-", "h", "the missing flour"),
        ),
        {"name": NAMES},
        Verify((Op("x", "answer", "+", "h"), Op("y", "x", "/", "n")), "y", "f", "add back"),
        largest=500,
    ),
    Story(
        (
            "{name} squeezes {k_}, {m} ml from each, adds {w} ml of water and fills {g} equal glasses. "
            "How much is in a glass?",
            "From {k_} {name} gets {m} ml of juice each. With {w} ml of water it fills {g} glasses evenly. "
            "How many ml are in one?",
        ),
        {
            "k": Given(range(3, 13), "oranges", dozens("oranges")),
            "m": Given(range(11, 40), "ml from each"),
            "w": Given(range(20, 150), "ml of water"),
            "g": Given(range(2, 10), "glasses"),
        },
        (
            Op("a", "k", "*", "m", "the juice"),
            Op("b", "a", "+", "w", "the drink"),
            Op("c", "b", "/", "g", "one glass"),
        ),
        {"name": NAMES},
        Verify((Op("x", "answer", "*", "g"), Op("y", "x", "-", "w"), Op("z", "y", "/", "k")), "z", "m"),
        largest=500,
    ),
)

WORK = (
    Story(
        (
            "{name} packs {r} boxes an hour, {h} hours a day, for {d_}. {l} boxes were needed. "
            "How many are left over?",
            "In an hour {name} fills {r} boxes. After {d_} of {h} hours, {l} boxes go. How many remain?",
        ),
        {
            "r": Given(range(3, 13), "boxes an hour"),
            "h": Given(range(3, 9), "hours a day"),
            "d": Given(range(2, 8), "days", WEEKS),
            "l": Given(range(20, 140), "boxes to give away"),
        },
        (
            Op("a", "r", "*", "h", "the day's work"),
            Op("b", "a", "*", "d", "the work in all"),
            Op("c", "b", "-", "l", "the rest"),
        ),
        {"name": NAMES},
        Verify((Op("x", "answer", "+", "l"), Op("y", "x", "/", "d"), Op("z", "y", "/", "h")), "z", "r"),
    ),
    Story(
        (
            "A hall has {r_} of {c} seats. {e} seats are empty and {k} guests are children. "
            "How many adults are there?",
            "In a hall with {r_} of {c} seats each, {e} seats stay free. {k} of the guests are children. "
            "How many guests are adults?",
        ),
        {
            "r": Given(range(8, 20), "rows", dozens("rows")),
            "c": Given(range(8, 22), "seats in a row"),
            "e": Given(range(11, 60), "empty seats"),
            "k": Given(range(11, 80), "children"),
        },
        (
            Op("a", "r", "*", "c", "the number of seats"),
            Op("b", "a", "-", "e", "the number of guests"),
            Op("g", "b", "-", "k", "the number of adults"),
        ),
        {},
        Verify(
            (Op("x", "answer", "+", "k"), Op("y", "x", "+", "e"), Op("z", "y", "/", "r")),
            "z",
            "c",
            "add back",
        ),
    ),
)

AGES = (
    Story(
        (
            "{name} is {a} years old. {other} is {d} years older, and their {kin} is {k} times as old as "
            "{other}. How old will the {kin} be in {t} years?",
            "Their {kin} is {k} times as old as {other}, who is {d} years older than {name}. {name} is {a}. "
            "Find the age of the {kin} {t} years from now.",
        ),
        {
            "a": Given(range(5, 20), "years for {name}"),
            "d": Given(range(2, 14), "years more for {other}"),
            "k": Given((2, 3, 4), "times the age"),
            "t": Given(range(3, 30), "years to come"),
        },
        (
            Op("b", "a", "+", "d", "the age of {other}"),
            Op("c", "k", "*", "b", "the age of the {kin}"),
            Op("e", "c", "+", "t", "the later age"),
        ),
        {"name": NAMES[:5], "other": NAMES[5:], "kin": ("aunt", "uncle", "coach", "teacher")},
        Verify((Op("x", "answer", "-", "t"), Op("y", "x", "/", "k"), Op("z", "y", "-", "d")), "z", "a"),
        largest=160,
    ),
)
