import random
from fractions import Fraction

import pytest

from stepsight.training.synth.chain import Plant, carry_out, draw_chains
from stepsight.training.synth.plant import ANSWER, INFERENCE, KINDS, MISREAD, SLIP
from stepsight.training.synth.story import Given, Mistake, Op, Story
from tests.training.synth.samples import GIVENS, SHOP


def results(plant: Plant | None = None) -> list[Fraction]:
    chain = carry_out(SHOP.ops, GIVENS, plant)
    assert chain is not None
    return [link.result for link in chain.links]


def test_a_right_chain():
    # 12 * 7 = 84, 84 + 20 = 104, 104 + 5 = 109.
    assert results() == [84, 104, 109]


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (Plant(SLIP, 1, "b", Fraction(114)), [84, 114, 119]),
        (Plant(MISREAD, 0, "n", Fraction(21)), [147, 167, 172]),
        (Plant(INFERENCE, 0, "a", mistake=Mistake(INFERENCE, "n * n")), [144, 164, 169]),
        (Plant(ANSWER, 2, "b"), [84, 104, 109]),
    ],
)
def test_an_error_is_carried_on(plant, expected):
    assert results(plant) == expected


def test_a_slip_leaves_what_is_true_in_sight():
    chain = carry_out(SHOP.ops, GIVENS, Plant(SLIP, 1, "b", Fraction(114)))
    assert chain is not None
    assert [link.formula.value(link.values) for link in chain.links] == [84, 104, 119]
    assert chain.answer == 119


def test_a_wrong_final_answer_is_the_result_of_another_op():
    chain = carry_out(SHOP.ops, GIVENS, Plant(ANSWER, 2, "a"))
    assert chain is not None
    assert chain.answer == 84


def test_a_chain_without_value_is_none():
    assert carry_out((Op("a", "n / (p - 7)"),), GIVENS) is None


def test_a_drawn_error_changes_the_link_where_it_stands():
    kinds = set()
    for seed in range(300):
        draw = draw_chains(SHOP, random.Random(seed))
        kinds.add(draw.plant.kind)
        right, faulty = draw.right.links, draw.faulty.links
        for before in range(draw.plant.op):
            assert right[before].result == faulty[before].result
        if draw.plant.kind == ANSWER:
            assert draw.right.answer != draw.faulty.answer
        else:
            assert right[draw.plant.op].result != faulty[draw.plant.op].result
        for link in (*right, *faulty):
            assert link.result.denominator == 1
            assert SHOP.smallest <= link.result <= SHOP.largest
    assert kinds < set(KINDS)
    assert {SLIP, MISREAD, INFERENCE, ANSWER, "wrong operation"} <= kinds


def test_conditions_of_a_story_are_kept():
    story = Story(
        ("",), {"a": Given(range(20), ""), "b": Given(range(20), "")}, (Op("c", "a + b"),), fits=("a > b + 5",)
    )
    for seed in range(50):
        givens = draw_chains(story, random.Random(seed)).givens
        assert givens["a"] > givens["b"] + 5
