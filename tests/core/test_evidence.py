"""Later steps and verdicts: the changes, their agreement with the gold, and the effect of leaving a step out."""

import numpy as np
import pytest

from stepsight.core.evidence import (
    Flip,
    Jump,
    largest_jump,
    largest_revision,
    revisions,
)
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Step, Trace


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
