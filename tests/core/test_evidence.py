"""Later steps and verdicts: the changes, their agreement with the gold, and the effect of leaving a step out."""

import numpy as np
import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.evidence import Flip, Jump, LeaveOneOut, largest_jump, largest_revision, removals, revisions
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Step, Trace
from tests.checkpoints import write_evaluator
from tests.messages import refused


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


# Without the second step (index 1), the third (2), the fourth (3).
LEFT = LeaveOneOut((row(0.9), row(0.9, 0.7), row(0.9, 0.3, 0.5)))


def test_a_column_of_leave_one_out_is_one_step_without_each_later_one():
    np.testing.assert_allclose(LEFT.without(0).validity, [0.9, 0.9, 0.9])
    np.testing.assert_allclose(LEFT.without(1).validity, [0.7, 0.3])
    np.testing.assert_allclose(LEFT.without(2).validity, [0.5])
    assert len(LEFT.without(3)) == 0
    assert LEFT.packed.shape == (6, 3)


def test_a_removal_that_restores_the_earlier_verdict_comes_first():
    # The second step was valid (0.8) and is not (0.2); without the third it would be (0.7), without the fourth not.
    first, other = removals(H, LEFT, 1, 0.5)
    assert (first.left_out, first.restores) == (2, True)
    assert first.validity == pytest.approx(0.7)
    assert (other.left_out, other.restores) == (3, False)


def test_the_lowest_removal_of_a_step_that_rose_comes_first():
    # The third rose from 0.4 to 0.75; without the fourth it would be 0.5, which is still valid.
    (only,) = removals(H, LEFT, 2, 0.5)
    assert (only.left_out, only.restores) == (3, False)
    assert removals(H, LEFT, 2, 0.6)[0].restores
    assert removals(H, LEFT, 3, 0.5) == []


def test_a_removal_restores_nothing_without_a_flip():
    assert not any(removal.restores for removal in removals(H, LEFT, 0, 0.5))


def test_triangles_of_other_length_are_refused():
    with pytest.raises(ValueError, match="2 rows for 4 sub-steps"):
        removals(H, LeaveOneOut(LEFT.rows[:2]), 0, 0.5)


@pytest.fixture(scope="module", params=[False, True], ids=["bidirectional", "causal"])
def scorer(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluator") / "tiny"
    return Scorer(load_evaluator(write_evaluator(folder, is_causal=request.param, max_position_embeddings=256)))


TEXTS = [["So 1 + 1 = 2.", "And 2 + 1 = 3."], "Then 3 + 3 = 6.", "Check: 6 - 3 = 3.", "Done."]


def test_leaving_out_is_scoring_the_trace_without_the_step(scorer):
    trace = Trace.of("What is 3 + 3?", TEXTS)
    found = scorer.leave_one_out(trace)
    texts = list(trace.substeps)
    assert len(found) == len(texts) - 1 == 4
    for k in range(1, len(texts)):
        shorter = Trace.of(trace.problem, texts[:k] + texts[k + 1 :])
        alone = scorer.score_one(shorter, "offline").offline
        np.testing.assert_allclose(found.rows[k - 1], alone.probs[:k], atol=1e-5)


def test_leaving_out_changes_nothing_for_a_causal_evaluator_alone(scorer):
    trace = Trace.of("What is 3 + 3?", TEXTS)
    offline = scorer.score_one(trace).hindsight.offline
    found = scorer.leave_one_out(trace)
    same = all(
        np.allclose(StepScores(found.rows[k]).validity, offline.validity[: k + 1], atol=1e-5) for k in range(4)
    )
    assert same == (scorer.evaluator.attention == "causal")


def test_a_single_step_leaves_nothing_to_leave_out(scorer):
    found = scorer.leave_one_out(Trace.of("q", ["only"]))
    assert len(found) == 0
    assert found.packed.shape == (0, 3)


def test_a_trace_too_long_is_named(scorer):
    with refused():
        scorer.leave_one_out(Trace.of("q", ["7" * 400, "8"], id="long"))
