"""Equations with letters: identities, solutions, equations that follow from each other, values put in."""

import pytest

from stepsight.core.equations import Method, check_steps
from tests.cases import each
from tests.core.equations.steps import checks, failing


@pytest.mark.parametrize(
    "text",
    [
        "$(x+2)(x+3) = x^2 + 5x + 6$",
        "(25x + 150) / 10 = 2.5x + 15",
        "x - (7/12)*x = (5/12)*x",
        "$x^2 - 9 = (x-3)(x+3)$",
        "$2(a + b) - b = 2a + b$",
        "The cost is $0.2 * (36 - x) = $7.2 - $0.2x.",
        "$\\frac{x^2 y}{x} = xy$",
        "$n(n+1)(n+2) = n^3 + 3n^2 + 2n$",
    ],
)
def test_an_identity_holds(text):
    assert [(check.method, check.holds) for check in checks(text)] == [(Method.IDENTITY, True)]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("the number of students is: (25x + 150) / 10 = 25x + 15.", "2.5x + 15"),
        ("$n(n + 1)(n + 2) = n^3 + 3n^2 + 2n + 6$", "n^3 + 3n^2 + 2n"),
        ("$x^4 + 4 = (x^2 + 2)(x^2 - 2)$", "x^4 + 4"),
        ("(1/4)*x + (1/3)*x = (5/12)*x", "(7/12)x"),
        ("64 + 32 + 23 - 0.32x = 129 - 0.32x", "-0.32x + 119"),
        ("$(a+8)^2-4(4)(9)=a^2+16a-112$", "a^2 + 16a - 80"),
    ],
)
def test_an_expansion_that_is_off_in_one_term_fails(text, right):
    (check,) = [check for check in checks(text) if not check.holds]
    assert (check.method, check.right) == (Method.IDENTITY, right)


@pytest.mark.parametrize(
    "text",
    [
        "We can set up the equation 5x + 20 = 300.",
        "$2(x + 3) = 5x$",
        "$x \\cdot x = 9x^2$",
        "$y = 2x + 3$",
        "$(x-1)^2 + 25 = x^2 + 4x + 9$",
        "$(1+i)^2 = 2i$",
        "$e^{x} = 3$",
    ],
)
def test_an_equation_to_be_solved_is_no_identity(text):
    assert failing(text) == []


@pytest.mark.parametrize(
    ("steps", "fault", "right"),
    [
        # 900 - 29x = 842 gives x = 58/29 = 2.
        (["we can write: 900 - 29 * x = 842.", "Solving for x, we get: x = 21."], "21", "x = 2"),
        # 10 - x/10 = 5 gives x = 50, and 10 - x = 50 gives -40.
        (["10 - (x/10) = 5.", "Simplifying the equation, we get: 10 - x = 50."], "10 - x = 50", "x = 50"),
        (["1210 - 640 - 540 = 3x", "230 = 3x"], "230 = 3x", "x = 10"),
        (["So, $(a+8)^2=144$.", "So, $a=-4$ or $a=-20$."], "-4", "a = -20 or a = 4"),
        (["$2x^2-10x+5=0$ can be factored as $(2x-1)(x-5)=0$."], "(2x-1)(x-5)=0", "2x^2 - 10x = -5"),
        # y + 2 = 3(x - 3) - 7 is y = 3x - 18.
        (["$y + 2 = 3(x - 3) - 7$, which simplifies to $y = 3x - 16$."], "y = 3x - 16", "-3x + y = -18"),
        # x + y = 10 and x - y = 2 give x = 6.
        (["$x + y = 10$ and $x - y = 2$.", "Adding the equations and dividing by 2, $x = 7$."], "x = 7", ""),
    ],
)
def test_an_equation_that_does_not_follow_from_the_one_before_fails(steps, fault, right):
    assert [(found[1], found[2]) for found in failing(*steps)] == [(fault, right)]


@each(
    "steps",
    [
        ["2x + 6 = 10", "so 2x = 4", "so x = 2."],
        ["x^2 = 4", "so x = 2."],
        ["x^2 - 5x + 6 = 0", "so x = 2 or x = 3."],
        ["3x = 10", "so x = 3.33."],
        ["3x + 3 = 202, 3x = 199, x = 66.333...", "Now I get 3x + 3 = 191."],
        ["2x + 6 = 10", "Let x = 5."],
        ["2x + 6 = 10", "If x = 5, it is too large."],
        ["2x + 6 = 10", "The second equation is 3x = 12."],
        ["x - 4 = 12 or x - 4 = -12.", "So x = 16 or x = -8."],
        ["No, that is wrong. x + 1 = 4.", "so x = 3."],
        ["x + 1 = 7.", "No, that is wrong. It simplifies to x = 3."],
        ["y = 2x + 3", "so y = 5."],
    ],
)
def test_an_equation_that_follows_or_starts_afresh_is_not_flagged(steps):
    assert all(check.holds for found in check_steps("A problem.", steps) for check in found)


def test_an_equation_of_the_problem_is_known():
    problem = "Solve $2x + 3 = 11$ for $x$."
    assert failing("Subtracting 3 from both sides, $2x = 14$.", problem=problem) == [
        ("2x = 14", "2x = 14", "x = 4")
    ]
