import random
from fractions import Fraction

from stepsight.training.synth.block import Block, equations, split
from stepsight.training.synth.chain import Plant, carry_out
from stepsight.training.synth.plant import SLIP
from tests.training.synth.samples import GIVENS, LATEX, PLAIN, SHOP

CHAIN = carry_out(SHOP.ops, GIVENS)
assert CHAIN is not None


def test_one_link_or_two_in_a_step():
    assert Block((0,)).equation(CHAIN, PLAIN) == "12 * 7 = 84"
    assert Block((0, 1)).equation(CHAIN, PLAIN) == "12 * 7 + 20 = 104"
    assert Block((0, 1)).equation(CHAIN, LATEX) == "12 \\times 7 + 20 = 104"
    assert Block((0, 1)).result(CHAIN) == 104
    assert Block((0, 1)).what(CHAIN, {}, PLAIN) == "the total"


def test_a_slip_inside_is_undone():
    faulty = carry_out(SHOP.ops, GIVENS, Plant(SLIP, 0, "a", Fraction(94)))
    assert faulty is not None
    block = Block((0, 1))
    assert block.equation(faulty, PLAIN) == "12 * 7 + 20 = 114"
    # 12 * 7 is 84 and not 94, so the second line starts from 84.
    assert equations(block.again(faulty), PLAIN) == ["12 * 7 = 84", "84 + 20 = 104"]


def test_links_are_split_into_blocks():
    alone = split(CHAIN, 0.0, random.Random(1))
    assert [block.indices for block in alone] == [(0,), (1,), (2,)]
    joined = {tuple(block.indices for block in split(CHAIN, 1.0, random.Random(seed))) for seed in range(20)}
    assert joined == {((0, 1), (2,)), ((0,), (1, 2))}
