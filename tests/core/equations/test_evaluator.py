"""The evaluator `equations` wherever an evaluator works: scores, records, metrics, words, and the version of the
checks.
"""

import hashlib
import json
from dataclasses import astuple, replace

import numpy as np
import pytest

from stepsight import Scorer, load_evaluator
from stepsight.core.equations.evaluator import VERSION, checks_of, failing_equations, faults, finding
from stepsight.core.judgment import Mode
from stepsight.core.judgment_record import judgment_record
from stepsight.core.metrics.first_error import Outcome, count_outcomes, first_errors
from stepsight.core.metrics.reasoneval import Errors, Level, items
from stepsight.core.metrics.table import build_table
from stepsight.core.models.location import EQUATIONS, can_load
from stepsight.core.scores import Outputs
from stepsight.core.trace import Step, Trace
from stepsight.training.evaluate.strength import read_gallery
from stepsight.training.synth.corpus import generate
from tests.cases import each
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
    assert not judge(equations, TRACE).hindsight.retroactive.any()


@each(
    "trace, solution, rationale, steps",
    [
        (TRACE, False, "Step 2: 74 - 5 is 69, not 70.", [None, False, True, True, None]),
        (Trace.of("Which?", ["It is red.", "So red."]), None, None, [None, None]),
        (Trace.of("Add.", ["2 + 3 = 5.", "So 5."]), True, None, [True, None]),
    ],
)
def test_the_record_has_the_verdicts_and_the_reason(equations, trace, solution, rationale, steps):
    record = judgment_record(judge(equations, trace), equations)
    assert (record.offline.solution.valid, record.rationale) == (solution, rationale)
    assert [step.valid for step in record.offline.steps] == steps


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
    judged = [judge(equations, trace, Mode.OFFLINE) for trace in traces]
    table = build_table((one.trace, one.offline) for one in judged)
    return replace(table, solution=np.array([one.solution for one in judged], np.float64))


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


def findings(problem, *steps):
    trace = Trace.of(problem, list(steps))
    return [finding(trace, i, check) for i, part in enumerate(checks_of(trace)) for check in faults(part)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("So the speed is 180 / 2.5 = 75 km/h.", "180 / 2.5 is 72, not 75"),
        ("So 75 = 180 / 2.5.", "180 / 2.5 is 72, not 75"),
        ("3 + 4 equals 8.", "3 + 4 is 7, not 8"),
        ("15% of 80 is 13.", "15% of 80 is 12, not 13"),
        ("$80 - $12 = $72", "$80 - $12 is 68, not $72"),
        # With as many decimals, or as a fraction, if the wrong value is written so.
        ("24.80 + 2.50 = 27.80 euros", "24.80 + 2.50 is 27.30, not 27.80"),
        ("1/2 - 1/4 = 2/4", "1/2 - 1/4 is 1/4, not 2/4"),
        ("440 / 3 = 140", "440 / 3 is about 146.67, not 140"),
        ("x^2 + 1 = (x + 1)(x - 1)", "$x^2 + 1$ is not (x + 1)(x - 1)"),
        # Of LaTeX, what needs it is a formula.
        ("$\\frac{144}{3} = 46$ pages", "$\\frac{144}{3}$ is 48, not 46"),
        ("$2^{12} = 4095$", "$2^{12}$ is 4096, not 4095"),
        ("2^12 = 4095", "$2^{12}$ is 4096, not 4095"),
        ("$$\\begin{aligned} a &= 3 \\cdot 4 \\\\ &= 13 \\end{aligned}$$", "$3 \\cdot 4$ is 12, not 13"),
        ("(x + 3)(x + 4) = x^2 + 7x + 10", "(x + 3)(x + 4) is $x^2 + 7x + 12$, not $x^2 + 7x + 10$"),
        (
            "130 ÷ 11 = 11 with a remainder of 8.",
            "130 ÷ 11 is 11 with a remainder of 9, not 11 with a remainder of 8",
        ),
        ("2 hours + 30 minutes = 2.3 hours", "2 hours + 30 minutes is 2.5, not 2.3"),
        ("50 km/h × 3 days = 3000 km", "50 km/h × 3 days is 3600, not 3000"),
    ],
)  # fmt: skip
def test_what_is_right_comes_before_what_is_stated(text, said):
    assert findings("What is it?", text) == [said]


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        # 8 more than 42 is 50, which is 5 · 10.
        (["5x - 8 = 42.", "Add 8: 5x = 60."], "x is 10, so 5x is 50, not 60"),
        (["2x + 6 = 0.", "So x = 3."], "x is -3, not 3"),
        (["x^2 = 16.", "So x = 5."], "x is -4 or 4, not 5"),
        # 3x + 6 = 2x + 24 at x = 18.
        (["3(x + 2) = 2x + 24.", "Expand: 3x + 6 = 2x + 20."], "x is 18, so 3x + 6 is 60 and 2x + 20 is 56"),
        (["x^2 + x - 1 = 0.", "Simplifying: x^2 + x = 2."], "$x^2 + x = 2$ does not follow from $x^2 + x = 1$"),
        (
            ["x + y = 10 and x - y = 2.", "Adding both equations, 2x = 12, so x = 6.", "Subtracting gives y = 5."],
            "y = 5 contradicts the equations before it",
        ),
    ],
)
def test_an_equation_with_unknowns_is_held_against_an_earlier_one(steps, said):
    assert findings("Solve.", *steps) == [said]


@each(
    "steps, expected",
    [
        # The same calculation with its right value, in whatever signs, and words about the wrong value.
        (["$7 \\cdot 17 = 129$.", "7 × 17 = 119."], [(0, (1,))]),
        (["14 * 17 = 228", "140 + 98 = 238, not 228."], [(0, (1,))]),
        (["x = 112 / 8 = 16", "8 * 16 = 128, so $16$ is wrong.", "112 / 8 = 14"], [(0, (1, 2))]),
        # Only later steps, only the value as a whole, and only where an equation holds.
        (["7 * 17 = 119.", "7 * 17 = 129."], [(1, ())]),
        (["14 * 17 = 228", "140 + 98 = 238, not 2280."], [(0, ())]),
        (["14 * 17 = 228", "That is not 228."], [(0, ())]),
        (["14 * 17 = 228", "140 + 98 = 239, not 228."], [(0, ()), (1, ())]),
        # Without a failing equation nothing is contradicted.
        (["2 + 2 = 4", "2 + 2 = 4, not 5."], []),
    ],
)
def test_later_steps_contradict_a_failing_equation(steps, expected):
    found = failing_equations(Trace.of("What is it?", steps))
    assert [(one.substep, one.contradicted) for one in found] == expected


def test_other_checks_have_another_version():
    """If this fails, the checks have changed: increment `VERSION` and put in the new digest."""
    traces = [*read_gallery(), *generate(0, 200)]
    # Without `sides`, which only serve the wording.
    found = json.dumps([[[astuple(check)[:-1] for check in part] for part in checks_of(trace)] for trace in traces])
    assert (VERSION, hashlib.sha256(found.encode()).hexdigest()[:16]) == (4, "4e34f2175708a38f")
