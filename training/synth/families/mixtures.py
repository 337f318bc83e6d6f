"""The mixtures: two kinds told apart by their total and value, and what becomes of two that are mixed."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_TICKETS = Story(
    (
        "A theater sells {n} tickets for @{v} in all. A child's ticket costs @{p} and an adult's @{q}. How many "
        "tickets are for adults?",
        "{name} buys {n} stamps, some at {p} cents and the others at {q} cents, and pays {v} cents. How many of "
        "the dearer kind does {name} buy?",
        "{n} pens cost @{v}. Plain ones cost @{p} each, and fine ones @{q}. How many of them are fine ones?",
        "A shop sells small boxes for @{p} and large boxes for @{q}. On one day {n} boxes bring in @{v}. How many "
        "large boxes are sold?",
    ),
    {
        "n": Given(range(15, 60), "pieces in all"),
        "v": Given((), "as total price", made="p * n + g * x"),
        "p": Given(range(3, 12), "as price of the cheaper kind"),
        "q": Given((), "as price of the dearer kind", made="p + g"),
    },
    (
        Op(
            "a",
            "n * p",
            "the price if all were of the cheaper kind",
            (
                "If all {n} were of the cheaper kind, they would cost {eq}.",
                "Suppose that all are of the cheaper kind: {eq}.",
                "Assume first that all are cheap: {eq}.",
                "With only the cheaper kind the price would be {eq}.",
            ),
        ),
        Op("b", "v - a", "the part of the price that is still missing"),
        Op("d", "q - p", "the difference between the two prices"),
        Op(
            "x",
            "b / d",
            "the number of the dearer kind",
            (
                "The number of the dearer kind is {eq}.",
                "Each of the dearer kind adds its share, so there are {eq} of them.",
                "We need {eq} of the dearer kind.",
                "This means {eq} of the dearer kind.",
            ),
            (Mistake(INFERENCE, "b / q"), Mistake(FORMULA, "b / p")),
        ),
    ),
    {"name": NAMES},
    (
        Verify(
            (Op("y", "n - answer"), Op("u", "answer * q"), Op("w", "y * p"), Op("t", "u + w")),
            "t",
            "v",
            "substitute",
        ),
    ),
    (
        Bound("x < n", "the number of the dearer kind, {x}, must be less than the number of all, {n}"),
        Bound("b > 0", "the missing part {b} must be positive"),
    ),
    fits=("x < n",),
    largest=1500,
    seeds={"g": Given(range(2, 8), ""), "x": Given(range(4, 40), "")},
)

_LEGS = Story(
    (
        "There are hens and rabbits in a yard, {n} animals with {l} legs in all. How many of them are rabbits?",
        "In a parking lot stand {n} cars and motorbikes. Together they have {l} wheels. How many cars are there?",
        "A farmer counts {n} heads and {l} legs among hens and cows. How many cows are there?",
        "A hall has {n} tables, some for two and the others for four persons, with {l} seats in all. How many "
        "tables are for four?",
    ),
    {
        "n": Given(range(12, 80), "in all"),
        "l": Given((), "as the second count", made="2 * n + 2 * x"),
    },
    (
        Op("a", "2 * n", "the count if each had only two", mistakes=(Mistake(FORMULA, "n"),)),
        Op("b", "l - a", "what is left over"),
        Op(
            "x",
            "b / 2",
            "the number of those with four",
            (
                "Those with four have two more each, so there are {eq}.",
                "The number of those with four is {eq}.",
                "Each of those with four takes two of them: {eq}.",
                "So {eq} of them have four.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "b / 4",
                    (
                        "Those with four take all four of them, so there are {eq}.",
                        "The number of those with four is {eq}.",
                        "Each of those with four takes four of them: {eq}.",
                        "So {eq} of them have four.",
                    ),
                ),
            ),
        ),
    ),
    {},
    (
        Verify(
            (Op("y", "n - answer"), Op("u", "4 * answer"), Op("w", "2 * y"), Op("t", "u + w")),
            "t",
            "l",
            "substitute",
        ),
    ),
    (Bound("x < n", "the number of those with four, {x}, must be less than the number of all, {n}"),),
    fits=("x < n",),
    seeds={"x": Given(range(3, 50), "")},
)

_SOLUTION = Story(
    (
        "{a} liters of a {p}% salt solution are mixed with {b} liters of a {q}% salt solution. What percent of the "
        "mixture is salt?",
        "A chemist mixes {a} ml of {p}% acid with {b} ml of {q}% acid. What is the concentration of the mixture in "
        "percent?",
        "If {a} grams of an alloy with {p}% copper are melted together with {b} grams of one with {q}% copper, "
        "what percent of the new alloy is copper?",
        "{name} mixes {a} ml of juice with {p}% fruit and {b} ml of juice with {q}% fruit. Find the percentage of "
        "fruit in the mixture.",
    ),
    {
        "a": Given(range(20, 200, 20), "of the first"),
        "p": Given(range(5, 35, 5), "percent in the first", fixed=True),
        "b": Given(range(20, 200, 20), "of the second"),
        "q": Given(range(40, 85, 5), "percent in the second", fixed=True),
    },
    (
        Op("u", "percent(p, a)", "the pure part in the weaker one"),
        Op("w", "percent(q, b)", "the pure part in the stronger one"),
        Op("s", "u + w", "the pure part of the mixture"),
        Op("t", "a + b", "the amount of the mixture"),
        Op(
            "c",
            "s * 100 / t",
            "the percentage of the mixture",
            (
                "As a percentage this is {eq}.",
                "The concentration in percent is {eq}.",
                "In percent: {eq}.",
                "So the percentage is {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "(p + q) / 2",
                    (
                        "The percentage is halfway between the two: {eq}.",
                        "The concentration in percent is {eq}.",
                        "In percent, as the mean of both: {eq}.",
                        "So the percentage is {eq}.",
                    ),
                ),
                Mistake(INFERENCE, "p + q"),
            ),
        ),
    ),
    {"name": NAMES},
    (
        Verify(
            (
                Op("t", "a + b"),
                Op("s", "percent(answer, t)"),
                Op("u", "percent(p, a)"),
                Op("w", "s - u"),
                Op("z", "w * 100 / b"),
            ),
            "z",
            "q",
            "substitute",
        ),
    ),
    (
        Bound("c < q", "the percentage {c} of the mixture must be less than the {q} of the second part"),
        Bound("c > p", "the percentage {c} of the mixture must be greater than the {p} of the first part"),
    ),
    largest=12000,
    smallest=0,
    whole=False,
    decimals=True,
)

_BLEND = Story(
    (
        "{a} kg of tea at @{p} a kg are mixed with {b} kg of tea at @{q} a kg. What is a kilogram of the mixture "
        "worth?",
        "{name} mixes {a} pounds of nuts at @{p} per pound with {b} pounds of raisins at @{q} per pound. Find the "
        "price of one pound of the mixture.",
        "A store blends {a} kg of coffee costing @{p} per kg and {b} kg costing @{q} per kg. What should a "
        "kilogram of the blend cost so that the value stays the same?",
    ),
    {
        "a": Given((2, 3, 4, 5, 6, 8, 10, 12, 15), "of the first kind"),
        "p": Given(range(4, 20), "dollars for one of the first kind"),
        "b": Given((2, 3, 4, 5, 6, 8, 10, 12, 15), "of the second kind"),
        "q": Given(range(8, 40), "dollars for one of the second kind"),
    },
    (
        Op("u", "a * p", "the value of the first kind"),
        Op("w", "b * q", "the value of the second kind"),
        Op("s", "u + w", "the value of the mixture"),
        Op("t", "a + b", "the weight of the mixture"),
        Op(
            "c",
            "s / t",
            "the price of the mixture",
            (
                "One unit of the mixture costs {eq} dollars.",
                "The price of the mixture is {eq}.",
                "So the mixture is worth {eq} dollars per unit of weight.",
                "The mixture costs {eq}.",
            ),
            (Mistake(INFERENCE, "(p + q) / 2"), Mistake(FORMULA, "p + q")),
        ),
    ),
    {"name": NAMES},
    (
        Verify(
            (Op("t", "a + b"), Op("s", "answer * t"), Op("u", "a * p"), Op("w", "s - u"), Op("z", "w / b")),
            "z",
            "q",
            "substitute",
        ),
    ),
    (
        Bound("c < q", "the price {c} of the mixture must be less than the {q} of the second kind"),
        Bound("c > p", "the price {c} of the mixture must be greater than the {p} of the first kind"),
    ),
    fits=("p < q",),
    largest=900,
    smallest=0,
    whole=False,
    decimals=True,
)

_DILUTION = Story(
    (
        "How many liters of water must be added to {a} liters of a {p}% salt solution to get a {q}% solution?",
        "{name} wants to dilute {a} ml of {p}% acid to {q}% acid. How many ml of water are needed?",
        "Water is added to {a} grams of a {p}% sugar solution until it is a {q}% solution. How many grams of water "
        "are added?",
    ),
    {
        "a": Given(range(10, 210, 10), "of the solution"),
        "p": Given((20, 30, 36, 40, 48, 50, 60, 64, 72, 80), "percent at first", fixed=True),
        "q": Given((4, 5, 8, 10, 12, 15, 16, 20, 24, 25, 30, 40), "percent wanted", fixed=True),
    },
    (
        Op("u", "percent(p, a)", "the pure part"),
        Op(
            "t",
            "u * 100 / q",
            "the amount of the diluted solution",
            (
                "In the end this part is {q} percent of all, so all of it is {eq}.",
                "The amount after dilution is {eq}.",
                "The diluted solution must amount to {eq}.",
                "For {q} percent we need {eq} in all.",
            ),
            (Mistake(FORMULA, "u * q / 100"), Mistake(INFERENCE, "a * q / 100")),
        ),
        Op(
            "x",
            "t - a",
            "the amount of water",
            mistakes=(
                Mistake(
                    CASE,
                    "t",
                    (
                        "All of this is water, so the amount of water is {res}.",
                        "So we must add {res}.",
                        "The amount of water to add is {res}.",
                    ),
                ),
            ),
        ),
    ),
    {"name": NAMES},
    (
        Verify((Op("s", "a + answer"), Op("r", "percent(q, s)"), Op("z", "r * 100 / a")), "z", "p", "substitute"),
        Verify((Op("s", "a + answer"), Op("r", "percent(p, a)"), Op("z", "r * 100 / s")), "z", "q", "substitute"),
    ),
    (Bound("t > a", "the diluted amount {t} must be greater than the {a} at the start"),),
    fits=("q < p",),
    largest=3000,
    smallest=-200,
    whole=False,
    decimals=True,
)

MIXTURES = (_TICKETS, _LEGS, _SOLUTION, _BLEND, _DILUTION)
