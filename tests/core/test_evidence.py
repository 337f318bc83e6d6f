"""Later steps and verdicts: the changes, their agreement with the gold, and what a step rests on, by hand and
against each shortened trace scored by itself.
"""

import numpy as np
import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.evidence import (
    Dependence,
    Flip,
    Jump,
    LeaveOneOut,
    largest_jump,
    largest_revision,
    removals,
    revisions,
)
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.scoring import packed
from stepsight.core.scoring.forward import PaddedForward
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Step, Trace
from tests.checkpoints import write_evaluator, write_math_shepherd, write_qwen_prm, write_reasoneval


def row(*validities):
    return np.array([[1 - v, 0.0, v] for v in validities], np.float32)


# Four steps. The first hardly moves. The second falls by 0.5 when the third comes, and by 0.1 with the fourth. The
# third rises when the fourth comes.
H = Hindsight((row(0.9), row(0.9, 0.8), row(0.95, 0.3, 0.4), row(0.9, 0.2, 0.75, 0.6)))
FOUR = Trace.of("q", ["a", "b", "c", "d"], ["pos", "neg", None, "pos"])


def near(jump, step, revealed, before, after):
    assert (jump.step, jump.revealed) == (step, revealed)
    assert (jump.before, jump.after) == pytest.approx((before, after))


def test_the_largest_jump_is_named_with_the_step_that_was_revealed():
    near(largest_jump(H, 1), 1, 2, 0.8, 0.3)
    near(largest_jump(H, 2), 2, 3, 0.4, 0.75)
    assert largest_jump(H, 1).change == pytest.approx(-0.5)


def test_a_step_that_nothing_follows_or_changes_has_no_jump():
    assert largest_jump(H, 3) is None
    assert largest_jump(Hindsight((row(0.5), row(0.5, 0.5))), 0) is None
    with pytest.raises(IndexError):
        largest_jump(H, 4)


def test_the_first_of_equal_jumps_is_named():
    equal = Hindsight((row(1.0), row(0.75, 1.0), row(0.5, 1.0, 1.0)))
    assert largest_jump(equal, 0) == Jump(0, 1, 1.0, 0.75)


def test_a_revision_gives_the_change_by_later_steps():
    first, second, third, last = revisions(H, FOUR, 0.5)
    assert (second.before, second.after) == pytest.approx((0.8, 0.2))
    assert second.change == pytest.approx(-0.6)
    near(second.jump, 1, 2, 0.8, 0.3)
    # Fell below 0.5 and gold calls it wrong.
    assert (second.crosses, second.agrees, second.flip) == (True, True, Flip.RIGHTED)
    # 0.4 to 0.75, and gold says nothing.
    assert (third.crosses, third.agrees, third.flip) == (True, None, Flip.UNJUDGED)
    # 0.9 to 0.9: two jumps that cancel out are no change.
    assert (first.crosses, first.agrees, first.flip, first.jump) == (False, None, None, None)
    assert (last.jump, last.flip) == (None, None)


def test_a_revision_against_gold_misled():
    trace = Trace.of("q", ["a", "b", "c", "d"], ["pos", "pos", "neg", "pos"])
    _, second, third, _ = revisions(H, trace, 0.5)
    # A correct step fell, a wrong one rose.
    assert (second.agrees, second.flip) == (False, Flip.MISLED)
    assert (third.agrees, third.flip) == (False, Flip.MISLED)


def test_thresholds_decide_which_verdicts_cross():
    assert [revision.crosses for revision in revisions(H, FOUR, 0.5)] == [False, True, True, False]
    # At 0.76 the third is not valid before or after; at 0.15 all are always valid.
    assert [revision.crosses for revision in revisions(H, FOUR, 0.76)] == [False, True, False, False]
    assert not any(revision.crosses for revision in revisions(H, FOUR, 0.15))


def test_a_step_with_sub_steps_is_decided_by_the_least_valid():
    # One step of three sub-steps. Online 0.9, 0.8, 0.7: the least is the third. Offline 0.9, 0.2, 0.7: the second.
    triangle = Hindsight((row(0.9), row(0.9, 0.8), row(0.9, 0.2, 0.7)))
    trace = Trace("t", "q", (Step(("a", "b", "c"), valid=False),))
    (revision,) = revisions(triangle, trace, 0.5)
    assert (revision.step, revision.substep) == (0, 1)
    assert (revision.before, revision.after) == pytest.approx((0.7, 0.2))
    near(revision.jump, 1, 2, 0.8, 0.2)
    assert revision.flip == Flip.RIGHTED


