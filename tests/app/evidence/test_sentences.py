"""What later steps did, in words."""

import numpy as np
import pytest

from stepsight.app.evidence.sentences import (
    change_sentence,
    constant_sentence,
    equation_sentence,
    gold_sentence,
    jump_sentence,
    left_out_sentence,
)
from stepsight.core.evidence import Jump, Removal, Revision
from stepsight.core.scores import Hindsight

NAMES = ("1", "2.1", "2.2", "3", "4", "5", "6")


def hindsight(offline):
    """A triangle in which every step has had its offline validity from the start."""
    probs = np.array([[1 - v, 0, v] for v in offline], np.float32)
    return Hindsight(tuple(probs[: j + 1] for j in range(len(probs))))


@pytest.mark.parametrize(
    ("jump", "final", "said"),
    [
        (Jump(1, 3, 0.81, 0.22), None, "Step 2.1 fell from 0.81 to 0.22 when step 3 was revealed."),
        (Jump(0, 2, 0.1, 0.7), None, "Step 1 rose from 0.10 to 0.70 when step 2.2 was revealed."),
        # A small jump is not made much of.
        (
            Jump(0, 2, 0.9, 0.85),
            None,
            "The largest move of step 1 was from 0.90 to 0.85, when step 2.2 was revealed.",
        ),
        (
            Jump(0, 1, 0.9, 0.2),
            0.8,
            "Step 1 fell from 0.90 to 0.20 when step 2.1 was revealed. At the end it stands at 0.80.",
        ),
        # 0.24 is not far enough from 0.20 to be worth a sentence.
        (Jump(0, 1, 0.9, 0.2), 0.24, "Step 1 fell from 0.90 to 0.20 when step 2.1 was revealed."),
    ],
)
def test_a_jump_names_both_steps_and_both_numbers(jump, final, said):
    assert jump_sentence(NAMES, jump, final) == said


@pytest.mark.parametrize(
    ("names", "step", "jump", "said"),
    [
        (["1"], 0, None, "Step 1 is the only one: its validity is 0.90."),
        (["1", "2"], 1, None, "Step 2 is the last: nothing after it can change its validity of 0.30."),
        (["1", "2"], 0, None, "Later steps did not change step 1: its validity stays at 0.90."),
        (["1", "2"], 0, Jump(0, 1, 0.904, 0.9), "Later steps did not change step 1: its validity stays at 0.90."),
        (["1", "2"], 0, Jump(0, 1, 0.2, 0.9), "Step 1 rose from 0.20 to 0.90 when step 2 was revealed."),
    ],
)
def test_a_change_is_told_also_where_there_is_none(names, step, jump, said):
    assert change_sentence(names, hindsight([0.9, 0.3][: len(names)]), step, jump) == said


def revision(before, after, *, crosses, agrees):
    return Revision(1, 1, before, after, None, crosses, agrees)


@pytest.mark.parametrize(
    ("found", "gold", "said"),
    [
        (revision(0.8, 0.2, crosses=True, agrees=None), None, "Step 2 has no gold label."),
        (
            revision(0.8, 0.2, crosses=True, agrees=True),
            False,
            "Gold calls step 2 wrong and agrees with the revision.",
        ),
        (
            revision(0.8, 0.2, crosses=True, agrees=False),
            True,
            "Gold calls step 2 valid and disagrees with the revision.",
        ),
        (
            revision(0.9, 0.7, crosses=False, agrees=True),
            False,
            "Gold calls step 2 wrong: the change is towards gold, but the verdict stays.",
        ),
        (
            revision(0.9, 0.7, crosses=False, agrees=False),
            True,
            "Gold calls step 2 valid: the change is away from gold, but the verdict stays.",
        ),
        (revision(0.9, 0.85, crosses=False, agrees=False), True, "Gold calls step 2 valid."),
    ],
)
def test_gold_agrees_or_not(found, gold, said):
    assert gold_sentence(found, gold) == said


ALONE = "Without step 3 its validity would be 0.70: step 3 is the evidence."


@pytest.mark.parametrize(
    ("removed", "turned", "offline", "said"),
    [
        ([(3, 0.7, True), (4, 0.2, False)], True, 0.2, ALONE),
        (
            [(3, 0.7, True), (4, 0.6, True), (1, 0.55, True)],
            True,
            0.2,
            f"{ALONE} Leaving out step 2.1 or 4 restores it as well.",
        ),
        ([(3, 0.7, True), (4, 0.6, True)], True, 0.2, f"{ALONE} Leaving out step 4 restores it as well."),
        (
            [(3, 0.7, True), *[(i, 0.6, True) for i in (1, 2, 4)]],
            True,
            0.2,
            f"{ALONE} Leaving out step 2.1, 2.2 or 4 restores it as well.",
        ),
        (
            [(3, 0.7, True), *[(i, 0.6, True) for i in (1, 2, 4, 5)]],
            True,
            0.2,
            f"{ALONE} Leaving out any of 4 other steps restores it as well.",
        ),
        (
            [(3, 0.4, False), (4, 0.2, False)],
            True,
            0.2,
            "No single later step carries the verdict. Without step 3 its validity would be 0.40, "
            "which does not restore it.",
        ),
        # Where the verdict stayed, the largest effect is told.
        (
            [(1, 0.95, False), (3, 0.6, False)],
            False,
            0.9,
            "Without step 3 its validity would be 0.60, not 0.90.",
        ),
        (
            [(1, 0.95, False), (3, 0.87, False)],
            False,
            0.9,
            "Leaving out steps 2.1 and 3 changes its validity by at most 0.05.",
        ),
        (
            [(i, 0.87, False) for i in range(1, 7)],
            False,
            0.9,
            "Leaving out any one later step changes its validity by at most 0.03.",
        ),
        # After the last step nothing can be left out.
        ([], False, 0.2, ""),
    ],
)
def test_the_steps_on_which_a_verdict_rests_are_told(removed, turned, offline, said):
    removals = [Removal(0, later, validity, restores) for later, validity, restores in removed]
    assert left_out_sentence(NAMES, hindsight([offline] * 7), 0, removals, turned) == said


def test_a_causal_evaluator_has_no_story():
    assert constant_sentence("mini-causal").startswith(
        "mini-causal reads a solution from left to right: no later step"
    )


def test_what_fails_in_a_step_is_said_with_the_steps_that_contradict_it():
    said = equation_sentence(NAMES, ["74 - 5 is 69, not 70", "the problem states 45, not 54"], {4, 5}, set(), 3)
    assert said == "In step 3, 74 - 5 is 69, not 70; the problem states 45, not 54. Steps 4 and 5 contradict it."
    assert equation_sentence(NAMES, [], set(), {1}, 3) == "It contradicts an equation of step 2.1 that fails."
    assert equation_sentence(NAMES, [], set(), set(), 3) == ""
