"""Shopping: bills, change, discounts for sets and shared bills."""

from stepsight.training.synth.families.names import NAMES, THINGS, WEEKS, dozens
from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_CHANGE = Story(
    (
        "{name} buys {n_} at @{p} each and a bag for @{q}, and pays with @{paid}. What is the change?",
        "One of the {thing} costs @{p}. {name} takes {n} of them, adds a bag for @{q} and gives @{paid}. "
        "What is the change?",
        "With @{paid} in hand, {name} buys {n_} (each @{p}) and a bag (@{q}). How much money is left?",
        "At a market, {thing} are @{p} apiece and a bag is @{q}. {name} wants {n_} and a bag and has @{paid}. How "
        "many dollars will {name} have after that?",
        "{name} hands over @{paid} for {n} {thing} that cost @{p} each and for a bag that costs @{q}. Find the "
        "change.",
    ),
    {
        "n": Given(range(3, 16), "{thing}", {12: "a dozen {thing}", 6: "half a dozen {thing}"}),
        "p": Given(range(3, 19), "dollars for one"),
        "q": Given(range(5, 40), "dollars for the bag"),
        "paid": Given((50, 60, 80, 100, 150, 200, 250, 300), "dollars paid"),
    },
    (
        Op("a", "n * p", "the cost of the {thing}"),
        Op("b", "a + q", "the total", mistakes=(Mistake(INFERENCE, "n * (p + q)"),)),
        Op("c", "paid - b", "the change"),
    ),
    {"name": NAMES, "thing": THINGS},
    (
        Verify((Op("x", "n * p"), Op("y", "x + q"), Op("z", "y + answer")), "z", "paid", "add back"),
        Verify((Op("x", "paid - answer"), Op("y", "x - q"), Op("z", "y / n")), "z", "p", "add back"),
    ),
    (
        Bound("c < paid", "the change {c} must be less than the {paid} that was paid"),
        Bound("c >= 0", "the change {c} must be at least 0"),
    ),
    fits=("c >= 1",),
    smallest=-400,
)

_SAVINGS = Story(
    (
        "{name} has @{s} and earns @{w} a day for {d_}. Then {name} buys {n} {thing} at @{p} each. "
        "How many dollars remain?",
        "Working {d_} at @{w} a day, {name} adds to savings of @{s} and then buys {n} {thing} at @{p}. "
        "How much is left?",
        "{name} had saved @{s} before a job of {d_} that paid @{w} a day. Afterwards {name} spent the price of {n} "
        "{thing} at @{p} each. How much money does {name} have now?",
        "A job pays @{w} a day. {name} works {d_}, starting with @{s} in the bank, and orders {n} {thing} for @{p} "
        "each. What is left in dollars?",
    ),
    {
        "s": Given(range(15, 99), "dollars saved"),
        "w": Given(range(6, 25), "dollars a day"),
        "d": Given(range(3, 15), "days", WEEKS),
        "n": Given(range(2, 10), "{thing}"),
        "p": Given(range(4, 20), "dollars for one"),
    },
    (
        Op("a", "w * d", "the pay"),
        Op("b", "s + a", "the money in all", mistakes=(Mistake(CASE, "a"),)),
        Op("c", "n * p", "the price of the {thing}"),
        Op("e", "b - c", "the rest"),
    ),
    {"name": NAMES, "thing": THINGS},
    (
        Verify(
            (Op("x", "n * p"), Op("y", "answer + x"), Op("z", "y - s"), Op("u", "z / d")),
            "u",
            "w",
            "add back",
        ),
    ),
    (Bound("e < b", "the rest {e} must be less than the {b} before the purchase"),),
)

