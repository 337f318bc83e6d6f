from fractions import Fraction

from stepsight.training.synth.style import Style, capital
from tests.cases import each
from tests.training.synth.samples import LATEX, PLAIN

VALUES = {"a": Fraction(3), "b": Fraction(-2), "c": Fraction(0), "p": Fraction(15), "r": Fraction(-3, 4)}
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
    assert style.fill(template, TEXTS, VALUES) == expected


@each(
    "style, expected",
    [
        (PLAIN, "a dozen cups cost $15 with 3% off; solve 3x - 2 = 15, 1/2."),
        (LATEX, "a dozen cups cost \\$15 with $3\\%$ off; solve $3x - 2 = 15$, $\\frac{1}{2}$."),
    ],
)
def test_problems(style, expected):
    template = "{n_} cost @{p} with {a}% off; solve [<a,b> = {p}], [1/2]."
    assert style.fill(template, TEXTS, VALUES, problem=True) == expected


def test_boxes_decimals_and_capitals():
    assert (LATEX.boxed("12"), PLAIN.boxed("12")) == ("$\\boxed{12}$", "12")
    assert [MONEY.number(Fraction(n)) for n in ("5/2", "1/3", "4")] == ["2.50", "1/3", "4"]
    assert [capital(text) for text in ("the sum", "x is 2", "a cup", "sqrt(4)", "")] == [
        "The sum", "x is 2", "A cup", "sqrt(4)", "",
    ]  # fmt: skip
