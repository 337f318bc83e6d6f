"""Simple interest for years and for months."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, FORMULA, UNIT
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_YEARS = Story(
    (
        "{name} puts @{p} into an account with {r}% simple interest a year. How much is there after {t} years?",
        "What does @{p} grow to in {t} years at a simple interest rate of {r}% a year?",
        "A loan of @{p} bears simple interest of {r}% per year. What must {name} pay back in all after {t} years?",
        "Find the final amount if @{p} is invested for {t} years at {r}% simple annual interest.",
    ),
    {
        "p": Given(range(100, 1600, 100), "dollars at first"),
        "r": Given(range(2, 13), "percent a year", fixed=True),
        "t": Given(range(2, 11), "years"),
    },
    (
        Op("a", "percent(r, p)", "the interest for one year"),
        Op(
            "b",
            "a * t",
            "the interest for all years",
            (
                "Simple interest is the same each year, so in all it is {eq}.",
                "For all {t} years the interest is {eq}.",
                "In {t} years this makes {eq}.",
                "The interest in all: {eq}.",
            ),
            (Mistake(CASE, "a"), Mistake(FORMULA, "a * (t - 1)")),
        ),
        Op("c", "p + b", "the final amount"),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer - p"), Op("y", "x / t"), Op("z", "y * 100 / p")), "z", "r"),),
    (Bound("c > p", "with interest the amount {c} must be greater than {p}"),),
    largest=5000,
    smallest=-5000,
    whole=False,
    decimals=True,
)

_MONTHS = Story(
    (
        "{name} borrows @{p} at {r}% simple interest a year. How much must be paid back after {m} months?",
        "A bank pays {r}% simple interest a year. What is a deposit of @{p} worth after {m} months?",
        "Find what @{p} grows to in {m} months at an annual simple interest rate of {r}%.",
    ),
    {
        "p": Given(range(200, 2600, 100), "dollars at first"),
        "r": Given((2, 3, 4, 5, 6, 8, 9, 12), "percent a year", fixed=True),
        "m": Given((2, 3, 4, 6, 8, 9, 10, 15, 18), "months", fixed=True),
    },
    (
        Op("a", "percent(r, p)", "the interest for a year"),
        Op(
            "b",
            "a * m / 12",
            "the interest for {m} months",
            (
                "For {m} months the interest is {eq}.",
                "The time is {m} months, so the interest is {eq}.",
                "In {m} months this makes {eq}.",
                "As a year has twelve months, {m} months give {eq}.",
            ),
            (
                Mistake(
                    UNIT,
                    "a * m",
                    (
                        "For {m} months the interest is {eq}.",
                        "The time is {m}, so the interest is {eq}.",
                        "In {m} months this makes {eq}.",
                        "As this is paid {m} times, {m} months give {eq}.",
                    ),
                ),
            ),
        ),
        Op("c", "p + b", "the final amount"),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer - p"), Op("y", "12 * x / m"), Op("z", "y * 100 / p")), "z", "r"),),
    (
        Bound("c > p", "with interest the amount {c} must be greater than {p}"),
        Bound("b < 2 * a", "in less than two years the interest {b} must be less than twice the {a} of a year"),
    ),
    largest=9000,
    smallest=-5000,
    whole=False,
    decimals=True,
)

INTERESTS = (_YEARS, _MONTHS)
