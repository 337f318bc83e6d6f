import random
from fractions import Fraction

from stepsight.training.synth.block import LinkGroup, equations, group_links
from stepsight.training.synth.chain import PlantedError, carry_out
from stepsight.training.synth.plant import ErrorKind
from tests.training.synth.samples import LATEX, PLAIN, QUANTITIES, SHOP

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
