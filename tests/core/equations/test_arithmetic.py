"""Equations between numbers: those that hold and fail, the right value, and the place of the fault."""

import pytest

from stepsight.core.equations import Method, check_steps
from tests.cases import each
from tests.core.equations.steps import checks, failing

HOLDING = [
    "She has 5 * 40 = 200 cards.",
    "so 3 + 4 = 7 and 7 - 2 = 5",
    "$3 \\times 4 = 12$",
    "\\[2\\cdot 14 + 3 \\div 3 = 29\\]",
    "6 × 7 = 42, 12 ÷ 4 = 3 and 5 · 5 = 25",
    "9 − 12 = −3",
    "He pays $5000 x 2 = $10,000 in all.",
    "that is 2x6=12 loaves",
    "$\\frac{3}{4} + \\frac12 = \\frac{5}{4} = 1\\frac14 = 1.25$",
    "1 1/2 + 2 = 3.5",
    "$2^{10} = 1024$ and 2^3 = 8 and 2**4 = 16",
    "$\\sqrt{50} = 5\\sqrt{2}$",
    "$\\sqrt[3]{27} = 3$ and √16 = 4",
    "20% of 50 = 10",
    "25% * 80 = 20",
    "100% - 10% = 90%",
    "3/4 * 100 = 75%",
    "20 / 80 * 100% = 25%",
    "1/3 = 0.33 and 2/3 = 0.67",
    "1/3 = 0.333...",
    "$\\frac{1}{3} = 0.\\overline{3}$",
    "100 / 7 ≈ 14.3",
    "$\\sqrt{2} \\approx 1.414$",
    "48/2 = <<48/2=24>>24 clips",
    "580/110 = <<580/110=5.2727272727272725>>5.27",
    "10 cages * 5 pieces of straw/cage * 10 hamsters/cage = 500 pieces of straw.",
    "3 potatoes * 6 scoops/potato - 1 scoop = 18 scoops - 1 scoop = 17 scoops.",
    "$4! = 24$ and $\\binom{5}{2} = 10$",
    "$10!/(7! \\cdot 3!) = 120$",
    "$|3 - 8| = 5$",
    "$\\sin 45^\\circ = \\frac{\\sqrt{2}}{2}$",
    "$\\log_2 8 = 3$",
    "$\\pi \\cdot 5^2 = 25\\pi$ and $25\\pi \\approx 78.54$",
    "$x = 3 + 4 = \\boxed{7}$",
    "$f(2) = 2(2) + 3 = 7$",
    "\\begin{align*} 3 + 4 &= 7 \\\\ &= 14 / 2 \\end{align*}",
    "Total: 3 + 4\n= 7",
    "1.5 million / 3 = 500,000",
    "3 plus 4 equals 7 and 3 times 4 is 12",
    "$6_8 + 7_8 = 15_8$",
    "96 ÷ 11 = 8 with a remainder of 8",
    "-3^2 + 10 = 1 and -3^2 + 10 = 19",
    "(6-1)! = 5! ways",
    "5² + 12² = 13²",
    "$50 - 10% = $45",
]


@each("text", HOLDING)
def test_a_true_equation_holds_in_any_notation(text):
    found = checks(text)
    assert found
    assert all(check.holds for check in found)


FAILING = [
    ("so the third child is 74 - 5 = 70 inches tall.", "74 - 5 = 70", "70", "69"),
    ("In total, Jason earned 3 + 1.50 + 1.50 + 3 = $8.00", "3 + 1.50 + 1.50 + 3 = $8.00", "$8.00", "9"),
    ("They make 125 + 125 + 250 = 490 chimichangas.", "125 + 125 + 250 = 490", "490", "500"),
    ("her sales were 3/4 x ($400 + $800) = $600.", "3/4 x ($400 + $800) = $600", "$600", "900"),
    ("She has 1,360 - 64 = 1,300 meals left.", "1,360 - 64 = 1,300", "1,300", "1296"),
    ("It is 12 boys + 12 girls - 7 students = 15 students.", "12 boys + 12 girls - 7 students = 15", "15", "17"),
    ("The sum is $30 + 99 = 128$.", "30 + 99 = 128", "128", "129"),
    ("$\\frac{9}{4}-3=\\frac{3}{4}$", "\\frac{9}{4}-3=\\frac{3}{4}", "\\frac{3}{4}", "-0.75"),
    ("$\\frac13 + \\frac13 = \\frac16$", "\\frac13 + \\frac13 = \\frac16", "\\frac16", "2/3"),
    ("we know that $729 = 27^3$.", "729 = 27^3", "729", "19,683"),
    ("$5^5-5^3 = 5^{5-3} = 5^2$", "5^5-5^3 = 5^{5-3}", "5^{5-3}", "3000"),
    ("$\\sqrt{64} = 9$", "\\sqrt{64} = 9", "9", "8"),
    ("20% of 50 = 15", "20% of 50 = 15", "15", "10"),
    ("12*2+8*2 = $<<12*2+8*2=40>>36", "12*2+8*2 = $<<12*2+8*2=40>>36", "$<<12*2+8*2=40>>36", "40"),
    ("$180(7-2) = 1080^{\\circ}$", "180(7-2) = 1080^{\\circ}", "1080^{\\circ}", "900"),
    ("1/3 = 0.35", "1/3 = 0.35", "0.35", "0.3333"),
    ("$\\binom{4}{2} = 8$", "\\binom{4}{2} = 8", "8", "6"),
    ("C(4, 2) = (4*3*2*1) / (2*1*1)\nC(4, 2) = 6", "(4*3*2*1) / (2*1*1)\nC(4, 2) = 6", "6", "12"),
    ("$129 \\div 11 = 11$ with a remainder of $1$.", "129 \\div 11 = 11", "11", "11 with a remainder of 8"),
    ("5² + 12² = 14²", "5² + 12² = 14²", "14²", "169"),
    ("$6_8 \\cdot 7_8 = 50_8$", "6_8 \\cdot 7_8 = 50_8", "50_8", "42"),
]


