"""Properties of the checks on arithmetic drawn at random, and on text unfit for a parser, which gets no checks, at
once.
"""

import random
from fractions import Fraction
from functools import cache

import pytest

from stepsight.core.equations import check_steps
from tests.cases import each
from tests.core.equations.steps import checks
from tests.cost import processor_seconds

SIGNS = {
    "plain": ("+", "-", "*", "/"),
    "spoken": ("plus", "minus", "times", "divided by"),
    "signs": ("+", "−", "×", "÷"),
    "dots": ("+", "-", "·", "/"),
    "latex": ("+", "-", "\\times", "\\div"),
}
FRAMES = (
    "{}",
    "So she has {} apples.",
    "Step 3: Therefore, the total is {}.",
    "${}$",
    "\\[{}\\]",
    "We get $${}.$$",
    "- {}",
)


def draw(rng):
    """An expression of two to five numbers with its value, an integer or a decimal."""
    signs = SIGNS[rng.choice(sorted(SIGNS))]
    value = Fraction(rng.randint(1, 400))
    text = str(value)
    for _ in range(rng.randint(1, 4)):
        other = rng.randint(2, 60)
        which = rng.randrange(4)
        if which == 0:
            text, value = f"{text} {signs[0]} {other}", value + other
        elif which == 1:
            text, value = f"{text} {signs[1]} {other}", value - other
        elif which == 2:
            text, value = f"({text}) {signs[2]} {other}", value * other
        elif value.numerator % other == 0 and value:
            text, value = f"({text}) {signs[3]} {other}", value / other
    return text, value


@each("seed", range(60))
def test_true_arithmetic_holds_and_fails_with_one_digit_changed(seed):
    rng = random.Random(seed)
    for _ in range(20):
        text, value = draw(rng)
        is_spoken = any(sign in text for sign in SIGNS["spoken"])
        frame = rng.choice([frame for frame in FRAMES if not is_spoken or (frame[-1] in "}." and "$" not in frame)])
        if text.isdigit():
            continue
        true = frame.format(f"{text} = {value}")
        found = checks(true)
        assert all(check.holds for check in found), true
        assert found or frame.startswith("- "), true
        digits = str(value)
        place = rng.choice([i for i, sign in enumerate(digits) if sign.isdigit()])
        digit = rng.choice([d for d in "123456789" if d != digits[place]])
        wrong = digits[:place] + digit + digits[place + 1 :]
        false = frame.format(f"{text} = {wrong}")
        for check in checks(false):
            assert not check.holds, false
            assert check.expected.replace(",", "") == str(value), false
            assert false[check.fault_start : check.fault_end] == wrong


@each("seed", range(30))
def test_fractions_in_either_notation_are_worked_out_exactly(seed):
    rng = random.Random(seed)
    for _ in range(20):
        a, b, c, d = (rng.randint(1, 30) for _ in range(4))
        value = Fraction(a, b + 1) + Fraction(c, d + 1)
        right = f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
        (check,) = checks(f"$\\frac{{{a}}}{{{b + 1}}} + \\frac{{{c}}}{{{d + 1}}} = {right}$")
        assert check.holds
        (check,) = checks(f"{a}/{b + 1} + {c}/{d + 1} = {value.numerator + value.denominator}/{value.denominator}")
        assert not check.holds


STEPS = [
    "Let the number be x, so 2x + 6 = 10.",
    "Then 2x = 5 and 3 + 4 = 8.",
    "so x = 7.",
    "No, that is wrong: x = 2.",
    "It is $(x+1)^2 = x^2 + 2x + 2$.",
    "Area = 3 * 4\nArea = 13",
]


def test_the_checks_of_a_step_do_not_change_with_later_steps():
    whole = check_steps("Find x.", STEPS)
    assert any(not check.holds for found in whole for check in found)
    for text, found in zip(STEPS, whole, strict=True):
        assert_places(text, found)
    for length in range(len(STEPS) + 1):
        assert check_steps("Find x.", STEPS[:length]) == whole[:length]
    assert check_steps("Find x.", [*STEPS[:3], "3 + 3 = 7"])[:3] == whole[:3]


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
    pieces = [*"0123456789+-*/^=(){}[]|$%!.,;: xyzab\\_&<>~≈√πx²\n", " is ", " so ", " or ", " apples ", "<<", ">>"]
    pieces += ["\\frac", "\\sqrt", "\\cdot", "\\text{", "\\boxed{", "\\left", "\\begin{align*}", "\\overline{3}"]
    for _ in range(150):
        text = "".join(rng.choice(pieces) for _ in range(rng.choice([20, 100, 900])))
        assert_places(text, quick_checks(text))


def assert_places(text, found):
    """Assert that equations lie within the text, and a fault within its equation."""
    for check in found:
        assert 0 <= check.start < check.end <= len(text)
        assert check.holds or check.start <= check.fault_start < check.fault_end <= check.end


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
