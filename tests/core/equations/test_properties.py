"""Properties of the checks on arithmetic drawn at random, in many notations."""

import random
from fractions import Fraction

from stepsight.core.equations import check_steps
from tests.cases import each
from tests.core.equations.steps import checks

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
            assert check.right.replace(",", "") == str(value), false
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
    for length in range(len(STEPS) + 1):
        assert check_steps("Find x.", STEPS[:length]) == whole[:length]
    assert check_steps("Find x.", [*STEPS[:3], "3 + 3 = 7"])[:3] == whole[:3]


def test_places_lie_within_the_text_and_the_fault_within_the_equation():
    for text, found in zip(STEPS, check_steps("Find x.", STEPS), strict=True):
        for check in found:
            assert 0 <= check.start < check.end <= len(text)
            assert check.holds or check.start <= check.fault_start < check.fault_end <= check.end
