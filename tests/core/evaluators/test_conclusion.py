"""The sentence on a result."""

import numpy as np
import pytest

from stepsight.core.evaluators.conclusion import Opinion, conclude
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import Trace

RIGHT = Trace.of("How many?", ["There are 6 bags of 4.", "6 * 4 = 24.", "So 24.", "Check: 24 / 6 = 4."])
WRONG = Trace.of("How many?", ["There are 6 bags of 4.", "6 * 4 = 26.", "So 26.", "Check: 26 - 2 = 24."])


def scores(*validities, redundancy=0.0):
    return StepScores(np.array([[1 - v, redundancy, v - redundancy] for v in validities], np.float32))


def triangle(*rows):
    return Hindsight(tuple(scores(*row).probs for row in rows))


def opinion(result, trace=RIGHT, name="prm", outputs=Outputs.VALIDITY, is_demonstration=False, **values):
    mode = Mode.HINDSIGHT if isinstance(result, Hindsight) else values.pop("mode", Mode.OFFLINE)
    return Opinion(name, outputs, Thresholds(), [Judgment(trace, mode, result, **values)], is_demonstration)


def said(*opinions, trace=RIGHT, **options):
    return conclude(trace, opinions, **options).text


VALID = scores(0.9, 0.9, 0.9, 0.9)
# Once the fourth step is in view, the second falls from 0.9 to 0.1.
EXPOSED = triangle((0.9,), (0.9, 0.9), (0.9, 0.9, 0.9), (0.9, 0.1, 0.9, 0.9))


def test_a_failing_equation_comes_first_and_each_evaluator_is_held_against_it():
    equation = "Step 2 is wrong: 6 * 4 is 24, not 26."
    assert said(trace=WRONG) == equation
    assert said(opinion(VALID), trace=WRONG) == f"{equation} prm does not see it."
    blaming = [opinion(scores(0.9, 0.1, 0.9, 0.9), name=name) for name in ("a", "b", "c")]
    assert said(*blaming, trace=WRONG) == f"{equation} a, b and c blame it too."
    elsewhere = opinion(scores(0.9, 0.9, 0.1, 0.9), name="other")
    assert said(elsewhere, opinion(VALID), trace=WRONG) == (
        f"{equation} other blames step 3 instead. prm does not see it."
    )
    result = conclude(WRONG, [opinion(VALID)])
    assert (result.accuses, result.is_exact) == (True, True)


def test_further_steps_with_failing_equations_are_named():
    trace = Trace.of("How many?", ["6 * 4 = 26.", "26 + 1 = 28.", ["So.", "28 + 1 = 30."]])
    assert said(trace=trace) == "Step 1 is wrong: 6 * 4 is 24, not 26. Steps 2 and 3.2 are wrong too."
    assert said(trace=Trace.of("q", trace.substeps[:2])).endswith("Step 2 is wrong too.")


def test_an_evaluator_that_blames_a_step_names_the_step_that_made_it_do_so():
    assert said(opinion(EXPOSED)) == "prm blames step 2; step 4 is its evidence."
    weak = opinion(EXPOSED, is_demonstration=True)
    assert said(weak) == "prm, a demonstration, blames step 2; step 4 is its evidence."
    # It falls by 0.3 with the third step, which does not check, and by 0.5 with the fourth.
    slowly = triangle((0.9,), (0.9, 0.9), (0.9, 0.4, 0.9), (0.9, 0.3, 0.9, 0.9))
    assert said(opinion(slowly)) == "prm blames step 2; step 3 is its evidence."


def test_without_a_fall_below_the_threshold_there_is_no_evidence():
    blamed = "prm blames steps 2 and 3."
    assert said(opinion(scores(0.9, 0.1, 0.2, 0.9))) == blamed
    assert said(opinion(Hindsight.constant(scores(0.9, 0.1, 0.2, 0.9)))) == blamed
    fallen = triangle((0.9,), (0.9, 0.4), (0.9, 0.4, 0.9), (0.9, 0.1, 0.9, 0.9))
    assert said(opinion(fallen)) == "prm blames step 2."
    online = opinion(scores(0.9, 0.1, 0.2, 0.9), mode=Mode.ONLINE)
    assert said(online) == "prm blames steps 2 and 3 online."


