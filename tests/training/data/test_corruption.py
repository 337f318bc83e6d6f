import random
from collections import Counter

import pytest

from stepsight.core.trace import Label, Trace
from stepsight.training.data.corruption import WEIGHTS, corrupt, valid_part

TRACE = Trace.of(
    "Ann has 12 pens and buys 3 boxes of 7.",
    ["She buys 3 * 7 = 21 pens.", "Now she has 12 + 21 = 33.", "The answer is 33."],
    ["pos", "pos", "pos"],
)


def changed(kind, seed):
    return corrupt(TRACE, random.Random(seed), {kind: 1.0})


@pytest.mark.parametrize("kind", ["number", "operation"])
def test_one_step_is_changed_and_wrong_and_the_others_stay(kind):
    for seed in range(60):
        found = changed(kind, seed)
        wrong = [i for i, label in enumerate(found.labels) if label == Label.NEG]
        differing = [i for i in range(3) if found.steps[i].text != TRACE.steps[i].text]
        assert wrong == differing
        assert len(wrong) == 1
        assert found.meta["corruption"] == kind
        old, new = TRACE.steps[wrong[0]].text, found.steps[wrong[0]].text
        if kind == "operation":
            # One sign of the same place was exchanged.
            assert len(old) == len(new)
            assert sum(a != b for a, b in zip(old, new, strict=True)) == 1


def test_after_a_step_left_out_the_next_is_wrong():
    found = changed("remove", 1)
    assert len(found.steps) == 2
    at = found.labels.index(Label.NEG)
    left = [step.text for step in found.steps]
    missing = next(i for i in range(3) if TRACE.steps[i].text not in left)
    assert found.steps[at].text == TRACE.steps[missing + 1].text


def test_the_earlier_of_two_exchanged_steps_is_wrong_and_those_between_are_unlabelled():
    # The first and the last of three: the last comes first and is wrong; then nothing is known.
    found = next(f for seed in range(60) if (f := changed("swap", seed)).steps[0].text == TRACE.steps[2].text)
    assert [step.text for step in found.steps] == [TRACE.steps[i].text for i in (2, 1, 0)]
    assert found.labels == (Label.NEG, None, None)


def test_a_repeated_step_is_redundant():
    found = changed("repeat", 3)
    at = found.labels.index(Label.NEU)
    assert found.steps[at].text == found.steps[at - 1].text
    assert Counter(found.labels) == {Label.POS: 3, Label.NEU: 1}


def test_a_trace_with_nothing_to_change_is_left_out():
    words = Trace.of("q", ["So it is."], ["pos"])
    for kind in ("number", "operation", "remove", "swap"):
        assert corrupt(words, random.Random(0), {kind: 1.0}) is None
    hyphen = Trace.of("q", ["a well-known fact, and/or more"], ["pos"])
    assert corrupt(hyphen, random.Random(0), {"operation": 1.0}) is None


def test_every_kind_is_drawn_and_repeats_by_seed():
    kinds = Counter(corrupt(TRACE, random.Random(seed)).meta["corruption"] for seed in range(300))
    assert set(kinds) == set(WEIGHTS)
    assert corrupt(TRACE, random.Random(5)) == corrupt(TRACE, random.Random(5))


def test_the_valid_part_ends_before_the_first_wrong_or_unlabelled_step():
    trace = Trace.of("q", ["a", "b", "c", "d"], ["pos", "neu", "neg", "pos"])
    assert valid_part(trace).labels == (Label.POS, Label.NEU)
    assert valid_part(Trace.of("q", ["a", "b"], ["pos", None])) is None
    assert valid_part(TRACE) == TRACE


def test_a_redundant_step_is_never_the_one_left_out():
    told = Trace.of("q", ["x = 2", "As said, x = 2", "So x + 1 = 3"], ["pos", "neu", "pos"])
    found = [corrupt(told, random.Random(seed), {"remove": 1.0}) for seed in range(20)]
    # Without its first step the second one has nothing to go back to.
    assert {tuple(step.text for step in trace.steps) for trace in found} == {("As said, x = 2", "So x + 1 = 3")}
    assert {trace.labels for trace in found} == {(Label.NEG, Label.POS)}
    redundant = Trace.of("q", ["x", "x", "x"], ["neu", "neu", "pos"])
    assert corrupt(redundant, random.Random(0), {"remove": 1.0}) is None


def test_steps_that_say_the_same_are_not_exchanged():
    same = Trace.of("q", ["x = 2", "x = 2", "x = 2"], ["pos", "neu", "neu"])
    assert all(corrupt(same, random.Random(seed), {"swap": 1.0}) is None for seed in range(20))
    pair = Trace.of("q", ["x = 2", "x = 2", "So 3"], ["pos", "neu", "pos"])
    found = [corrupt(pair, random.Random(seed), {"swap": 1.0}) for seed in range(20)]
    assert {trace.steps[trace.labels.index(Label.NEG)].text for trace in found if trace} == {"So 3"}
