"""Failing equations in words, for each kind of check."""

import pytest

from stepsight.core.equations.evaluator import checks_of, faults
from stepsight.core.equations.wording import finding
from stepsight.core.trace import Trace


def findings(problem, *steps):
    trace = Trace.of(problem, list(steps))
    return [finding(trace, i, check) for i, part in enumerate(checks_of(trace)) for check in faults(part)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("So the speed is 180 / 2.5 = 75 km/h.", "180 / 2.5 is 72, not 75"),
        ("So 75 = 180 / 2.5.", "180 / 2.5 is 72, not 75"),
        ("3 + 4 equals 8.", "3 + 4 is 7, not 8"),
        ("15% of 80 is 13.", "15% of 80 is 12, not 13"),
        ("$80 - $12 = $72", "$80 - $12 is 68, not $72"),
        # With as many decimals, or as a fraction, if the wrong value is written so.
        ("24.80 + 2.50 = 27.80 euros", "24.80 + 2.50 is 27.30, not 27.80"),
        ("1/2 - 1/4 = 2/4", "1/2 - 1/4 is 1/4, not 2/4"),
        ("440 / 3 = 140", "440 / 3 is about 146.67, not 140"),
        ("x^2 + 1 = (x + 1)(x - 1)", "$x^2 + 1$ is not (x + 1)(x - 1)"),
        # Of LaTeX, what needs it is a formula.
        ("$\\frac{144}{3} = 46$ pages", "$\\frac{144}{3}$ is 48, not 46"),
        ("$2^{12} = 4095$", "$2^{12}$ is 4096, not 4095"),
        ("2^12 = 4095", "$2^{12}$ is 4096, not 4095"),
        ("$$\\begin{aligned} a &= 3 \\cdot 4 \\\\ &= 13 \\end{aligned}$$", "$3 \\cdot 4$ is 12, not 13"),
        ("(x + 3)(x + 4) = x^2 + 7x + 10", "(x + 3)(x + 4) is $x^2 + 7x + 12$, not $x^2 + 7x + 10$"),
        (
            "130 ÷ 11 = 11 with a remainder of 8.",
            "130 ÷ 11 is 11 with a remainder of 9, not 11 with a remainder of 8",
        ),
        ("2 hours + 30 minutes = 2.3 hours", "2 hours + 30 minutes is 2.5, not 2.3"),
        ("50 km/h × 3 days = 3000 km", "50 km/h × 3 days is 3600, not 3000"),
    ],
)  # fmt: skip
def test_what_is_right_comes_before_what_is_stated(text, said):
    assert findings("What is it?", text) == [said]


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        # 8 more than 42 is 50, which is 5 · 10.
        (["5x - 8 = 42.", "Add 8: 5x = 60."], "x is 10, so 5x is 50, not 60"),
        (["2x + 6 = 0.", "So x = 3."], "x is -3, not 3"),
        (["x^2 = 16.", "So x = 5."], "x is -4 or 4, not 5"),
        # 3x + 6 = 2x + 24 at x = 18.
        (["3(x + 2) = 2x + 24.", "Expand: 3x + 6 = 2x + 20."], "x is 18, so 3x + 6 is 60 and 2x + 20 is 56"),
        (
            ["x^2 + x - 1 = 0.", "Simplifying: x^2 + x = 2."],
            "$x^2 + x = 2$ does not follow from $x^2 + x = 1$",
        ),
        (
            ["x + y = 10 and x - y = 2.", "Adding both equations, 2x = 12, so x = 6.", "Subtracting gives y = 5."],
            "y = 5 contradicts the equations before it",
        ),
    ],
)
def test_an_equation_with_unknowns_is_held_against_an_earlier_one(steps, said):
    assert findings("Solve.", *steps) == [said]