def test_a_step_that_rose_is_decided_by_its_least_valid_substep_before():
    # Online 0.2, 0.9; offline 0.8, 0.7: the first sub-step carried the verdict, and rose.
    triangle = Hindsight((row(0.2), row(0.8, 0.9), row(0.8, 0.7, 0.6)))
    trace = Trace("t", "q", (Step(("a", "b"), valid=True), Step(("c",), valid=True)))
    first, _ = revisions(triangle, trace, 0.5)
    assert (first.substep, first.crosses, first.flip) == (0, True, Flip.RIGHTED)
    near(first.jump, 0, 1, 0.2, 0.8)


def test_the_jump_of_a_revision_goes_its_way():
    # 0.6, 0.1, 0.9, 0.4: down by 0.2 in all; the largest jump is up, the largest down is the first.
    triangle = Hindsight((row(0.6), row(0.1, 0.9), row(0.9, 0.9, 0.9), row(0.4, 0.9, 0.9, 0.9)))
    revision = revisions(triangle, FOUR, 0.5)[0]
    near(revision.jump, 0, 1, 0.6, 0.1)
    near(largest_jump(triangle, 0), 0, 2, 0.1, 0.9)


def test_the_largest_revision_may_be_asked_for_by_turn():
    found = revisions(H, FOUR, 0.5)
    assert largest_revision(found).step == 1
    assert largest_revision(found, Flip.UNJUDGED).step == 2
    assert largest_revision(found, Flip.MISLED) is None
    assert largest_revision([]) is None


# The second step was valid (0.8) and is not (0.2); the third rose from 0.4 to 0.75.
FOUR_STEPS = Hindsight((row(0.9), row(0.9, 0.8), row(0.9, 0.3, 0.4), row(0.9, 0.2, 0.75, 0.6)))
WHOLE = FOUR_STEPS.offline
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
        removals(Hindsight(FOUR_STEPS.rows[:3]), LEFT, 0, 0.5)


def test_the_removal_that_restores_the_earlier_verdict_comes_first():
    first, other = removals(FOUR_STEPS, LEFT, 1, 0.5)
    assert (first.left_out, first.restores) == (2, True)
    assert first.validity == pytest.approx(0.7)
    assert (other.left_out, other.restores) == (3, False)


def test_the_lowest_removal_of_a_step_that_rose_comes_first():
    # Without the fourth the third would be 0.5, which is still valid.
    (only,) = removals(FOUR_STEPS, LEFT, 2, 0.5)
    assert (only.left_out, only.restores) == (3, False)
    assert removals(FOUR_STEPS, LEFT, 2, 0.6)[0].restores
    assert removals(FOUR_STEPS, LEFT, 3, 0.5) == []
    assert not any(removal.restores for removal in removals(FOUR_STEPS, LEFT, 0, 0.5))


def test_a_step_rests_on_those_without_which_it_loses_validity():
    dependence = Dependence(LEFT, 0.5)
    # The third falls from 0.75 to 0.3 without the second, and to 0.5 without the fourth.
    assert dependence.rests_on(2) == [1, 3]
    assert dependence.carries(1) == [2]
    assert dependence.turns[1, 2]
    assert not dependence.turns[3, 2]
    # A sub-step at the threshold is valid: without the fourth at 0.5, and in the complete trace at 0.75.
    assert Dependence(LEFT, 0.75).turns[1, 2]
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


@pytest.mark.parametrize("kind", WRITERS)
def test_leaving_out_is_scoring_the_trace_without_the_step(tmp_path, kind, monkeypatch):
    if kind == "causal":
        # Passes of a few tokens: the trace is read in several, and some of them hold no step's end.
        monkeypatch.setattr(packed, "_NEW", 8)
    write = WRITERS[kind]
    if write is not None:
        write(tmp_path / kind)
    evaluator = load_evaluator("equations" if write is None else tmp_path / kind)
    scorer = Scorer(evaluator, PaddedForward(evaluator.model) if kind == "padded" else None)
    found, texts = scorer.leave_one_out(TRACE), list(TRACE.substeps)
    np.testing.assert_allclose(found.whole.probs, scorer.score_one(TRACE, "offline").offline.probs, atol=1e-5)
    assert found.known == tuple(range(6))
    for i in range(len(texts)):
        shorter = Trace.of(TRACE.problem, texts[:i] + texts[i + 1 :])
        alone = scorer.score_one(shorter, "offline").offline.probs
        np.testing.assert_allclose(found.rows()[i], alone, atol=1e-5)


def test_a_single_step_is_scored_whole(tmp_path):
    write_evaluator(tmp_path / "tiny", is_causal=True)
    found = Scorer(load_evaluator(tmp_path / "tiny")).leave_one_out(Trace.of("1 + 1?", ["2."]))
    assert (len(found), found.known) == (1, ())
