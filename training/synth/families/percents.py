"""The percents: successive changes, profit and loss, tax and tip, parts and wholes."""

from stepsight.training.synth.families.interest import INTERESTS
from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_CHANGES = Story(
    (
        "The price of a {thing}, @{p}, rises by {r}% and then falls by {s}%. What is the price in the end?",
        "A {thing} costs @{p}. Its price is raised by {r}%, and later the new price is lowered by {s}%. Find the "
        "final price.",
        "A shop marks a {thing} of @{p} up by {r}% and then offers it at {s}% off. What does a customer pay?",
        "After an increase of {r}%, a {thing} that cost @{p} goes on sale with a reduction of {s}%. How many "
        "dollars does it cost now?",
    ),
    {
        "p": Given(range(40, 400, 20), "dollars at first"),
        "r": Given(range(5, 55, 5), "percent up", fixed=True),
        "s": Given(range(5, 55, 5), "percent down", fixed=True),
    },
    (
        Op("a", "percent(r, p)", "the increase"),
        Op("b", "p + a", "the raised price"),
        Op(
            "c",
            "percent(s, b)",
            "the decrease",
            (
                "The price then falls by {eq}.",
                "The decrease is {eq}.",
                "The reduction amounts to {eq}.",
                "Of this price, the reduction is {eq}.",
                "Taking {s} percent of the raised price, {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "percent(s, p)",
                    (
                        "The price then falls by {eq}.",
                        "The decrease is {eq}.",
                        "The reduction amounts to {eq}.",
                        "Of the first price, the reduction is {eq}.",
                        "Taking {s} percent of the first price, {eq}.",
                    ),
                ),
            ),
        ),
        Op("d", "b - c", "the final price", mistakes=(Mistake(CASE, "p - c"),)),
    ),
    {"thing": ("coat", "desk", "bike", "tent", "camera", "guitar", "sofa", "watch")},
    (
        Verify(
            (
                Op("x", "100 - s"),
                Op("y", "answer / x"),
                Op("z", "y * 100"),
                Op("w", "percent(r, p)"),
                Op("v", "z - w"),
            ),
            "v",
            "p",
        ),
    ),
    (
        Bound("d < b", "after the reduction the price {d} must be less than {b}"),
        Bound("b > p", "after the increase the price {b} must be greater than {p}"),
    ),
    largest=1500,
    whole=False,
    decimals=True,
)

_PROFIT = Story(
    (
        "{name} buys {n} {thing} for @{c} in all and sells them at @{s} each. What is the profit as a percent of "
        "the cost?",
        "A trader pays @{c} for {n} {thing} and sells each for @{s}. Find the profit in percent of the money paid.",
        "A stall spends @{c} on {n} {thing}. All of them are sold for @{s} apiece. By what percent is the income "
        "higher than the cost?",
    ),
    {
        "n": Given(range(10, 60, 10), "{thing}"),
        "c": Given((40, 50, 80, 100, 120, 125, 150, 160, 200, 250), "dollars paid for all", fixed=True),
        "s": Given((4, 5, 6, 8, 10, 12, 15, 16, 20, 25), "dollars for each one sold", fixed=True),
    },
    (
        Op("i", "n * s", "the income"),
        Op("g", "i - c", "the profit"),
        Op(
            "r",
            "g * 100 / c",
            "the profit in percent",
            (
                "In percent of the cost this is {eq}.",
                "The profit in percent is {eq}.",
                "As a percentage: {eq}.",
                "This profit makes {eq} percent.",
            ),
            (
                Mistake(
                    FORMULA,
                    "g * 100 / i",
                    (
                        "In percent of the income this is {eq}, the profit in percent.",
                        "The profit in percent is {eq}.",
                        "As a percentage: {eq}.",
                        "This profit makes {eq} percent.",
                    ),
                ),
                Mistake(INFERENCE, "i * 100 / c"),
            ),
        ),
    ),
    {"name": NAMES, "thing": ("scarves", "mugs", "pots", "caps", "books", "baskets", "candles")},
    (Verify((Op("x", "percent(answer, c)"), Op("y", "c + x"), Op("z", "y / n")), "z", "s"),),
    (Bound("g < i", "the profit {g} must be less than the income {i}"),),
    fits=("g > 0",),
    largest=1500,
    smallest=0,
    whole=False,
    decimals=True,
)

_TEST = Story(
    (
        "Of {n} questions {name} answers {w} wrongly and leaves out {o}. What percent of the questions are "
        "answered correctly?",
        "A box holds {n} eggs. {w} of them are broken and {o} are cracked. What percent of the eggs are whole?",
        "A team plays {n} games, loses {w} and draws {o}. What percent of its games does it win?",
        "{n} people are asked. {w} say no, {o} do not know, and the others say yes. What percent say yes?",
    ),
    {
        "n": Given((20, 25, 40, 50, 80, 100, 125, 160, 200), "in all", fixed=True),
        "w": Given(range(2, 16), "of the first kind"),
        "o": Given(range(2, 12), "of the second kind"),
    },
    (
        Op("a", "w + o", "the number to be left out"),
        Op("b", "n - a", "the number asked for"),
        Op(
            "c",
            "b * 100 / n",
            "the percentage",
            (
                "As a percentage of {n} this is {eq}.",
                "In percent: {eq}.",
                "The percentage is {eq}.",
                "That makes {eq} percent.",
            ),
            (Mistake(FORMULA, "a * 100 / b"), Mistake(FORMULA, "n * 100 / b"), Mistake(CASE, "a * 100 / n")),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("x", "percent(answer, n)"), Op("y", "x + o"), Op("z", "n - y")), "z", "w"),),
    (
        Bound("c < 100", "the percentage {c} of a part must be less than 100"),
        Bound("b < n", "the part {b} must be less than the whole {n}"),
    ),
    largest=1000,
    smallest=0,
    whole=False,
    decimals=True,
)

