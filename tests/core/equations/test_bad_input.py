"""Text unfit for a parser gets no checks, at once."""

import random
from functools import cache

import pytest

from stepsight.core.equations import check_steps
from tests.cases import each
from tests.cost import processor_seconds

# A long step full of equations, and how many times its cost another text may have; what is quadratic has thousands.
ORDINARY, TIMES = "1 + 1 = 3 " * 300, 30

HOSTILE = {
    "braces": "{" * 10_000,
    "braces before an equation": "{" * 10_000 + " = 5",
    "closed braces": "{" * 1_400 + "}" * 1_400 + " = 5",
    "brackets": "(" * 1_400 + "1" + ")" * 1_400 + " = 2",
    "roots": "\\sqrt{" * 200 + "2" + "}" * 200 + " = 1",
    "fractions": "\\frac{" * 400 + " = 2",
    "tower": "9^9^9^9 = 5",
    "tower in braces": "9^{9^{9^9}} = 5",
    "large power": "99999999999999999999^75 = 3",
    "product of large powers": "*".join(["2^1000"] * 30) + " = 1",
    "division by zero": "\\frac{1}{0} = 1",
    "division by nothing": "5/(3-3) = 1 and 0^0 = 1 and 0^{-1} = 2",
    "factorial": "10000000! = 5",
    "factorial of factorials": "(((9!)!)!)! = 3",
    "long sum": "1+" * 50_000 + "1 = 3",
    "sum": "1+" * 1_400 + "1 = 3",
    "long number": "9" * 2_900 + " + 1 = 2",
    "large polynomial": "(x+y+z+w+v+u+a+b+c)^20 = x^20",
    "product of sums": "*".join(["(x+y+z+1)"] * 200) + " = x",
    "minus signs": "-" * 2_900 + "1 = 3",
    "dollars": "$" * 2_900 + "= 1",
    "blank lines": "\n" * 2_900 + "= 1",
    "an answer before blank lines": "answer" + "\n" * 2_900 + "= 1",
    "a number in words": "hundred " * 50_000,
    "backslashes": "\\" * 2_900 + "= 1",
    "words before an equation": "a b c d " * 370 + "= 5",
    "open notes": "<<" * 1_400 + "=1>>",
    "open matrices": "\\begin{pmatrix}" * 190 + "= 1",
    "logarithm of zero": "\\log_{2}(0) = 1",
    "even root of a negative number": "\\sqrt{-4} = 2",
    "large sine": "\\sin(10^{300}) = 1",
}


@each("name", HOSTILE)
def test_there_is_nothing_to_check_and_that_at_once(name):
    assert quick_checks(HOSTILE[name]) == ()


@pytest.mark.parametrize(
    "text",
    [
        ORDINARY,
        "x = 2 or " * 320,
        ". So ".join(f"{i}x + {i + 1} = {i + 2}" for i in range(1, 150)),
        ", ".join(f"a_{i} + {i}b_{i + 1} = {i}" for i in range(150)),
        "Area = 3+4\n" * 260,
        "<<1+1=3>>" * 300,
    ],
)
def test_many_equations_take_no_longer(text):
    quick_checks(text)


def test_random_text_never_fails():
    rng = random.Random(7)
    pieces = [
        *"0123456789+-*/^=(){}[]|$%!.,;: xyzab\\_&<>~≈√πx",
        "\\frac",
        "\\sqrt",
        "\\cdot",
        "\n",
        " is ",
        " so ",
    ]
    pieces += [
        " or ",
        "\\text{",
        "\\boxed{",
        "\\left",
        "<<",
        ">>",
        " apples ",
        "\\begin{align*}",
        "²",
        "\\overline{3}",
    ]
    for _ in range(150):
        text = "".join(rng.choice(pieces) for _ in range(rng.choice([20, 100, 900])))
        for check in quick_checks(text):
            assert 0 <= check.start < check.end <= len(text)


def test_a_hostile_problem_is_read_at_once():
    for text in HOSTILE.values():
        quick_checks("3 + 4 = 7", text)


def quick_checks(step, problem="Find x, where x = 3."):
    """The checks of a step, made in the time that a text may take; of three runs the shortest counts."""
    checks = []
    costs = (processor_seconds(lambda: checks.append(check_steps(problem, [step]))) for _ in range(3))
    assert any(cost < TIMES * ordinary_seconds() for cost in costs)
    return checks[0][0]


@cache
def ordinary_seconds():
    return min(processor_seconds(lambda: check_steps("", [ORDINARY])) for _ in range(3))