_SETS = Story(
    (
        "A {thing} costs @{p}. For every {k} of them bought together the shop takes @{d} off. {name} buys {n}. "
        "What does {name} pay?",
        "A store sells a {thing} for @{p} and gives a rebate of @{d} on each full set of {k}. Find the price of "
        "{n} of them.",
        "{name} needs {n} pieces of a {thing} that costs @{p}. With each {k} pieces, @{d} is refunded. How many "
        "dollars does {name} spend in all?",
    ),
    {
        "n": Given((), "pieces", made="k * m"),
        "p": Given(range(6, 25), "dollars for one"),
        "k": Given(range(3, 9), "in a set"),
        "d": Given(range(2, 12), "dollars off a set"),
    },
    (
        Op("a", "n * p", "the full price"),
        Op("s", "n / k", "the number of sets"),
        Op("o", "s * d", "the rebate", mistakes=(Mistake(INFERENCE, "n * d"), Mistake(CASE, "d"))),
        Op("t", "a - o", "the price to pay"),
    ),
    {"name": NAMES, "thing": ("chair", "lantern", "flower pot", "tile", "shelf", "basket")},
    (
        Verify(
            (Op("s", "n / k"), Op("o", "s * d"), Op("x", "answer + o"), Op("y", "x / n")),
            "y",
            "p",
            "add back",
        ),
    ),
    (
        Bound("t < a", "with the rebate the price {t} must be less than the full price {a}"),
        Bound("s < n", "the number of sets, {s}, must be less than the number of pieces, {n}"),
    ),
    largest=1000,
    seeds={"m": Given(range(2, 7), "")},
)

_PARTY = Story(
    (
        "{k} friends share a bill for {a} pizzas at @{p} each and {b} drinks at @{q} each. What does each of them "
        "pay?",
        "{a} tickets at @{p} and {b} snacks at @{q} are paid for by {k} people in equal parts. How many dollars "
        "is one part?",
        "A group of {k} orders {a} main dishes for @{p} each and {b} desserts for @{q} each and splits the bill "
        "evenly. Find the share of each.",
        "{name} and the other members of a team of {k} buy {a} shirts at @{p} and {b} caps at @{q}, all paying the "
        "same. How much does {name} pay?",
    ),
    {
        "k": Given(range(3, 10), "people"),
        "a": Given(range(2, 12), "of the first thing"),
        "p": Given(range(8, 25), "dollars for each of the first"),
        "b": Given(range(2, 14), "of the second thing"),
        "q": Given(range(2, 10), "dollars for each of the second"),
    },
    (
        Op("u", "a * p", "the price of the first things"),
        Op("v", "b * q", "the price of the second things"),
        Op("w", "u + v", "the bill", mistakes=(Mistake(FORMULA, "(a + b) * (p + q)"),)),
        Op("x", "w / k", "the share of each", mistakes=(Mistake(CASE, "u / k"), Mistake(INFERENCE, "w / (k + 1)"))),
    ),
    {"name": NAMES},
    (
        Verify(
            (Op("y", "answer * k"), Op("u", "a * p"), Op("v", "y - u"), Op("z", "v / b")),
            "z",
            "q",
            "add back",
        ),
    ),
    (Bound("x < w", "the share {x} must be less than the whole bill {w}"),),
    largest=1200,
)

_BASKET = Story(
    (
        "{name} buys {n_} at @{p} each and sells all of them at @{s} each, after paying @{f} for a stand. What is "
        "the profit?",
        "A stand costs {name} @{f}. {n_} are bought at @{p} each and sold at @{s} each. Find the profit in "
        "dollars.",
        "{name} sells {n_} at @{s} each. Each was bought for @{p}, and the stand costs @{f}. How much does {name} "
        "earn?",
    ),
    {
        "n": Given((6, 9, 10, 12, 15, 18, 20, 24, 30), "eggs", dozens("eggs")),
        "p": Given(range(1, 9), "dollars paid for one"),
        "s": Given(range(3, 15), "dollars received for one"),
        "f": Given(range(4, 30), "dollars for the stand"),
    },
    (
        Op("g", "s - p", "the gain on one egg", mistakes=(Mistake(CASE, "s"),)),
        Op("a", "n * g", "the gain on all eggs"),
        Op("b", "a - f", "the profit", mistakes=(Mistake(INFERENCE, "n * (g - f)"),)),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer + f"), Op("y", "x / n"), Op("z", "y + p")), "z", "s", "add back"),),
    (Bound("b < a", "after paying for the stand the profit {b} must be less than {a}"),),
    fits=("s > p", "b > 0"),
    smallest=-900,
    largest=900,
)

SHOPPING = (_CHANGE, _SAVINGS, _SETS, _PARTY, _BASKET)
