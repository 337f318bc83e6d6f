"""Expectations: average gains, fair prices and expected numbers."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_PER_GAME = (
    "On average this makes {eq}.",
    "Dividing by the number of outcomes, {what} is {eq}.",
    "All outcomes are equally likely, so {what} is {eq}.",
    "{What} is {eq}.",
    "Per outcome we get {eq}.",
    "The expected value is {eq}.",
)

_SPINNER = Story(
    (
        "A spinner has {n} equal sectors. On {a} of them one wins @{x}, on the others @{y}. What is the expected "
        "win?",
        "{name} turns a wheel with {n} equal fields, {a} of which pay @{x} while each other field pays @{y}. Find "
        "the expected payment.",
        "In a bag are {n} tickets: {a} are worth @{x}, the rest @{y}. One ticket is drawn at random. Compute its "
        "expected value in dollars.",
        "A box holds {n} envelopes, {a} with @{x} and the others with @{y}. {name} opens one at random. How much "
        "money can {name} expect on average?",
    ),
    {
        "n": Given(range(4, 13), "equally likely outcomes"),
        "a": Given(range(1, 8), "outcomes with the higher value", fixed=True),
        "x": Given(range(10, 50), "dollars as the higher value"),
        "y": Given(range(2, 12), "dollars as the lower value", fixed=True),
    },
    (
        Op("m", "n - a", "the number of outcomes with the lower value"),
        Op("u", "a * x", "the sum of the higher values"),
        Op(
            "v",
            "m * y",
            "the sum of the lower values",
            (
                "The others add [{m}] times [{y}] dollars: {eq}.",
                "{What} is {eq}.",
                "The remaining outcomes bring {eq}.",
                "For the rest we have {eq}.",
            ),
            (
                Mistake(CASE, "y", ("The lower value adds {eq} dollars.",)),
                Mistake(FORMULA, "n * y", ("The lower value comes [{n}] times, which adds {eq}.",)),
            ),
        ),
        Op("t", "u + v", "the sum of all values"),
        Op(
            "e",
            "t / n",
            "the expected value",
            _PER_GAME,
            (
                Mistake(
                    INFERENCE,
                    "(x + y) / 2",
                    (
                        "There are two possible values, so the expected one is their mean {eq}.",
                        "One gets either [{x}] or [{y}], on average {eq}.",
                    ),
                ),
                Mistake(FORMULA, "t / 2", ("There are two kinds of outcomes, so the expected value is {eq}.",)),
            ),
        ),
    ),
    {"name": NAMES},
    (
        Verify(
            (Op("w", "answer * n"), Op("k", "n - a"), Op("l", "k * y"), Op("r", "w - l"), Op("s", "r / a")),
            "s",
            "x",
        ),
    ),
    (
        Bound("e < x", "an average cannot reach the highest value, so [{e}] must be less than [{x}]"),
        Bound("e > y", "an average lies above the lowest value, so [{e}] must be more than [{y}]"),
    ),
    ("a < n", "y < x"),
    largest=700,
    whole=False,
)

_RAFFLE = Story(
    (
        "{n} tickets of a raffle are sold at @{c} each. There is one prize of @{p} and there are {k} prizes of "
        "@{q}. What is the expected loss of somebody who buys one ticket?",
        "In a lottery with {n} tickets, one ticket wins @{p} and {k} tickets win @{q}. A ticket costs @{c}. Find "
        "the expected loss per ticket in dollars.",
        "A school sells {n} tickets for @{c} each and gives away one prize worth @{p} and {k} prizes worth @{q}. "
        "How many dollars does a buyer lose on average?",
        "{name} buys one of {n} tickets for @{c}. One of them wins @{p}, and {k} others win @{q} each. Compute the "
        "expected loss.",
    ),
    {
        "n": Given(range(40, 200, 10), "tickets"),
        "c": Given(range(6, 16), "dollars for a ticket"),
        "p": Given(range(50, 400, 10), "dollars as the main prize"),
        "k": Given(range(2, 10), "small prizes"),
        "q": Given(range(5, 40, 5), "dollars as a small prize"),
    },
    (
        Op(
            "t",
            "k * q",
            "the value of the small prizes",
            (
                "The small prizes are worth {eq} dollars.",
                "{What} is {eq}.",
                "For the small prizes we have {eq}.",
                "[{k}] small prizes make {eq} dollars.",
            ),
            (Mistake(CASE, "q", ("The small prize is worth {eq} dollars.",)),),
        ),
        Op("s", "p + t", "the value of all prizes"),
        Op(
            "e",
            "s / n",
            "the expected win",
            _PER_GAME,
            (
                Mistake(
                    FORMULA,
                    "s / (k + 1)",
                    (
                        "Divided by the number of prizes, the expected win is {eq}.",
                        "A prize is worth {eq} on average, so this is the expected win.",
                    ),
                ),
            ),
        ),
        Op(
            "g",
            "c - e",
            "the expected loss",
            (
                "The ticket costs [{c}] dollars, so the loss is {eq} on average.",
                "{What} is the price less the expected win: {eq}.",
                "{What} is {eq}.",
                "Subtracting the expected win from the price, we get {eq}.",
            ),
            (
                Mistake(SIGN, "e - c", ("The expected loss is {eq}.", "So one loses {eq} on average.")),
                Mistake(INFERENCE, "c", ("The price of the ticket is lost in any case, so the loss is {eq}.",)),
            ),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("x", "c - answer"), Op("y", "x * n"), Op("t", "k * q"), Op("z", "y - t")), "z", "p"),),
    (
        Bound("g < c", "with a chance of a prize the loss [{g}] must be less than the price [{c}]"),
        Bound("g > 0", "the prizes are worth less than all the tickets, so the loss [{g}] must be positive"),
    ),
    ("g > 0",),
    largest=800,
    smallest=-100,
    whole=False,
    decimals=True,
)

_DIE = Story(
    (
        "{name} rolls a fair die. A six wins @{a}, any other number loses @{b}. How many dollars does {name} win "
        "on average in {n} rolls?",
        "A player gets @{a} for a six and pays @{b} for every other number of a fair die. What is the expected "
        "gain of {n} rolls?",
        "With a fair six-sided die, a six pays @{a} and anything else costs @{b}. Find the expected total gain in "
        "{n} games.",
        "In a game with an ordinary die one receives @{a} for a six and gives @{b} otherwise. It is played {n} "
        "times. Compute the expected gain in dollars.",
    ),
    {
        "a": Given(range(12, 80), "dollars for a six"),
        "b": Given(range(1, 9), "dollars to pay otherwise"),
        "n": Given(range(6, 60, 6), "rolls"),
    },
    (
        Op(
            "l",
            "5 * b",
            "the loss on the other five numbers",
            (
                "The other five numbers cost {eq} dollars.",
                "{What} is {eq}.",
                "On the five losing numbers we pay {eq}.",
                "Five numbers lose: {eq}.",
            ),
            (
                Mistake(CASE, "b", ("Otherwise {eq} dollars are lost.", "On the losing side we pay {eq}.")),
                Mistake(FORMULA, "6 * b", ("Six numbers cost {eq} dollars.",)),
            ),
        ),
        Op("d", "a - l", "the gain over all six numbers"),
        Op(
            "e",
            "d / 6",
            "the expected gain of one roll",
            _PER_GAME,
            (
                Mistake(
                    INFERENCE,
                    "(a - b) / 2",
                    (
                        "One either wins or loses, so the expected gain of one roll is {eq}.",
                        "There are two possible results, on average {eq}.",
                    ),
                ),
            ),
        ),
        Op(
            "t",
            "n * e",
            "the expected gain of all rolls",
            (
                "In [{n}] rolls this is {eq}.",
                "{What} is {eq}.",
                "For [{n}] rolls we multiply: {eq}.",
                "All rolls together bring {eq}.",
            ),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer / n"), Op("y", "x * 6"), Op("z", "5 * b"), Op("u", "y + z")), "u", "a"),),
    (Bound("t < n * a", "even if every roll were a six, the gain would be [{n} * {a}], so [{t}] must be less"),),
    ("d > 0",),
    largest=900,
    smallest=-300,
    whole=False,
)

_FAIR = Story(
    (
        "A bag has {r} red and {w} white balls. A player draws one ball and gets @{x} if it is red, nothing "
        "otherwise. What price makes the game fair?",
        "{name} offers a game: draw one of {r} red and {w} white balls; red pays @{x}, white pays nothing. How "
        "much must {name} ask for the game to be fair?",
        "There are {r} winning and {w} losing tickets in a box, and a winning one pays @{x}. Find the fair price "
        "of one draw in dollars.",
        "A wheel has {r} winning and {w} losing fields of the same size. A win is worth @{x}. For which price is "
        "the game fair?",
    ),
    {
        "r": Given(range(2, 12), "winning chances"),
        "w": Given(range(3, 20), "losing chances"),
        "x": Given(range(6, 60), "dollars for a win"),
    },
    (
        Op("n", "r + w", "the number of outcomes"),
        Op("t", "r * x", "the sum of all wins"),
        Op(
            "e",
            "t / n",
            "the fair price",
            (
                *_PER_GAME[:4],
                "The price is fair if it equals the expected win: {eq}.",
                "A fair price is the expected value {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "t / w",
                    (
                        "Against [{w}] losing chances, the fair price is {eq}.",
                        "Dividing by the losses, we get {eq}.",
                    ),
                ),
                Mistake(
                    INFERENCE,
                    "x / 2",
                    (
                        "One either wins or loses, so the fair price is half the win: {eq}.",
                        "Win and loss are the two outcomes, so the fair price is {eq}.",
                    ),
                ),
            ),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("n", "r + w"), Op("y", "answer * n"), Op("z", "y / r")), "z", "x"),),
    (Bound("e < x", "nobody should pay more than the win, so [{e}] must be less than [{x}]"),),
    largest=800,
    whole=False,
)

_DEFECTS = Story(
    (
        "One machine makes {n} bolts a day, of which {r}% are faulty on average; another makes {m} with {s}% "
        "faulty. How many faulty bolts are expected a day?",
        "In a shop, {r}% of {n} visitors on weekdays and {s}% of {m} visitors on Sunday buy something on average. "
        "What is the expected number of buyers?",
        "{name} plants {n} seeds that fail with probability {r}% and {m} seeds that fail with probability {s}%. "
        "Find the expected number of failures.",
        "Of {n} letters {r}% come late on average, and of {m} parcels {s}%. How many late items are to be "
        "expected?",
    ),
    {
        "n": Given(range(100, 900, 100), "in the first group"),
        "r": Given(range(2, 15), "percent in the first group", fixed=True),
        "m": Given(range(50, 500, 50), "in the second group"),
        "s": Given(range(2, 21, 2), "percent in the second group", fixed=True),
    },
    (
        Op("a", "percent(r, n)", "the expected number in the first group"),
        Op("b", "percent(s, m)", "the expected number in the second group"),
        Op(
            "t",
            "a + b",
            "the expected number in all",
            (
                "Expected values add up: {eq}.",
                "{What} is {eq}.",
                "Together we expect {eq}.",
                "By linearity of expectation, we get {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "percent(r + s, n + m)",
                    ("Adding both the rates and the numbers, we expect {eq}.", "Together this is {eq}."),
                ),
            ),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("y", "percent(s, m)"), Op("x", "answer - y"), Op("z", "100 * x"), Op("u", "z / r")), "u", "n"),),
    (Bound("t <= n + m", "no more than all of them can count, so {t} must be at most [{n} + {m}]"),),
)

_MANY_DICE = Story(
    (
        "{n} fair dice with {s} sides each, numbered from [1], are rolled, and {k} is added to the total. What is "
        "the expected result?",
        "In a game, {name} rolls {n} dice, each with the numbers [1] to {s}, and then adds {k}. Find the expected "
        "score.",
        "A hero's power is the sum of {n} fair {s}-sided dice plus {k}. Compute its expected value.",
    ),
    {
        "n": Given(range(2, 13), "dice"),
        "s": Given((4, 6, 8, 10, 12, 20), "sides", fixed=True),
        "k": Given(range(2, 30), "to be added"),
    },
    (
        Op(
            "m",
            "(s + 1) / 2",
            "the expected value of one die",
            (
                "One die shows {eq} on average.",
                "{What} is {eq}.",
                "The mean of the numbers [1] to [{s}] is {eq}.",
                "For a single die we expect {eq}.",
            ),
            (
                Mistake(
                    DROPPED,
                    "s / 2",
                    (
                        "One die shows half of [{s}] on average, {eq}.",
                        "The mean of the numbers [1] to [{s}] is {eq}.",
                    ),
                ),
                Mistake(INFERENCE, "s", ("Each die may show up to {eq}, so this is what we expect.",)),
            ),
        ),
        Op("t", "n * m", "the expected total of the dice"),
        Op("u", "t + k", "the expected result"),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer - k"), Op("y", "x / n"), Op("z", "2 * y"), Op("v", "z - 1")), "v", "s"),),
    (Bound("u < n * s + k", "the highest result is [{n} * {s} + {k}], so the expected [{u}] must be less"),),
    whole=False,
)

EXPECTATIONS = (_SPINNER, _RAFFLE, _DIE, _FAIR, _DEFECTS, _MANY_DICE)
