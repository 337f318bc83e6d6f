import random
from fractions import Fraction

import pytest

from stepsight.training.synth.mistakes import ErrorKind, misread, slip
from stepsight.training.synth.story import Calculation, Mistake

OPERATION, SIGN, DROPPED, UNIT = ErrorKind.OPERATION, ErrorKind.SIGN, ErrorKind.DROPPED, ErrorKind.UNIT


def invited(formula: str, *own: Mistake) -> set[tuple[str, str]]:
    calculation = Calculation(key="r", formula=formula, mistakes=own)
    return {(mistake.kind, mistake.formula) for mistake in calculation.invited}


def test_a_single_operation_is_taken_for_another():
    assert invited("a + b") == {(OPERATION, "a - b"), (OPERATION, "a * b")}
    assert invited("a - b") == {(OPERATION, "a + b")}
    assert invited("a * b") == {(OPERATION, "a + b"), (OPERATION, "a / b")}


def test_terms_lose_their_sign_or_are_dropped():
    assert invited("a + b * c") == {(SIGN, "a - b * c"), (DROPPED, "a"), (DROPPED, "a + b")}


def test_units_are_confused():
    assert (UNIT, "a * 100") in invited("a * 60")
    assert (UNIT, "a / 10") in invited("a / 1000") | invited("a / 100")
    assert not any(kind == UNIT for kind, _ in invited("a * 61"))


def test_a_calculation_names_its_own():
    own = Mistake(kind=ErrorKind.FORMULA, formula="a * b")
    assert (ErrorKind.FORMULA, "a * b") in invited("a * b / 2", own)


@pytest.mark.parametrize("right", [2, 7, 19, 60, 385, -12, 0, 1])
def test_a_slip_is_wrong_and_near(right):
    rng = random.Random(right)
    wrong = {slip(Fraction(right), (Fraction(7),), rng) for _ in range(200)}
    assert Fraction(right) not in wrong
    assert len(wrong) > 5
    assert all(abs(number - right) <= 100 for number in wrong)


def test_many_slips_keep_the_last_digit():
    rng = random.Random(1)
    drawn = [slip(Fraction(385), (), rng) for _ in range(1000)]
    assert sum(number % 10 == 5 for number in drawn) > 500


def test_a_slip_of_a_fraction_is_another_fraction():
    rng = random.Random(2)
    drawn = {slip(Fraction(3, 8), (), rng) for _ in range(100)}
    # A part too many or too few, a part too small, or upside down.
    assert drawn == {Fraction(1, 2), Fraction(1, 4), Fraction(1, 3), Fraction(5, 8), Fraction(8, 3)}


@pytest.mark.parametrize("value", [24, 7, 100, -6, 1])
def test_a_misread_number_is_another(value):
    rng = random.Random(3)
    drawn = {misread(Fraction(value), [Fraction(15)], rng) for _ in range(200)}
    assert Fraction(value) not in drawn
    assert len(drawn) >= 3
    if value == 24:
        assert {Fraction(42), Fraction(15)} <= drawn
