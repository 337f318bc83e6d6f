import random
from fractions import Fraction

import pytest

from stepsight.training.synth.chain import LinkGroup, PlantedError, carry_out, draw_problem, equations, group_links
from stepsight.training.synth.mistakes import ErrorKind
from stepsight.training.synth.story import Calculation, Mistake
from tests.training.synth.samples import LATEX, PLAIN, QUANTITIES, SHOP, read_story

SLIP, MISREAD, ANSWER, INFERENCE = ErrorKind.SLIP, ErrorKind.MISREAD, ErrorKind.ANSWER, ErrorKind.INFERENCE


def results(error: PlantedError | None = None) -> list[Fraction]:
    chain = carry_out(SHOP.calculations, QUANTITIES, error)
    assert chain is not None
    return [link.result for link in chain.links]


def test_a_right_chain():
    # 12 * 7 = 84, 84 + 20 = 104, 104 + 5 = 109.
    assert results() == [84, 104, 109]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PlantedError(SLIP, 1, "b", Fraction(114)), [84, 114, 119]),
        (PlantedError(MISREAD, 0, "n", Fraction(21)), [147, 167, 172]),
        (PlantedError(INFERENCE, 0, "a", mistake=Mistake(kind=INFERENCE, formula="n * n")), [144, 164, 169]),
        (PlantedError(ANSWER, 2, "b"), [84, 104, 109]),
    ],
)
def test_an_error_is_carried_on(error, expected):
    assert results(error) == expected


def test_a_slip_leaves_what_is_true_in_sight():
    chain = carry_out(SHOP.calculations, QUANTITIES, PlantedError(SLIP, 1, "b", Fraction(114)))
    assert chain is not None
    assert [link.formula.value(link.values) for link in chain.links] == [84, 104, 119]
    assert chain.answer == 119


def test_a_wrong_final_answer_is_the_result_of_another_calculation():
    chain = carry_out(SHOP.calculations, QUANTITIES, PlantedError(ANSWER, 2, "a"))
    assert chain is not None
    assert chain.answer == 84


def test_a_chain_without_value_is_none():
    assert carry_out((Calculation(key="a", formula="n / (p - 7)"),), QUANTITIES) is None


def test_a_drawn_error_changes_the_link_where_it_stands():
    kinds = set()
    for seed in range(300):
        draw = draw_problem(SHOP, random.Random(seed))
        kinds.add(draw.error.kind)
        right, faulty = draw.right.links, draw.faulty.links
        for before in range(draw.error.index):
            assert right[before].result == faulty[before].result
        if draw.error.kind == ANSWER:
            assert draw.right.answer != draw.faulty.answer
        else:
            assert right[draw.error.index].result != faulty[draw.error.index].result
        for link in (*right, *faulty):
            assert link.result.denominator == 1
            assert SHOP.smallest <= link.result <= SHOP.largest
    assert kinds < set(ErrorKind)
    assert {SLIP, MISREAD, INFERENCE, ANSWER, "wrong operation"} <= kinds


def test_conditions_of_a_story_are_kept():
    story = read_story("""
        problems: What is [{a} + {b}]?
        quantities: {a: {values: 0 to 19}, b: {values: 0 to 19}}
        steps: {c: {formula: a + b}}
        conditions: [a > b + 5]
    """)
    for seed in range(50):
        quantities = draw_problem(story, random.Random(seed)).quantities
        assert quantities["a"] > quantities["b"] + 5


CHAIN = carry_out(SHOP.calculations, QUANTITIES)
assert CHAIN is not None


def test_one_link_or_two_in_a_step():
    assert LinkGroup((0,)).equation(CHAIN, PLAIN) == "12 * 7 = 84"
    assert LinkGroup((0, 1)).equation(CHAIN, PLAIN) == "12 * 7 + 20 = 104"
    assert LinkGroup((0, 1)).equation(CHAIN, LATEX) == "12 \\times 7 + 20 = 104"
    assert LinkGroup((0, 1)).result(CHAIN) == 104
    assert LinkGroup((0, 1)).what(CHAIN, {}, PLAIN) == "the total"


def test_a_slip_inside_is_undone():
    faulty = carry_out(SHOP.calculations, QUANTITIES, PlantedError(ErrorKind.SLIP, 0, "a", Fraction(94)))
    assert faulty is not None
    group = LinkGroup((0, 1))
    assert group.equation(faulty, PLAIN) == "12 * 7 + 20 = 114"
    # 12 * 7 is 84 and not 94, so the second line starts from 84.
    assert equations(group.again(faulty), PLAIN) == ["12 * 7 = 84", "84 + 20 = 104"]


def test_links_are_told_one_or_two_in_a_step():
    alone = group_links(SHOP, 0.0, random.Random(1))
    assert [group.indices for group in alone] == [(0,), (1,), (2,)]
    joined = {tuple(group.indices for group in group_links(SHOP, 1.0, random.Random(seed))) for seed in range(20)}
    assert joined == {((0, 1), (2,)), ((0,), (1, 2))}
