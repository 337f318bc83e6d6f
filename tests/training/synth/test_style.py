import random
from fractions import Fraction

import pytest

from stepsight.training.synth.style import Style, capital, signed
from tests.training.synth.samples import LATEX, PLAIN

VALUES = {"a": Fraction(3), "b": Fraction(-2), "c": Fraction(0), "p": Fraction(15), "r": Fraction(1, 2)}


@pytest.mark.parametrize(
    ("value", "plain", "latex"),
    [
        (Fraction(7), "7", "7"),
        (Fraction(-7), "-7", "-7"),
        (Fraction(3, 4), "3/4", "\\frac{3}{4}"),
        (Fraction(-3, 4), "-3/4", "-\\frac{3}{4}"),
    ],
)
def test_numbers(value, plain, latex):
    assert PLAIN.number(value) == plain
    assert LATEX.number(value) == latex


def test_decimals_only_where_two_places_suffice():
    money = Style(False, "*", "/", decimals=True)
    assert money.number(Fraction(5, 2)) == "2.50"
    assert money.number(Fraction(1, 3)) == "1/3"
    assert money.number(Fraction(4)) == "4"


def test_formulas_are_written_in_the_signs_of_the_style():
    assert PLAIN.math("3 * 4 = 12") == "3 * 4 = 12"
    assert Style(False, "×", "÷").math("3 * 4 / 2 = 6") == "3 × 4 ÷ 2 = 6"
    assert Style(True, "\\cdot", "\\div").math("3 * 4 / 2 = 6") == "$3 \\cdot 4 \\div 2 = 6$"
    assert LATEX.boxed("12") == "$\\boxed{12}$"
    assert PLAIN.boxed("12") == "12"


def test_places_of_a_step():
    texts = {"what": "the sum"}
    assert PLAIN.fill("{what} is {a}, {b}, {(b)} and 5 {+b}.", texts, VALUES) == "the sum is 3, -2, (-2) and 5 - 2."
    assert LATEX.fill("[{a} * {(b)}]", texts, VALUES) == "$3 \\times (-2)$"
    assert PLAIN.fill("\\frac{1}{2} and {unknown}", texts, VALUES) == "\\frac{1}{2} and {unknown}"


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ("<a,b,c>", "3x^2 - 2x"),
        ("<1,-1,a>", "x^2 - x + 3"),
        ("<t;b,a>", "-2t + 3"),
        ("<0,0,0>", "0"),
        ("<-1,0>", "-x"),
    ],
)
def test_polynomials(keys, shown):
    assert PLAIN.fill(f"[{keys}]", {}, VALUES) == shown


def test_problems_in_both_manners():
    template = "{n_} cost @{p} with {a}% off; solve [<a,b> = {p}]."
    texts = {"n_": "a dozen cups"}
    assert PLAIN.problem(template, texts, VALUES) == "a dozen cups cost $15 with 3% off; solve 3x - 2 = 15."
    assert LATEX.problem(template, texts, VALUES) == "a dozen cups cost \\$15 with $3\\%$ off; solve $3x - 2 = 15$."


def test_styles_vary():
    drawn = {Style.draw(random.Random(i)) for i in range(200)}
    assert {style.latex for style in drawn} == {True, False}
    assert {style.times for style in drawn} == {"\\times", "\\cdot", "*", "x", "×"}
    assert {style.over for style in drawn} == {"\\div", "/", "frac", "÷"}


def test_small_helps():
    assert (signed(-3), signed(3)) == ("(-3)", "3")
    assert capital("the sum") == "The sum"
    assert capital("") == ""
