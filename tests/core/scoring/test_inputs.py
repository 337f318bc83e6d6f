import numpy as np
import pytest

from stepsight.core.scoring.forward import Input, chunks

IDS = np.arange(10)


def numbered(*lengths):
    return [
        (number, Input(np.zeros(length, np.int64), length, np.array([length - 1])))
        for number, length in enumerate(lengths)
    ]


def batches(lengths, budget, *, padded):
    return [[item.length for _, item in batch] for batch in chunks(numbered(*lengths), budget, padded=padded)]


@pytest.mark.parametrize(
    ("lengths", "budget", "expected"),
    [
        # 3 + 4 = 7, and 5 more would be 12; 5 + 5 = 10 fits exactly.
        ([3, 4, 5, 5], 10, [[3, 4], [5, 5]]),
        ([3, 12, 4], 10, [[3], [12], [4]]),
        ([12], 10, [[12]]),
        ([], 10, []),
    ],
)
def test_batches_hold_at_most_the_budget(lengths, budget, expected):
    assert batches(lengths, budget, padded=False) == expected


@pytest.mark.parametrize(
    ("lengths", "budget", "expected"),
    [
        # Each counts as long as the longest: 2 x 4 = 8 fits, 3 x 5 = 15 does not; 2 x 5 = 10 fits.
        ([3, 4, 5, 5], 10, [[3, 4], [5, 5]]),
        # 3 + 6 = 9 would fit, but padded to 2 x 6 = 12 does not.
        ([3, 6], 10, [[3], [6]]),
        # The longest of a batch that was closed does not count for the next one.
        ([8, 3, 3, 3], 10, [[8], [3, 3, 3]]),
        # 4 comes after 5 and counts as 5 too: 2 x 5 = 10, 3 x 5 = 15.
        ([5, 4, 1], 10, [[5, 4], [1]]),
        ([12, 1], 10, [[12], [1]]),
    ],
)
def test_padded_batches_count_their_longest_for_each(lengths, budget, expected):
    assert batches(lengths, budget, padded=True) == expected


def test_nothing_is_lost_or_reordered():
    lengths = np.random.default_rng(0).integers(1, 40, 200).tolist()
    for padded in (False, True):
        pairs = [pair for batch in chunks(numbered(*lengths), 64, padded=padded) for pair in batch]
        assert [number for number, _ in pairs] == list(range(200))
        assert [item.length for _, item in pairs] == lengths


def test_a_key_is_that_of_the_tokens_read_alone():
    other = np.concatenate([IDS[:4], [99]])
    assert Input(IDS, 4, np.array([3])).key == Input(other, 4, np.array([1])).key
    assert Input(IDS, 5, np.array([3])).key != Input(other, 5, np.array([3])).key
    assert Input(IDS, 4, np.array([3])).key != Input(IDS, 5, np.array([3])).key
