"""A small story, whose numbers are known, for the tests of the engine."""

from fractions import Fraction

from stepsight.training.synth.plant import INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify
from stepsight.training.synth.style import Style

PLAIN = Style(False, "*", "/")
LATEX = Style(True, "\\times", "frac")
GIVENS = {"n": Fraction(12), "p": Fraction(7), "q": Fraction(20)}

SHOP = Story(
    ("{name} buys {n_} at @{p} each and a bag for @{q}. What is paid?",),
    {
        "n": Given(range(2, 20), "cups", {12: "a dozen cups"}),
        "p": Given(range(2, 20), "dollars for a cup"),
        "q": Given(range(5, 40), "dollars for the bag"),
    },
    (
        Op("a", "n * p", "the cost of the cups", mistakes=(Mistake(INFERENCE, "n * n"),)),
        Op("b", "a + q", "the total"),
        Op("c", "b + 5", "the total with delivery"),
    ),
    {"name": ("Ann", "Ben")},
    (Verify((Op("x", "answer - 5"), Op("y", "x - q"), Op("z", "y / n")), "z", "p"),),
    (Bound("b > a", "the total {b} must be more than {a}"),),
)
