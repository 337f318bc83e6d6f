"""The scores of a trace and the hindsight matrix."""

import numpy as np
import pytest

from stepsight.core.evidence import largest_jump
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, StepScores, Thresholds, judge_solution
from stepsight.core.trace import Trace

ROWS = StepScores(np.array([[0.1, 0.2, 0.7], [0.6, 0.1, 0.3], [0.5, 0.25, 0.25]], np.float32))


def test_validity_is_neu_plus_pos_and_redundancy_is_neu():
    np.testing.assert_allclose(ROWS.validity, [0.9, 0.4, 0.5], atol=1e-6)
    np.testing.assert_allclose(ROWS.redundancy, [0.2, 0.1, 0.25], atol=1e-6)


def test_a_solution_takes_its_least_validity_and_largest_redundancy():
    verdict = judge_solution(ROWS)
    assert (round(verdict.validity, 6), round(verdict.redundancy, 6)) == (0.4, 0.25)
    assert (verdict.valid, verdict.redundant) == (False, True)


def test_thresholds_include_their_own_value():
    exact = StepScores(np.array([[0.5, 0.25, 0.25]], np.float32))
    verdict = judge_solution(exact, Thresholds(validity=0.5, redundancy=0.25))
    assert (verdict.valid, verdict.redundant) == (True, True)
    # In single precision 0.7 is a little less than in double, and neither is below the other.
    inexact = judge_solution(StepScores([[0.3, 0.1, 0.6]]), Thresholds(validity=0.7, redundancy=0.1))
    assert (inexact.valid, inexact.redundant) == (True, True)


def test_a_step_takes_the_row_of_its_least_valid_substep():
    by_step = ROWS.by_step([0, 1, 1])
    np.testing.assert_array_equal(by_step.probs, ROWS.probs[[0, 1]])


def test_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="expected \\(n, 3\\)"):
        StepScores(np.zeros((2, 2), np.float32))


def test_a_solution_without_steps_has_no_verdict():
    with pytest.raises(ValueError, match="without steps"):
        judge_solution(StepScores(np.zeros((0, 3), np.float32)))


def row(*validities):
    return np.array([[1 - v, 0.0, v] for v in validities], np.float32)


# Three steps; the second falls from 0.8 to 0.3 when the third is revealed.
H = Hindsight((row(0.9), row(0.9, 0.8), row(0.9, 0.3, 0.7)))


def test_the_diagonal_is_online_and_the_last_row_offline():
    np.testing.assert_allclose(H.online.validity, [0.9, 0.8, 0.7])
    np.testing.assert_allclose(H.offline.validity, [0.9, 0.3, 0.7])
    np.testing.assert_allclose(H.retroactive, [0.0, -0.5, 0.0], atol=1e-6)


def test_a_column_is_how_a_verdict_changed():
    np.testing.assert_allclose(H.reveal(1).validity, [0.8, 0.3])
    with pytest.raises(IndexError):
        H.reveal(3)


def test_packing_keeps_every_entry():
    again = Hindsight.from_packed(H.packed)
    assert H.packed.shape == (6, 3)
    for ours, theirs in zip(H.rows, again.rows, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_constant_triangle_repeats_its_columns():
    scores = StepScores(row(0.9, 0.2))
    constant = Hindsight.constant(scores)
    np.testing.assert_array_equal(constant.online.probs, scores.probs)
    np.testing.assert_array_equal(constant.offline.probs, scores.probs)
    assert not constant.retroactive.any()


def test_rows_that_form_no_triangle_are_refused():
    with pytest.raises(ValueError, match="row 1"):
        Hindsight((row(0.1, 0.2),))
    with pytest.raises(ValueError, match="do not fill a triangle"):
        Hindsight.from_packed(np.zeros((4, 3), np.float32))


def test_a_step_with_sub_steps_is_judged_online_when_it_is_whole():
    trace = Trace.of("q", [["a", "b"], "c"])
    judgment = Judgment(trace, Mode.HINDSIGHT, H)
    assert judgment.hindsight.ends.tolist() == [1, 1, 2]
    np.testing.assert_allclose(judgment.online.validity, [0.9, 0.8, 0.7])
    found = Judgment(trace, Mode.HINDSIGHT, Hindsight((row(0.9), row(0.4, 0.8), row(0.5, 0.3, 0.7))))
    np.testing.assert_allclose(found.online.validity, [0.4, 0.8, 0.7])
    np.testing.assert_allclose(found.hindsight.retroactive, [0.1, -0.5, 0], atol=1e-6)
    # The column still begins with the sub-step's own row.
    np.testing.assert_allclose(found.hindsight.reveal(0).validity, [0.9, 0.4, 0.5])
    # What its own step did to it is no evidence of later ones.
    jump = largest_jump(found.hindsight, 0)
    assert (jump.step, jump.revealed) == (0, 2)
    assert (jump.before, jump.after) == pytest.approx((0.4, 0.5))
    assert largest_jump(Judgment(trace, Mode.HINDSIGHT, H).hindsight, 0) is None
    # A triangle of other steps than the trace has now stays as it is.
    assert Judgment(Trace.of("q", [["a", "b"]]), Mode.HINDSIGHT, H).hindsight.ends is None