def test_those_who_are_known_to_be_weak_come_last():
    weak = opinion(EXPOSED, name="mini", is_demonstration=True)
    strong = opinion(scores(0.9, 0.9, 0.1, 0.9))
    assert said(weak, strong).startswith("prm blames step 3. mini, a demonstration, blames step 2;")
    assert said(weak, opinion(VALID)).endswith("step 4 is its evidence. prm blames no step.")


def test_where_nobody_blames_a_step_it_says_who_and_how_little_that_means():
    assert said(opinion(VALID, is_demonstration=True)) == (
        "No step is called wrong. prm is a demonstration and misses many errors."
    )
    assert said(opinion(VALID)) == "No step is called wrong by prm."
    assert said(opinion(VALID), opinion(VALID, name="other")) == "No step is called wrong by prm or other."
    assert said(opinion(VALID, mode=Mode.ONLINE)) == "No step is called wrong online by prm."
    assert said(opinion(VALID), opinion(VALID, name="mini", is_demonstration=True)) == (
        "No step is called wrong by prm. mini is a demonstration and misses many errors."
    )
    assert not conclude(RIGHT, [opinion(VALID)]).accuses


def test_equations_alone_do_not_reassure():
    # Two of the four steps state equations.
    assert said() == "The equations in 2 of 4 steps hold. Most errors are of another kind."
    checks = opinion(scores(1, 1, 1, 1), outputs=Outputs.CHECKS, name="equations")
    assert said(checks) == said()
    nothing = Trace.of("Which?", ["It is red.", "So red."])
    assert (
        said(trace=nothing) == "No evaluator has judged the steps, and they state no equation that can be checked."
    )


def test_redundant_and_cleared_steps_are_named():
    redundant = opinion(scores(0.9, 0.9, 0.9, 0.9, redundancy=0.2), outputs=Outputs.THREE_WAY)
    assert said(redundant) == "No step is called wrong by prm. prm calls steps 1, 2, 3 and 4 redundant."
    # Of an evaluator that gives no redundancy, none is made up.
    assert "redundant" not in said(opinion(scores(0.9, 0.9, 0.9, 0.9, redundancy=0.2)))
    cleared = triangle((0.9,), (0.9, 0.2), (0.9, 0.2, 0.9), (0.9, 0.9, 0.9, 0.9))
    assert said(opinion(cleared)) == "No step is called wrong by prm. prm blamed step 2 until it saw step 4."


@pytest.mark.parametrize(
    ("probs", "solution", "expected"),
    [
        ([[0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 0, 0]], 0.0, "critic blames step 2."),
        ([[0, 0, 0]] * 4, 0.0, "critic finds an error and names no step."),
        ([[0, 0, 1]] * 4, 1.0, "No step is called wrong by critic."),
        ([[0, 0, 0]] * 4, None, "critic says nothing about the steps."),
        ([[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]], 0.0, "critic calls step 1 redundant."),
    ],
)
def test_verdicts_in_words(probs, solution, expected):
    result = StepScores(np.array(probs, np.float32))
    text = said(opinion(result, name="critic", outputs=Outputs.VERDICT, solution=solution))
    assert text.endswith(expected)


def test_an_evaluator_of_whole_solutions_gives_its_number():
    rewarding = opinion(scores(0, 0, 0, 0), name="rm", outputs=Outputs.SOLUTION, solution=0.731)
    assert said(rewarding) == (
        "The equations in 2 of 4 steps hold. Most errors are of another kind. rm gives the whole solution 0.731."
    )
    assert said(rewarding, trace=WRONG) == "Step 2 is wrong: 6 * 4 is 24, not 26."


def test_a_step_of_the_thinking_is_said_to_be_one():
    blamed = opinion(scores(0.1, 0.9, 0.9, 0.9))
    assert said(blamed, thinking=1) == "prm blames step 1. Step 1 belongs to the thinking before the solution."
    assert said(blamed, thinking=0) == "prm blames step 1."
    stored = Trace("t", RIGHT.problem, RIGHT.steps, meta={"thought_steps": 2})
    assert "Step 1 belongs to the thinking" in said(blamed, trace=stored)


def test_of_many_steps_the_first_are_named():
    trace = Trace.of("q", [f"Line {i}." for i in range(9)])
    blamed = opinion(scores(*[0.1] * 9), trace)
    assert said(blamed, trace=trace) == "prm blames steps 1, 2, 3, 4, 5, 6 and 3 more."
