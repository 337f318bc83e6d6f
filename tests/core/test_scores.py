import numpy as np
import pytest

from stepsight.core.scores import StepScores, Thresholds, judge_solution

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
