"""The reader of equations, on which the checker of labels rests."""

from fractions import Fraction

import pytest

from tests.training.synth.equations import chains, expressions, normalised
from tests.training.synth.terms import expression, value


def read(text: str) -> list[tuple[Fraction | None, str, Fraction | None]]:
    """Every relation of `text` with the values of its sides, at x = 3 where it has an x."""
    sides = [(r.left, r.sign, r.right) for chain in chains(normalised(text)) for r in chain]
    known = {"x": Fraction(3), "y": Fraction(5), "n": Fraction(7)}
    return [(left and value(left, known), sign, right and value(right, known)) for left, sign, right in sides]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("So $3 \\times 13 = 38$.", [(39, "=", 38)]),
        ("6 x (-1) = -6, as needed", [(-6, "=", -6)]),
        ("12 ÷ 4 = 3 and 5 · 2 = 10", [(3, "=", 3), (10, "=", 10)]),
        ("200 - (38 + 16) = 146.", [(146, "=", 146)]),
        ("2 + 3 * 4 = 14", [(14, "=", 14)]),
        ("8 - 3 - 2 = 3 and 24 / 4 / 2 = 3", [(3, "=", 3), (3, "=", 3)]),
        ("-3^2 = -9 and (-3)^2 = 9", [(-9, "=", -9), (9, "=", 9)]),
        ("$2^{10} = 1024$, $5^2=25$", [(1024, "=", 1024), (25, "=", 25)]),
        ("15% of 260 = 39", [(39, "=", 39)]),
        ("$15\\% \\text{ of } 260 = 39$", [(39, "=", 39)]),
        ("$\\frac{3}{4} \\cdot \\frac{8}{9} = \\frac{2}{3}$", [(Fraction(2, 3), "=", Fraction(2, 3))]),
        ("3/4 * 8 = 6", [(6, "=", 6)]),
        ("$\\binom{5}{2} = 10$ and C(6, 3) = 20", [(10, "=", 10), (20, "=", 20)]),
        ("4! = 24 and $3! \\cdot 2! = 12$", [(24, "=", 24), (12, "=", 12)]),
        ("gcd(12, 18) = 6 and $\\text{lcm}(4, 6) = 12$", [(6, "=", 6), (12, "=", 12)]),
        ("$\\gcd(8, 12) = 4$", [(4, "=", 4)]),
        ("sqrt(49) = 7, $\\sqrt{3^2 + 4^2} = 5$", [(7, "=", 7), (5, "=", 5)]),
        ("|3 - 8| = 5 and $|-2| = 2$", [(5, "=", 5), (2, "=", 2)]),
        ("17 mod 5 = 2, $17 \\bmod 5 = 3$", [(2, "=", 2), (2, "=", 3)]),
        ("$x = \\frac{98}{14} = 7$", [(3, "=", 7), (7, "=", 7)]),
        ("3x + 5 = 14 and 2(x - 1) = 4", [(14, "=", 14), (4, "=", 4)]),
        ("(x - 3)(x + 2) = 0, x^2 = 9", [(0, "=", 0), (9, "=", 9)]),
        ("3 x x is not read, 2 x 3 = 6 is", [(6, "=", 6)]),
        ("2x + 3y = 21", [(21, "=", 21)]),
        ("the cost = 3 * 4 = 12", [(None, "=", 12), (12, "=", 12)]),
        ("$0.50 \\cdot 3 = 1.50$", [(Fraction(3, 2), "=", Fraction(3, 2))]),
        ("$180^\\circ - 40^\\circ = 140^\\circ$ and 90° < 100°", [(140, "=", 140), (90, "<", 100)]),
        ("5 ≤ 7, $5 \\ge 7$", [(5, "<=", 7), (5, ">=", 7)]),
        ("at \\$13 each, and 4 + 4 = 8", [(8, "=", 8)]),
        ("a dozen = 12 eggs", [(None, "=", 12)]),
        ("There is no equation in 3 cakes or a 5-step plan.", []),
    ],
)
def test_equations_of_plain_text_and_latex(text, expected):
    assert read(text) == expected


def test_multiples_of_pi_keep_their_factor():
    for text in ("π * 5^2 = 25π", "$\\pi \\cdot 5^2 = 25\\pi$", "$\\pi r = 5 \\pi$"):
        right = chains(normalised(text))[0][-1].right
        assert right is not None
        assert str(expression(right)) in ("25*pi", "5*pi")
    [(left, _, right)] = read("π * 5^2 = 26π")
    assert left != right


def test_what_cannot_be_read_has_no_side():
    [[relation]] = chains("6 = red balls")
    assert relation.right is None


def test_expressions_are_the_longest_ones():
    assert [str(expression(tree)) for tree in expressions("not x^2 - 7x + 6 but 5 and 3/4")] == [
        "x**2 - 7*x + 6",
        "5",
        "3/4",
    ]
