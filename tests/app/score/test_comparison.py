import numpy as np
import pytest

from stepsight.app.score.comparison import Move, StepChange, StepMatch, StepMatches, largest_move
from stepsight.core.judgment import Mode
from stepsight.core.scores import Hindsight
from tests.cases import each


def step_changes(before, now):
    """Each later step as its step_change's first letter and its earlier place, and the places that are gone."""
    matches = StepMatches.of(before.split(), now.split())
    told = [f"{match.step_change[0]}{'' if match.was is None else match.was}" for match in matches.now]
    return " ".join(told), list(matches.gone)


@each(
    "before, now, expected",
    [
        ("a b c", "a b c", ("s0 s1 s2", [])),
        # A step in the middle has another text.
        ("a b c", "a x c", ("s0 e1 s2", [])),
        ("a b c", "a b c d", ("s0 s1 s2 n", [])),
        ("a b c", "x a b c", ("n s0 s1 s2", [])),
        ("a b c", "a c", ("s0 s2", [1])),
        # The longest block that keeps its order is `b c`: a has moved.
        ("a b c", "b c a", ("s1 s2 m0", [])),
        # Merged or split: one text for two, two for one.
        ("a b c", "ab c", ("n s2", [0, 1])),
        ("ab c", "a b c", ("n n s1", [0])),
        # The same text twice: each stands for one.
        ("a a b", "a b a", ("s1 s2 m0", [])),
        ("a b", "x y", ("e0 e1", [])),
        # c has moved to where b was; what is left there was b's place.
        ("a b c", "a c x", ("s0 s2 n", [1])),
    ],
)
def test_steps_are_matched_by_text_and_place(before, now, expected):
    assert step_changes(before, now) == expected


def test_steps_are_counted_by_their_change():
    matches = StepMatches.of(["a", "b", "c"], ["c", "a", "x", "y"])
    assert matches.kept == 2
    assert {step_change: matches.count(step_change) for step_change in StepChange} == {
        StepChange.SAME: 1, StepChange.MOVED: 1, StepChange.EDITED: 0, StepChange.NEW: 2,
    }  # fmt: skip


def triangle(*rows):
    """A hindsight triangle of these validities, nothing redundant."""
    return Hindsight(tuple(np.array([[1 - v, 0, v] for v in row], np.float32) for row in rows))


def test_the_largest_move_is_of_an_unchanged_step():
    before = triangle([0.9], [0.9, 0.8])
    now = triangle([0.9], [0.7, 0.1], [0.6, 0.2, 0.5])
    matches = StepMatches(
        (StepMatch(StepChange.SAME, 0), StepMatch(StepChange.EDITED, 1), StepMatch(StepChange.NEW)), ()
    )
    # Offline the first step went from 0.9 to 0.6; the second, which moved further, has another text.
    move = largest_move(matches, before, now)
    assert (move.step, move.mode) == (0, Mode.OFFLINE)
    assert (move.before, move.now, move.change) == pytest.approx((0.9, 0.6, -0.3))


def test_a_move_online_counts_where_it_is_larger():
    before = triangle([0.9], [0.9, 0.2])
    now = triangle([0.9], [0.9, 0.8], [0.9, 0.3, 0.5])
    matches = StepMatches(
        (StepMatch(StepChange.SAME, 0), StepMatch(StepChange.MOVED, 1), StepMatch(StepChange.NEW)), ()
    )
    # The second: online 0.2 to 0.8, offline 0.2 to 0.3.
    move = largest_move(matches, before, now)
    assert isinstance(move, Move)
    assert (move.step, move.mode, round(move.change, 6)) == (1, Mode.ONLINE, 0.6)


def test_a_move_that_two_digits_hide_is_none():
    matches = StepMatches((StepMatch(StepChange.SAME, 0),), ())
    assert largest_move(matches, triangle([0.9]), triangle([0.9049])) is None
    assert largest_move(matches, triangle([0.9]), triangle([0.9051])) is not None
    assert largest_move(StepMatches((StepMatch(StepChange.NEW),), (0,)), triangle([0.9]), triangle([0.1])) is None


def test_an_edit_keeps_half_of_the_steps():
    four = ("a", "b", "c", "d")
    assert StepMatches.of(four, ("a", "b", "x", "y")).is_edit
    assert not StepMatches.of(four, ("a", "x", "y", "z")).is_edit
    # Of one that was cut to two, both are from before.
    assert StepMatches.of(four, ("c", "d")).is_edit
    assert not StepMatches.of(four, ("x",)).is_edit
