from fractions import Fraction

import pytest
import sympy

from stepsight.training.synth.formula import Condition, Formula
from tests.cases import each
from tests.training.synth.samples import LATEX, PLAIN

VALUES = {key: Fraction(number) for key, number in {"a": 12, "b": -5, "c": 3, "n": 7}.items()} | {
    "h": Fraction(3, 4)
}


@each(
    "text, value, plain, latex",
    [
        ("a * b", -60, "12 * (-5)", "12 \\times (-5)"),
        ("b * a", -60, "(-5) * 12", "(-5) \\times 12"),
        ("a - (c - n)", 16, "12 - (3 - 7)", "12 - (3 - 7)"),
        ("a - c - n", 2, "12 - 3 - 7", "12 - 3 - 7"),
        ("a / c", 4, "12 / 3", "\\frac{12}{3}"),
        ("(a + n) * c", 57, "(12 + 7) * 3", "(12 + 7) \\times 3"),
        ("b ** 2", 25, "(-5)^2", "(-5)^2"),
        ("c ** n", 2187, "3^7", "3^7"),
        ("h * a", 9, "3/4 * 12", "\\frac{3}{4} \\times 12"),
        ("binom(n, c)", 35, "C(7, 3)", "\\binom{7}{3}"),
        ("factorial(c) * 2", 12, "3! * 2", "3! \\times 2"),
        ("gcd(a, 8) + lcm(4, 6)", 16, "gcd(12, 8) + lcm(4, 6)", "\\gcd(12, 8) + \\text{lcm}(4, 6)"),
        ("mod(a, n)", 5, "12 mod 7", "12 \\bmod 7"),
        ("sqrt(a * c)", 6, "sqrt(12 * 3)", "\\sqrt{12 \\times 3}"),
        ("abs(b - c)", 8, "|-5 - 3|", "|-5 - 3|"),
        ("percent(25, a)", 3, "25% of 12", "25\\% \\text{ of } 12"),
    ],
)
def test_value_and_writing(text, value, plain, latex):
    formula = Formula.of(text)
    assert formula.value(VALUES) == value
    assert formula.written(VALUES, PLAIN) == plain
    assert formula.written(VALUES, LATEX) == latex


@pytest.mark.parametrize(
    "text", ["a / (n - 7)", "sqrt(a)", "sqrt(b)", "mod(h, 2)", "factorial(b)", "2 ** h", "mod(a, n - 7)"]
)
def test_undefined_formulas(text):
    assert Formula.of(text).value(VALUES) is None


@pytest.mark.parametrize(
    "text", ["a*b + c", "(a + b) * (c - n) / 4", "a - (b - (c - n))", "h * a - b / c", "b ** 3 - a"]
)
def test_values_are_those_of_sympy(text):
    exact = {key: sympy.Rational(v.numerator, v.denominator) for key, v in VALUES.items()}
    expected = sympy.sympify(text, locals={key: sympy.Symbol(key) for key in VALUES}).subs(exact)
    assert Formula.of(text).value(VALUES) == Fraction(int(expected.p), int(expected.q))


def test_names_are_those_of_quantities():
    assert Formula.of("gcd(a, b) + abs(c) * 3").names == {"a", "b", "c"}


def test_a_formula_put_into_another_keeps_its_brackets():
    put = Formula.of("c * x").put("x", Formula.of("a + b"))
    assert put.written(VALUES, PLAIN) == "3 * (12 + (-5))"
    assert put.value(VALUES) == 21


def test_operands_of_a_single_operation():
    assert Formula.of("a - 7").operands(VALUES) == ("-", 12, 7)
    assert Formula.of("percent(c, a)").operands(VALUES) == ("%", 12, 3)
    assert Formula.of("a + b * c").operands(VALUES) is None
    assert Formula.of("a ** 2").operands(VALUES) is None


def test_conditions():
    assert Condition.of("b < c < a").holds(VALUES)
    assert not Condition.of("a <= c").holds(VALUES)
    assert not Condition.of("a / (n - 7) > 0").holds(VALUES)


@each("text", ["a +", "a // b", "a.b", "open(a)", "gcd(a)", "[a]", "a if b else c", "1.5", "True", "'a'"])
def test_invalid_formulas_are_refused(text):
    with pytest.raises(ValueError, match="is no formula"):
        Formula.of(text)


@pytest.mark.parametrize("text", ["a + b", "a in b", "a < b and b < c"])
def test_invalid_conditions_are_refused(text):
    with pytest.raises(ValueError, match="is no comparison"):
        Condition.of(text)
