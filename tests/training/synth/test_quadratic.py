"""The planner of quadratics, the one family that is no story."""

import random
import re
from fractions import Fraction

from stepsight.training.synth.corpus import generate
from stepsight.training.synth.families import QUADRATIC, read_family
from stepsight.training.synth.quadratic import QuadraticWording, plan_quadratic, polynomial

WORDING = read_family(QUADRATIC, QuadraticWording)


def test_polynomials_are_written_with_their_signs():
    assert polynomial(-7, 6) == "x^2 - 7x + 6"
    assert polynomial(1, -20) == "x^2 + x - 20"
    assert polynomial(0, -9) == "x^2 - 9"


def test_wrong_pairs_miss_the_sum_or_the_product():
    wrong = [t for t in generate(2, 300, ["quadratic"]) if t.meta["error"] == "arithmetic slip"]
    assert len(wrong) > 30
    for trace in wrong:
        claims = trace.meta["claims"][trace.meta["error_step"]]
        b, c = trace.meta["givens"]["b"], trace.meta["givens"]["c"]
        assert (claims["product"], claims["sum"]) != (c, b)


def test_larger_roots_lie_beyond_those_of_training():
    for seed in range(100):
        for larger, low, high in ((False, 1, 12), (True, 13, 24)):
            plan = plan_quadratic(WORDING, False, random.Random(seed), larger)
            b, c = (Fraction(plan.quantities[key]) for key in "bc")
            # The roots r, s of x^2 + bx + c have r + s = -b and rs = c.
            roots = [r for r in range(-24, 25) if r * r + b * r + c == 0]
            assert len(roots) == 2
            assert all(low <= abs(root) <= high for root in roots)


def test_an_answer_is_asked_for_or_the_roots_are_given():
    texts = [plan_quadratic(WORDING, True, random.Random(seed)).problem for seed in range(200)]
    assert any("difference of the roots" in text for text in texts)
    assert any(re.match(r"(?:Solve|Find the roots)", text) for text in texts)
