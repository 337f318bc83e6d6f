import random
from fractions import Fraction

import pytest

from stepsight.training.synth.story import Given, Story
from tests.training.synth.samples import SHOP


def test_larger_numbers_lie_beyond_all_others():
    given = Given(range(10, 100, 10), "")
    rng = random.Random(1)
    usual = {given.draw(rng, larger=False) for _ in range(300)}
    larger = {given.draw(rng, larger=True) for _ in range(300)}
    assert max(usual) < min(larger)
    assert all(number % 10 == 0 for number in usual | larger)


@pytest.mark.parametrize("given", [Given((1, 2, 6), "", fixed=True), Given((7, 14), "days", {7: "a week"})])
def test_what_must_not_grow(given):
    rng = random.Random(1)
    assert {given.draw(rng, larger=True) for _ in range(100)} == set(given.values)


def test_quantities_and_names_are_drawn():
    values, names = SHOP.draw(random.Random(4), larger=False)
    assert set(values) == {"n", "p", "q"}
    assert all(number in SHOP.givens[key].values for key, number in values.items())
    assert names["name"] in ("Ann", "Ben")


def test_givens_are_made_of_what_the_problem_does_not_tell():
    story = Story(
        ("x^2 + {b}x + {c} = 0",),
        {"b": Given((), "", made="0 - r - s"), "c": Given((), "", made="r * s")},
        (),
        seeds={"r": Given((3,), ""), "s": Given((-5,), "")},
    )
    # The roots 3 and -5 have sum -2 and product -15.
    assert story.draw(random.Random(1), False)[0] == {"b": Fraction(2), "c": Fraction(-15)}


def test_a_dozen_is_said_in_words_or_in_digits():
    values = {"n": Fraction(12), "p": Fraction(3), "q": Fraction(5)}
    said = {SHOP.words(values, {}, random.Random(i))["n_"] for i in range(50)}
    assert said == {"a dozen cups", "12 cups"}
    assert SHOP.words({**values, "n": Fraction(11)}, {}, random.Random(1))["n_"] == "11 cups"
