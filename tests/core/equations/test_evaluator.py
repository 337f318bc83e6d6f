"""The evaluator `equations` wherever an evaluator works: scores, records, metrics."""

import numpy as np
import pytest

from stepsight import Scorer, load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.judgment_record import judgment_record
from stepsight.core.metrics.first_error import Outcome, count_outcomes, first_errors
from stepsight.core.metrics.reasoneval import Errors, Level, items
from stepsight.core.metrics.table import TableBuilder
from stepsight.core.models.location import EQUATIONS, can_load
from stepsight.core.scores import Outputs
from stepsight.core.trace import Step, Trace
from tests.messages import refused

FAILS, HOLDS, NOTHING = [1, 0, 0], [0, 0, 1], [0, 0, 0]
TRACE = Trace.of(
    "She has 74 apples and gives 5 away. How many are left?",
    ["We subtract.", ["74 - 5 = 70", "That is what is left."], "Check: 5 + 5 = 10.", "Done."],
)


@pytest.fixture(scope="module")
def equations():
    return load_evaluator(EQUATIONS)


def judge(evaluator, trace, mode=Mode.HINDSIGHT):
    return Scorer(evaluator).score_one(trace, mode)


@pytest.mark.parametrize("mode", [Mode.ONLINE, Mode.OFFLINE])
def test_a_step_is_wrong_right_or_not_spoken_of(equations, mode):
    judgment = judge(equations, TRACE, mode)
    # The second sub-step belongs to a step in which something was checked.
    assert getattr(judgment, mode.value).probs.tolist() == [NOTHING, FAILS, HOLDS, HOLDS, NOTHING]
    assert judgment.solution == 0.0
    assert judgment.rationale == "Step 2: 74 - 5 is 69, not 70."


def test_later_steps_change_nothing(equations):
    whole = judge(equations, TRACE).hindsight
    assert not whole.retroactive.any()
    for length in range(1, len(TRACE.steps) + 1):
        prefix = Trace(TRACE.id, TRACE.problem, TRACE.steps[:length])
        rows = judge(equations, prefix, Mode.OFFLINE).offline.probs
        np.testing.assert_array_equal(rows, whole.offline.probs[: len(rows)])


def test_a_solution_without_equations_has_no_verdict(equations):
    trace = Trace.of("Which?", ["It is red.", "So red."])
    judgment = judge(equations, trace)
    assert (judgment.solution, judgment.rationale) == (None, "")
    assert not judgment.offline.probs.any()
    record = judgment_record(judgment, equations).offline
    assert ([step.valid for step in record.steps], record.solution.valid) == ([None, None], None)


def test_a_solution_whose_equations_hold_is_right(equations):
    judgment = judge(equations, Trace.of("Add.", ["2 + 3 = 5.", "So 5."]))
    assert (judgment.solution, judgment.rationale) == (1.0, "")
    record = judgment_record(judgment, equations).offline
    assert ([step.valid for step in record.steps], record.solution.valid) == ([True, None], True)


def test_the_record_has_verdicts_and_the_reason(equations):
    record = judgment_record(judge(equations, TRACE), equations)
    assert record.rationale == "Step 2: 74 - 5 is 69, not 70."
    assert [step.valid for step in record.offline.steps] == [None, False, True, True, None]
    assert record.offline.solution.valid is False


def test_candidates_for_the_next_step_are_checked(equations):
    rows = Scorer(equations).score_next("Add.", ["1 + 1 = 2."], ["So 3 + 3 = 7.", "We go on.", "2 + 2 = 4."])
    assert rows.tolist() == [FAILS, NOTHING, HOLDS]
    with refused():
        Scorer(equations).score_next("Add.", [], [])


def test_it_needs_no_folder_and_has_no_tokens(equations):
    assert can_load(EQUATIONS)
    assert len(equations.encode(TRACE)) == 0
    assert (equations.attention, equations.context, equations.parameters) == ("causal", None, 0)
    assert load_evaluator(EQUATIONS, dtype="bfloat16").fingerprint == equations.fingerprint


def table(equations, *traces):
    builder = TableBuilder()
    for trace in traces:
        judgment = judge(equations, trace, Mode.OFFLINE)
        builder.add(trace, judgment.offline, judgment.solution)
    return builder.build()


def steps(*texts):
    return Trace("", "Add.", tuple(Step((text,), valid=valid) for text, valid in texts))


def test_only_steps_with_checks_count(equations):
    judged = table(
        equations,
        steps(("We add.", True), ("2 + 2 = 5", False)),
        steps(("2 + 2 = 4", True), ("Done.", False)),
        steps(("Nothing here.", True)),
    )
    found = items(judged, Errors.INVALID, Level.STEP, Outputs.CHECKS)
    assert (found.gold.tolist(), found.predicted.tolist()) == ([False, True], [False, True])
    whole = items(judged, Errors.INVALID, Level.SOLUTION, Outputs.CHECKS)
    assert (whole.trace.tolist(), whole.predicted.tolist()) == ([0, 1], [False, True])


def test_the_first_error_is_the_first_failing_equation_if_any(equations):
    judged = table(
        equations,
        steps(("We add.", True), ("2 + 2 = 5", False)),
        steps(("We add.", True), ("2 + 2 = 5", True)),
        steps(("2 + 2 = 4", True), ("Done.", False)),
        steps(("It is so.", True)),
    )
    found = first_errors(judged, outputs=Outputs.CHECKS)
    assert count_outcomes(found) == {
        Outcome.RIGHT: 2, Outcome.MISSED: 1, Outcome.FALSE_ALARM: 1, Outcome.WRONG_STEP: 0
    }  # fmt: skip
    assert found.left_out == ""


def test_it_says_nothing_of_redundancy(equations):
    judged = table(equations, Trace.of("Add.", ["2 + 2 = 4.", "Again 2 + 2 = 4."], ["pos", "neu"]))
    for level in Level:
        assert not len(items(judged, Errors.REDUNDANT, level, Outputs.CHECKS))
