"""What a step rests on: arithmetic by hand, and scores against each shortened trace scored by itself."""

import numpy as np
import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.left_out import PLACEHOLDER, Dependence, Gap, LeaveOneOut, removals
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.scoring import prefixes
from stepsight.core.scoring.forward import PaddedForward
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import write_evaluator, write_math_shepherd, write_qwen_prm, write_reasoneval


def row(*validities):
    return np.array([[1 - value, 0, value] for value in validities], np.float32)


# The second step was valid (0.8) and is not (0.2); the third rose from 0.4 to 0.75.
H = Hindsight((row(0.9), row(0.9, 0.8), row(0.9, 0.3, 0.4), row(0.9, 0.2, 0.75, 0.6)))
WHOLE = H.offline
# Without the second step (index 1), the third and the fourth; without the first nothing is known.
LEFT = LeaveOneOut.of(WHOLE, {1: row(0.9, 0.3, 0.6), 2: row(0.9, 0.7, 0.45), 3: row(0.9, 0.3, 0.5)})


def test_rows_are_found_by_the_step_that_is_left_out():
    assert LEFT.known == (1, 2, 3)
    np.testing.assert_allclose(LEFT.later(0).validity, [0.9, 0.9, 0.9])
    np.testing.assert_allclose(LEFT.later(1).validity, [0.7, 0.3])
    assert len(LEFT.later(3)) == 0
    assert np.isnan(LEFT.validity[0]).all()
    assert np.isnan(np.diag(LEFT.validity)).all()
    again = LeaveOneOut.of(WHOLE, LEFT.rows())
    np.testing.assert_array_equal(again.probs, LEFT.probs)


def test_a_matrix_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"expected \(4, 4, 3\)"):
        LeaveOneOut(WHOLE, LEFT.probs[:3])
    with pytest.raises(ValueError, match="4 rows for 3 sub-steps"):
        removals(Hindsight(H.rows[:3]), LEFT, 0, 0.5)


def test_the_removal_that_restores_the_earlier_verdict_comes_first():
    first, other = removals(H, LEFT, 1, 0.5)
    assert (first.left_out, first.restores) == (2, True)
    assert first.validity == pytest.approx(0.7)
    assert (other.left_out, other.restores) == (3, False)


def test_the_lowest_removal_of_a_step_that_rose_comes_first():
    # Without the fourth the third would be 0.5, which is still valid.
    (only,) = removals(H, LEFT, 2, 0.5)
    assert (only.left_out, only.restores) == (3, False)
    assert removals(H, LEFT, 2, 0.6)[0].restores
    assert removals(H, LEFT, 3, 0.5) == []
    assert not any(removal.restores for removal in removals(H, LEFT, 0, 0.5))


def test_a_step_rests_on_those_without_which_it_loses_validity():
    dependence = Dependence(LEFT, 0.5)
    # The third falls from 0.75 to 0.3 without the second, and to 0.5 without the fourth.
    assert dependence.rests_on(2) == [1, 3]
    assert dependence.carries(1) == [2]
    assert dependence.turns[1, 2]
    assert not dependence.turns[3, 2]
    # The fourth falls from 0.6 to 0.45 without the third.
    assert dependence.carries(2) == [3]
    assert dependence.rests_on(0) == dependence.rests_on(1) == []
    assert dependence.unused() == []


def test_a_fall_counts_for_later_steps_alone():
    # The fourth carries the third, which comes before it; of the first nothing is known.
    np.testing.assert_allclose(Dependence(LEFT, 0.5).largest_falls(), [np.nan, 0.45, 0.15, 0], atol=1e-6)
    rises = LeaveOneOut.of(WHOLE, {1: row(0.9, 0.8, 0.7)})
    np.testing.assert_allclose(Dependence(rises, 0.5).largest_falls(), [np.nan, -0.05, np.nan, np.nan], atol=1e-6)
    assert Dependence(rises, 0.5).unused() == [1]


def test_a_single_step_rests_on_nothing():
    alone = LeaveOneOut.of(StepScores(row(0.9)), {})
    assert alone.known == ()
    assert np.isnan(Dependence(alone, 0.5).largest_falls()).all()


TRACE = Trace.of(
    "What is 3 + 3?",
    # The last two are equal, so that a shortened trace shares more than the steps before.
    [["So 1 + 1 = 2.", "And 2 + 1 = 3."], "Then 3 + 3 = 6.", "Check: 6 - 3 = 3.", "Done.", "Done."],
)
WRITERS = {
    "bidirectional": write_evaluator,
    "causal": lambda folder: write_evaluator(folder, is_causal=True),
    "sliding": lambda folder: write_reasoneval(folder, sliding_window=9),
    "math-shepherd": lambda folder: write_math_shepherd(folder, card={"format": "math-shepherd"}),
    "padded": write_qwen_prm,
    "rules": None,
}


@pytest.mark.parametrize("gap", Gap)
@pytest.mark.parametrize("kind", WRITERS)
def test_leaving_out_is_scoring_the_trace_without_the_step(tmp_path, kind, gap, monkeypatch):
    if kind == "causal":
        # Passes of a few tokens: the trace is read in several, and some of them hold no step's end.
        monkeypatch.setattr(prefixes, "_NEW", 8)
    write = WRITERS[kind]
    if write is not None:
        write(tmp_path / kind)
    evaluator = load_evaluator("equations" if write is None else tmp_path / kind)
    scorer = Scorer(evaluator, PaddedForward(evaluator.model) if kind == "padded" else None)
    found, texts = scorer.leave_one_out(TRACE, gap), list(TRACE.substeps)
    np.testing.assert_allclose(found.whole.probs, scorer.score_one(TRACE, "offline").offline.probs, atol=1e-5)
    assert found.known == tuple(range(6))
    for i in range(len(texts)):
        instead = [PLACEHOLDER] if gap == Gap.PLACEHOLDER else []
        shorter = Trace.of(TRACE.problem, texts[:i] + instead + texts[i + 1 :])
        alone = scorer.score_one(shorter, "offline").offline.probs
        if instead:
            alone = np.delete(alone, i, axis=0)
        np.testing.assert_allclose(found.rows()[i], alone, atol=1e-5)


def test_a_single_step_is_scored_whole(tmp_path):
    write_evaluator(tmp_path / "tiny", is_causal=True)
    found = Scorer(load_evaluator(tmp_path / "tiny")).leave_one_out(Trace.of("1 + 1?", ["2."]))
    assert (len(found), found.known) == (1, ())
