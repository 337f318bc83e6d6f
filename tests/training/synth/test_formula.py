from fractions import Fraction

import pytest

from stepsight.training.synth.formula import parse_condition, parse_formula
from stepsight.training.synth.style import Style, capital
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
        ("h / b", Fraction(-3, 20), "3/4 / (-5)", "\\frac{\\frac{3}{4}}{-5}"),
        ("binom(n, c)", 35, "C(7, 3)", "\\binom{7}{3}"),
        ("factorial(c) * 2", 12, "3! * 2", "3! \\times 2"),
        ("gcd(a, 8) + lcm(4, 6)", 16, "gcd(12, 8) + lcm(4, 6)", "\\gcd(12, 8) + \\text{lcm}(4, 6)"),
        ("mod(a, n)", 5, "12 mod 7", "12 \\bmod 7"),
        ("sqrt(a * c)", 6, "sqrt(12 * 3)", "\\sqrt{12 \\times 3}"),
        ("abs(b - c)", 8, "|-5 - 3|", "|-5 - 3|"),
        ("floor(h) + ceil(h)", 1, "floor(3/4) + ceil(3/4)",
         "\\lfloor \\frac{3}{4} \\rfloor + \\lceil \\frac{3}{4} \\rceil"),
        ("log(2, 8)", 3, "log_2(8)", "\\log_{2} 8"),
        ("percent(25, a)", 3, "25% of 12", "25\\% \\text{ of } 12"),
    ],
)  # fmt: skip
def test_value_and_writing(text, value, plain, latex):
    formula = parse_formula(text)
    assert formula.value(VALUES) == value
    assert formula.written(VALUES, PLAIN) == plain
    assert formula.written(VALUES, LATEX) == latex


@each("text", ["a / (n - 7)", "sqrt(a)", "sqrt(b)", "mod(h, 2)", "factorial(b)", "2 ** h", "mod(a, n - 7)"])
def test_undefined_formulas(text):
    assert parse_formula(text).value(VALUES) is None


def test_names_operands_and_replacement():
    assert parse_formula("gcd(a, b) + abs(c) * 3").names == {"a", "b", "c"}
    substituted = parse_formula("c * x").substitute("x", parse_formula("a + b"))
    assert substituted.written(VALUES, PLAIN) == "3 * (12 + (-5))"
    assert substituted.value(VALUES) == 21
    assert parse_formula("a - 7").operands(VALUES) == ("-", 12, 7)
    assert parse_formula("percent(c, a)").operands(VALUES) == ("%", 12, 3)
    assert parse_formula("a + b * c").operands(VALUES) is None
    assert parse_formula("a ** 2").operands(VALUES) is None


@each("text, holds", [("b < c < a", True), ("a <= c", False), ("a / (n - 7) > 0", False), ("a != n", True)])
def test_conditions(text, holds):
    assert parse_condition(text).holds(VALUES) is holds


@each("text", ["a +", "a // b", "a.b", "open(a)", "gcd(a)", "[a]", "a if b else c", "1.5", "True", "'a'", "a < b"])
def test_invalid_formulas_are_refused(text):
    with pytest.raises(ValueError, match="is not a formula"):
        parse_formula(text)


@each("text", ["a + b", "a in b", "a < b and b < c"])
def test_invalid_conditions_are_refused(text):
    with pytest.raises(ValueError, match="is not a comparison"):
        parse_condition(text)


WRITTEN = {"a": Fraction(3), "b": Fraction(-2), "c": Fraction(0), "p": Fraction(15), "r": Fraction(-3, 4)}
TEXTS = {"what": "the sum", "n_": "a dozen cups"}
MONEY = Style(False, "×", "÷", decimals=True)


@each(
    "style, template, expected",
    [
        (PLAIN, "{what} is {a}, {b}, {(b)} and 5 {+b}.", "the sum is 3, -2, (-2) and 5 - 2."),
        (PLAIN, "{r} or {c}", "-3/4 or 0"),
        (LATEX, "{r} or {a}, {a}%", "$-\\frac{3}{4}$ or 3, 3%"),
        (MONEY, "[{r} * 4 / 2]", "-0.75 × 4 ÷ 2"),
        (LATEX, "[{a} * {(b)} = sqrt(36)]", "$3 \\times (-2) = \\sqrt{36}$"),
        (LATEX, "[2^12 <= log_2(8) + 5π]", "$2^{12} \\le \\log_{2} 8 + 5\\pi$"),
        (PLAIN, "\\frac{1}{2} and {unknown}", "\\frac{1}{2} and {unknown}"),
        (PLAIN, "[<a,b,c>]", "3x^2 - 2x"),
        (PLAIN, "[<1,-1,a>]", "x^2 - x + 3"),
        (PLAIN, "[<t;b,a>]", "-2t + 3"),
        (PLAIN, "[<0,0,0>]", "0"),
    ],
)
def test_steps(style, template, expected):
    assert style.fill(template, TEXTS, WRITTEN) == expected


@each(
    "style, expected",
    [
        (PLAIN, "a dozen cups cost $15 with 3% off; solve 3x - 2 = 15, 1/2."),
        (LATEX, "a dozen cups cost \\$15 with $3\\%$ off; solve $3x - 2 = 15$, $\\frac{1}{2}$."),
    ],
)
def test_problems(style, expected):
    template = "{n_} cost @{p} with {a}% off; solve [<a,b> = {p}], [1/2]."
    assert style.fill(template, TEXTS, WRITTEN, problem=True) == expected


def test_boxes_decimals_and_capitals():
    assert (LATEX.boxed("12"), PLAIN.boxed("12")) == ("$\\boxed{12}$", "12")
    assert [MONEY.number(Fraction(n)) for n in ("5/2", "1/3", "4")] == ["2.50", "1/3", "4"]
    assert [capital(text) for text in ("the sum", "x is 2", "a cup", "sqrt(4)", "")] == [
        "The sum", "x is 2", "A cup", "sqrt(4)", "",
    ]  # fmt: skip
