"""Solutions of a small story: its links and checks with each kind of error."""

import random
from collections import Counter
from fractions import Fraction

import pytest

from stepsight.training.synth.chain import (
    PlantedError,
    Problem,
    carry_out,
    draw_groups,
    draw_problem,
    equation,
    equations,
    recomputed,
)
from stepsight.training.synth.checks import checks
from stepsight.training.synth.mistakes import ErrorKind
from stepsight.training.synth.steps import StorySolution
from tests.cases import each
from tests.training.synth.samples import LATEX, PLAIN, SHOP, read_story

QUANTITIES = {"n": Fraction(12), "p": Fraction(7), "q": Fraction(20)}
ERRORS = {
    "slip": PlantedError(ErrorKind.SLIP, 0, "a", Fraction(94)),
    "misread": PlantedError(ErrorKind.MISREAD, 0, "n", Fraction(21)),
    "inference": PlantedError(ErrorKind.INFERENCE, 0, "a", mistake=SHOP.calculations[0].mistakes[0]),
    "answer": PlantedError(ErrorKind.ANSWER, 2, "b"),
}


def solution(error, wrong=True):
    right, faulty = carry_out(SHOP.calculations, QUANTITIES), carry_out(SHOP.calculations, QUANTITIES, error)
    problem = Problem(SHOP, QUANTITIES, {"name": "Ann"}, error, right, faulty)
    groups = [slice(i, i + 1) for i in range(3)]
    return StorySolution(problem, wrong, groups, PLAIN, None, False, random.Random(1))


@each(
    "name, results, answer",
    [
        # 12 * 7 = 84, 84 + 20 = 104, 104 + 5 = 109.
        ("slip", [94, 114, 119], 119),
        ("misread", [147, 167, 172], 172),
        ("inference", [144, 164, 169], 169),
        ("answer", [84, 104, 109], 104),
    ],
)
def test_an_error_is_carried_on(name, results, answer):
    chain = solution(ERRORS[name]).stated
    assert ([link.result for link in chain.links], chain.answer) == (results, answer)


@each(
    "name, settling, texts",
    [
        # 94 is no multiple of 7. From the answer 119 back: 119 - 5 = 114, 114 - 20 = 94, and 94 / 12 is not whole.
        (
            "slip",
            {"recompute", "plausibility", "contradiction"},
            {"contradiction": "with 119, 119 - 5 = 114 and 114 - 20 = 94 and 94 / 12 ", "recompute": "7 * 12 = 84"},
        ),
        # 172 - 5 = 167, 167 - 20 = 147, and 147 / 12 is not whole.
        ("misread", {"reread", "recompute", "contradiction"}, {"reread": "the problem says 12 cups, "}),
        # 169 - 5 = 164, 164 - 20 = 144, and 144 / 12 is 12, not 7.
        (
            "inference",
            {"method", "recompute", "add back"},
            {"method": "the cost of the cups must be 12 * 7 = 84, ", "add back": "and 144 / 12 = 12, "},
        ),
        (
            "answer",
            {"question", "contradiction"},
            {"question": "the question asks for the total with delivery, which is 109, "},
        ),
    ],
)
def test_checks_see_the_errors_that_they_can_see(name, settling, texts):
    offered = list(checks(solution(ERRORS[name])))
    seeing = [check for check in offered if check.settles and not check.passes]
    assert {check.kind for check in seeing} == settling
    for kind, text in texts.items():
        assert any(text in check.texts[0] for check in seeing if check.kind == kind)


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_in_a_right_solution_every_check_passes(error):
    offered = list(checks(solution(error, wrong=False)))
    assert all(check.passes for check in offered)
    # 109 - 5 = 104, 104 - 20 = 84, 84 / 12 = 7: the price that was given.
    [back] = [check.texts[0] for check in offered if check.kind == "add back"]
    assert back.startswith("with 109, 109 - 5 = 104 and 104 - 20 = 84 and 84 / 12 = 7, ")


def test_one_link_or_two_in_a_step():
    right, faulty = solution(ERRORS["slip"], wrong=False).stated.links, solution(ERRORS["slip"]).stated.links
    assert equation(right[:1], PLAIN) == "12 * 7 = 84"
    assert equation(right[:2], LATEX) == "12 \\times 7 + 20 = 104"
    assert equation(faulty[:2], PLAIN) == "12 * 7 + 20 = 114"
    # 12 * 7 is 84 and not 94, so the second line starts from 84.
    assert equations(recomputed(faulty[:2]), PLAIN) == ["12 * 7 = 84", "84 + 20 = 104"]
    joined = {tuple(group.start for group in draw_groups(SHOP, 1.0, random.Random(seed))) for seed in range(20)}
    assert joined == {(0, 2), (0, 1)}
    assert [group.start for group in draw_groups(SHOP, 0.0, random.Random(1))] == [0, 1, 2]


def test_problems_keep_the_conditions_of_their_story_and_their_error_changes_a_result():
    story = read_story("""
        problems: What is [{a} + {b}]?
        quantities: {a: {values: 0 to 19}, b: {values: 0 to 19}}
        steps: {c: {formula: a + b}, d: {formula: c * 2}, e: {formula: d - a}}
        conditions: [a > b + 5]
        largest: 60
    """)
    kinds = Counter()
    for seed in range(200):
        problem = draw_problem(story, random.Random(seed))
        error, right, faulty = problem.error, problem.right.links, problem.faulty.links
        assert problem.quantities["a"] > problem.quantities["b"] + 5
        assert all(link.result.denominator == 1 and 1 <= link.result <= 60 for link in (*right, *faulty))
        same = [a.result == b.result for a, b in zip(right, faulty, strict=True)]
        if error.kind == ErrorKind.ANSWER:
            assert problem.right.answer != problem.faulty.answer
        else:
            assert same[: error.index + 1] == [True] * error.index + [False]
        kinds[error.kind] += 1
    assert {ErrorKind.SLIP, ErrorKind.MISREAD, ErrorKind.OPERATION, ErrorKind.ANSWER} <= set(kinds)
