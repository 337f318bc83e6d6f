import numpy as np

from stepsight.core.metrics.labels.ratings import NO_ERROR, UNLABELLED, UNSURE, Ratings

NEG, NEU, POS = 0, 1, 2
NONE = np.nan


def ratings(*traces, people=("ada", "bo")):
    """The ratings of each trace's steps by each person."""
    codes = np.concatenate([np.array(trace, np.int8) for trace in traces], axis=1)
    lengths = [len(trace[0]) for trace in traces]
    position = np.concatenate([np.arange(length) for length in lengths])
    return Ratings(people, codes, np.repeat(np.arange(len(traces)), lengths), position, len(traces))


def test_unsure_and_unlabelled_are_no_labels():
    found = ratings([[NEG, NEU, POS], [UNSURE, UNLABELLED, NEU]])
    np.testing.assert_array_equal(found.labels, [[0, 1, 2], [NONE, NONE, 1]])
    np.testing.assert_array_equal(found.validity, [[0, 1, 1], [NONE, NONE, 1]])
    np.testing.assert_array_equal(found.counts, [[1, 0, 0, 1], [0, 1, 0, 0], [0, 1, 1, 0]])


def test_the_first_error_is_known_only_if_all_steps_before_it_are():
    found = ratings(
        # The second at step 1, after which nothing matters; none.
        [[POS, NEG, UNSURE], [POS, NEU, POS]],
        # An unsure step before the error; no error, but a step unlabelled.
        [[UNSURE, NEG], [POS, UNLABELLED]],
        # At the first step; nothing at all said.
        [[NEG], [UNLABELLED]],
    )
    np.testing.assert_array_equal(found.first_errors, [[1, NONE, 0], [NO_ERROR, NONE, NONE]])
    np.testing.assert_array_equal(found.answers, [[True, True, True], [True, True, False]])


def test_the_majority_is_of_more_than_any_other():
    said = [[NEG, NEG, UNSURE, POS], [NEG, POS, POS, UNLABELLED], [POS, NEU, POS, UNSURE]]
    three = ratings(said, people=("ada", "bo", "cy"))
    # Two of three; three that differ; two, the third unsure; one alone.
    np.testing.assert_array_equal(three.majority, [NEG, NONE, POS, POS])


def test_some_traces_in_another_order():
    found = ratings([[POS, NEG], [POS, POS]], [[NEU], [NEU]], [[NEG, POS], [UNSURE, POS]]).of_traces([2, 0])
    np.testing.assert_array_equal(found.codes, [[NEG, POS, POS, NEG], [UNSURE, POS, POS, POS]])
    np.testing.assert_array_equal(found.trace, [0, 0, 1, 1])
    np.testing.assert_array_equal(found.position, [0, 1, 0, 1])
    np.testing.assert_array_equal(found.first_errors, [[0, 1], [NONE, NO_ERROR]])


def test_nothing_rated():
    empty = Ratings((), np.empty((0, 0), np.int8), np.empty(0, np.int64), np.empty(0, np.int64), 0)
    assert empty.first_errors.shape == (0, 0)
    assert empty.majority.shape == (0,)
    assert empty.counts.shape == (0, 4)
    assert ratings([[POS], [NEG]]).of_traces([]).codes.shape == (2, 0)
