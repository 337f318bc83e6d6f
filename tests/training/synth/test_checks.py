"""The checks that a solution offers: each says the truth, and settles the error only where it can see it."""

import random
from collections import defaultdict
from fractions import Fraction

import pytest

from stepsight.training.synth.chain import DrawnProblem, LinkGroup, PlantedError, carry_out
from stepsight.training.synth.checks import Inspection
from stepsight.training.synth.mistakes import ErrorKind
from stepsight.training.synth.solution import SelfCheck
from stepsight.training.synth.story import Mistake
from tests.training.synth.samples import PLAIN, QUANTITIES, SHOP

ERRORS = {
    "slip": PlantedError(ErrorKind.SLIP, 0, "a", Fraction(94)),
    "misread": PlantedError(ErrorKind.MISREAD, 0, "n", Fraction(21)),
    "inference": PlantedError(
        ErrorKind.INFERENCE, 0, "a", mistake=Mistake(kind=ErrorKind.INFERENCE, formula="n * n")
    ),
    "answer": PlantedError(ErrorKind.ANSWER, 2, "b"),
}


def checks(error: PlantedError, wrong: bool = True) -> dict[str, list[SelfCheck]]:
    right, faulty = carry_out(SHOP.calculations, QUANTITIES), carry_out(SHOP.calculations, QUANTITIES, error)
    assert right is not None
    assert faulty is not None
    problem = DrawnProblem(dict(QUANTITIES), {"name": "Ann"}, error, right, faulty)
    groups = tuple(LinkGroup((i,)) for i in range(3))
    focus = 3 if error.kind == ErrorKind.ANSWER else error.index
    stated = faulty if wrong else right
    found = defaultdict(list)
    for check in Inspection(SHOP, problem, stated, groups, PLAIN, 0, focus, random.Random(1)).checks():
        found[check.kind].append(check)
    return found


def settling(found: dict[str, list[SelfCheck]]) -> set[str]:
    return {kind for kind, those in found.items() if any(check.settles for check in those)}


def test_a_slip_is_seen_by_the_inverse_and_by_going_back():
    found = checks(ERRORS["slip"])
    # 94 is no multiple of 7. From the answer 119 back: 119 - 5 = 114, 114 - 20 = 94, and 94 / 12 is not whole.
    assert settling(found) == {"recompute", "plausibility", "contradiction"}
    [contradiction] = found["contradiction"]
    assert contradiction.text().startswith("with 119, 119 - 5 = 114 and 114 - 20 = 94 and 94 / 12 ")
    assert any("7 * 12 = 84" in check.text() and "94" in check.text() for check in found["recompute"])
    # The later sum is right in itself: 94 + 20 = 114.
    assert [check.passes for check in found["inverse"] if "114 - 20" in check.text()] == [True]


def test_a_misread_number_is_seen_by_reading_again_and_not_by_the_arithmetic():
    found = checks(ERRORS["misread"])
    # With 172: 172 - 5 = 167, 167 - 20 = 147, and 147 / 12 is not whole.
    assert settling(found) == {"reread", "recompute", "contradiction"}
    [reread] = [check for check in found["reread"] if check.settles]
    assert "the problem says 12 cups" in reread.text()
    assert "21" in reread.text()
    assert all(check.passes for check in found["inverse"])


def test_a_wrong_method_is_seen_by_the_method():
    found = checks(ERRORS["inference"])
    [method] = found["method"]
    assert method.text().startswith("the cost of the cups must be 12 * 7 = 84, ")
    assert method.settles
    assert not method.passes
    assert "144" in method.text()


def test_a_wrong_answer_is_seen_by_the_question():
    found = checks(ERRORS["answer"])
    [question] = found["question"]
    assert question.text().startswith("the question asks for the total with delivery, which is 109, ")
    assert "104" in question.text()
    assert question.settles
    assert all(check.target == 3 for check in found["question"] + found["contradiction"])


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_in_a_right_solution_every_check_passes(error):
    found = checks(error, wrong=False)
    assert all(check.passes for those in found.values() for check in those)
    # 109 - 5 = 104, 104 - 20 = 84, 84 / 12 = 7: the price that was given.
    [back] = found["add back"]
    assert back.text().startswith("with 109, 109 - 5 = 104 and 104 - 20 = 84 and 84 / 12 = 7, ")
    assert not any(check.settles for check in found["implausible"])