@each("text, equation, fault, right", FAILING)
def test_a_false_equation_fails_with_its_place_and_the_right_value(text, equation, fault, right):
    assert (equation, fault, right) in failing(text)


def test_a_failing_check_says_by_how_much_it_is_off():
    # 70 - 69 = 1.
    (check,) = checks("74 - 5 = 70")
    assert (check.difference, check.method) == ("1", Method.ARITHMETIC)


def test_only_the_wrong_link_of_a_chain_fails():
    # 2 · 9 = 18 and 18 = 20 - 2, but 3 + 4 is not 18.
    text = "3 + 4 = 2 * 9 = 20 - 2"
    assert [(text[check.start : check.end], check.holds) for check in checks(text)] == [
        ("3 + 4 = 2 * 9", False),
        ("2 * 9 = 20 - 2", True),
    ]


@each(
    "text, problem",
    [
        # Decimals that may have been rounded before: 26.67 is 80 / 3.
        ("26.67 * 3 = 80", "A problem."),
        # Integers may be rounded quotients.
        ("28 / 3 = 9 days", "A problem."),
        ("There are 42/5 + 42/25 = 8 + 1 factors.", "A problem."),
        ("7/2 = 3 with something left over", "A problem."),
        # A run-on, as people write it.
        ("5 + 3 = 8 * 2 = 16", "A problem."),
        # Units of one kind are mixed.
        ("60 miles * 30 minutes = 30 miles per hour and 2 hours + 30 minutes = 150 minutes", "A problem."),
        # Other arithmetic.
        ("6 + 5 = 14", "Compute 6 + 5 in base 7."),
        ("$2 \\star 3 = 7$ and 2 + 3 = 7", "Let $a \\star b = 2a + b$."),
        ("10 + 5 = 3 (mod 12)", "A problem."),
        ("He leaves at 10 a.m., and 10 + 5 = 3.", "A problem."),
        # Not all of it is read.
        ("profit + 5 = 8", "A problem."),
        ("half of 20 + 4 = 14", "A problem."),
        ("the average of 3 + 5 + 4 = 4", "A problem."),
        ("$f(3) + 2 = 9$ and $\\gcd(12, 18) + 1 = 7$", "A problem."),
        ("$1 + 2 + \\cdots + 10 = 55$", "A problem."),
        ("$\\sum_{i=1}^{5} i = 15$", "A problem."),
        ("5 choose 2 = 10", "A problem."),
        ("floor(42/16) = 2", "A problem."),
        ("group 2 = 3 + 5", "A problem."),
        ("1800 - 2000 = 200 less than before", "A problem."),
        ("$\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix} = 5$", "A problem."),
        ("sin 30 = 0.5", "A problem."),
        ("$30^\\circ = \\frac{\\pi}{6}$", "A problem."),
        ("1Dachshund + 1/4Papillon = 3/4Papillon", "A problem."),
        ("36 = 2ab + 0 and 3abc + 1 = 4", "A problem."),
        ("r(-118) = -116s - rs", "A problem."),
        ("\\[ 1200x = 1500000 \\] \\[ x = \\frac{1500000}{1200} \\]", "A problem."),
        ("$x = 3$ $y = 4$", "A problem."),
        ("1 + 1 = 10 in binary", "A problem."),
        ("$a^3+33ab-3abc+33ac-3abc+6abc=11^3$", "A problem."),
        ("Number of 100 students = 18 / 1170", "A problem."),
        ("= 5", "A problem."),
    ],
)
def test_an_equation_with_another_reading_is_left_alone(text, problem):
    assert failing(text, problem=problem) == []


def test_a_decimal_of_the_problem_is_exact():
    # 26.67 · 3 = 80.01 where the problem gives 26.67; where it does not, it may be 26.6767 rounded.
    text = "26.67 * 3 = 80.03"
    assert failing(text, problem="Each costs 26.67.") == [(text, "80.03", "80.01")]
    assert failing(text) == []


@pytest.mark.parametrize(
    "text", ["", " ", "No equation.", "x", "She has 12 apples.", "1 = 2", "10 apples = 3 dollars"]
)
def test_a_text_without_equations_has_no_checks(text):
    assert checks(text) == ()


@each(
    "text",
    [
        "The equation becomes 7 * 103 = 105. This is false.",
        "If 3 + 4 = 8, then we are lost.",
        "Suppose 2 + 2 = 5.",
        "Is 3 + 4 = 8?",
        "3 + 4 = 8, which is impossible.",
        "We get 5 * 2 = 11, a contradiction.",
        "2(3) + 5 = 12 does not work.",
        "We want 3 + 5 = 2 * 5.",
        "Plugging in $-7$, I get $|-7-3| = 2(-7) + 4$.",
        "$3 + 4 \\neq 8$ and 3 + 4 != 8",
    ],
)
def test_a_supposed_tested_or_refuted_equation_is_not_flagged(text):
    assert failing(text) == []


@pytest.mark.parametrize(
    "text", ["Hence **12 × 3 = 35**.", "**Total:** 12 × 3 = 35", "So **$12 \\times 3 = 35$**, then."]
)
def test_signs_of_bold_text_are_no_products(text):
    ((check,),) = check_steps("Multiply.", [text])
    assert (check.holds, check.right) == (False, "36")
    assert "35" in text[check.fault_start : check.fault_end]


def test_a_power_may_have_two_stars():
    ((check,),) = check_steps("Multiply.", ["So 2**3 = 8."])
    assert check.holds