_MEAL = Story(
    (
        "A meal costs @{m}. A tax of {t}% and a tip of {q}% are added, both on the price of the meal. What is "
        "paid in all?",
        "{name} has dinner for @{m}, pays {t}% tax on it and gives a tip of {q}% of the price before tax. How much "
        "does {name} pay?",
        "The food on a bill is @{m}. To it come {t}% of tax and {q}% for the service, each of the price of the "
        "food. Find the total.",
    ),
    {
        "m": Given(range(20, 180, 4), "dollars for the food"),
        "t": Given((4, 5, 6, 8, 9, 10), "percent of tax", fixed=True),
        "q": Given((10, 12, 15, 18, 20, 25), "percent of tip", fixed=True),
    },
    (
        Op("a", "percent(t, m)", "the tax"),
        Op("c", "m + a", "the price with tax"),
        Op("b", "percent(q, m)", "the tip", mistakes=(Mistake(INFERENCE, "percent(q, c)"),)),
        Op("d", "c + b", "the total", mistakes=(Mistake(CASE, "m + b"),)),
    ),
    {"name": NAMES},
    (
        Verify(
            (Op("x", "percent(q, m)"), Op("y", "answer - x"), Op("z", "percent(t, m)"), Op("w", "y - z")), "w", "m"
        ),
    ),
    (Bound("d > m", "the total {d} must be greater than the {m} for the food"),),
    largest=900,
    whole=False,
    decimals=True,
)

_BEFORE = Story(
    (
        "After a reduction of {r}% a {thing} costs @{p}. With @{s} for delivery on top, what would it have cost "
        "before the reduction?",
        "A {thing} is sold for @{p}, which is {r}% less than its usual price. Delivery is @{s}. What is the usual "
        "price with delivery?",
        "At {r}% off, {name} pays @{p} for a {thing}. What would {name} have paid without the discount but with "
        "@{s} for delivery?",
    ),
    {
        "p": Given((), "dollars after the reduction", made="o - percent(r, o)"),
        "r": Given(range(5, 65, 5), "percent off", fixed=True),
        "s": Given(range(4, 30), "dollars for delivery"),
    },
    (
        Op(
            "f",
            "100 - r",
            "the percentage that is left",
            (
                "The price paid is {eq} percent of the usual one.",
                "What is left is {eq} percent.",
                "Of 100 percent, {eq} percent are left.",
                "The percentage that is paid: {eq}.",
            ),
        ),
        Op("g", "p / f", "one percent of the usual price", mistakes=(Mistake(INFERENCE, "p / r"),)),
        Op(
            "h",
            "g * 100",
            "the usual price",
            mistakes=(
                Mistake(
                    INFERENCE,
                    "p + percent(r, p)",
                    (
                        "Adding {r} percent of the price again, the usual price is {eq}.",
                        "To undo the reduction we add it back: {eq}.",
                        "The usual price is {eq}.",
                    ),
                ),
            ),
        ),
        Op("t", "h + s", "the usual price with delivery"),
    ),
    {"name": NAMES, "thing": ("coat", "desk", "bike", "tent", "camera", "chair", "lamp")},
    (
        Verify((Op("x", "answer - s"), Op("y", "percent(r, x)"), Op("z", "x - y")), "z", "p"),
        Verify((Op("x", "answer - s"), Op("y", "x - p"), Op("z", "y * 100 / x")), "z", "r"),
    ),
    (Bound("h > p", "the usual price {h} must be greater than the reduced one, {p}"),),
    largest=1000,
    smallest=0,
    whole=False,
    decimals=True,
    seeds={"o": Given(range(40, 420, 20), "")},
)

_GROWTH = Story(
    (
        "What is the percent increase from {a} to {b}?",
        "A town grows from {a} to {b} inhabitants. By what percent does it grow?",
        "By what percent must {a} be increased to get {b}?",
        "The number of members rises from {a} to {b}. Find the increase in percent.",
    ),
    {
        "a": Given((20, 25, 40, 50, 80, 100, 120, 150, 160, 200, 240, 250, 300, 400), "at first", fixed=True),
        "b": Given(range(30, 600, 2), "in the end"),
    },
    (
        Op("d", "b - a", "the increase"),
        Op(
            "r",
            "d * 100 / a",
            "the increase in percent",
            (
                "In percent of the first number this is {eq}.",
                "The increase in percent is {eq}.",
                "As a percentage: {eq}.",
                "Relative to {a}, we have {eq} percent.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "d * 100 / b",
                    (
                        "In percent of the new number this is {eq}, the increase in percent.",
                        "The increase in percent is {eq}.",
                        "As a percentage: {eq}.",
                        "Relative to {b}, we have {eq} percent as the increase.",
                    ),
                ),
                Mistake(FORMULA, "b * 100 / a"),
            ),
        ),
    ),
    {},
    (Verify((Op("x", "percent(answer, a)"), Op("y", "a + x")), "y", "b"),),
    (Bound("d < b", "the increase {d} must be less than the final number {b}"),),
    fits=("a < b", "b < 3 * a"),
    largest=1000,
    smallest=0,
    whole=False,
    decimals=True,
)

PERCENTS = (_CHANGES, _PROFIT, *INTERESTS, _TEST, _MEAL, _BEFORE, _GROWTH)
