"""Means over subsets of candidates against going through all of them."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from stepsight.core.metrics.best_of_n import (
    MOST_SUBSETS,
    Ballots,
    RankingMethod,
    Ties,
    best_of,
    choose,
    pass_at,
    sizes_up_to,
    voted,
)
from tests.cases import each


def test_sizes_are_all_up_to_a_number_and_then_double():
    assert sizes_up_to(1) == [1]
    assert sizes_up_to(5) == [1, 2, 3, 4, 5]
    assert sizes_up_to(22, every=3) == [1, 2, 3, 4, 8, 16, 22]
    assert sizes_up_to(0) == []


def test_equal_scores_count_equally_often():
    # {1,2}: half, {1,3} and {2,3}: the third, which is best and wrong.
    correct, logs = np.array([True, False, False]), np.log([0.5, 0.5, 0.9])
    assert best_of(correct, logs, [2])[0] == pytest.approx(1 / 6)
    assert best_of(correct[[1, 0, 2]], logs, [2])[0] == pytest.approx(1 / 6)


def vote(correct, method, logs, groups, size):
    return voted(correct, [(method, logs)], groups, [size])[0, 0]


def drawn(seed, count=7):
    rng = np.random.default_rng(seed)
    return rng.random(count) < 0.4, np.log(rng.random(count)), rng.integers(-1, 3, count)


@each("seed", range(5))
@each("size", [1, 2, 3, 5, 7])
def test_every_mean_is_that_of_going_through_the_subsets(seed, size):
    correct, logs, groups = drawn(seed)
    subsets = [np.array(subset) for subset in combinations(range(7), size)]
    assert len(subsets) == comb(7, size)
    by_hand = np.mean([correct[subset[logs[subset].argmax()]] for subset in subsets])
    assert best_of(correct, logs, [size])[0] == pytest.approx(by_hand)
    assert pass_at(correct, size) == pytest.approx(np.mean([correct[subset].any() for subset in subsets]))
    # Sums of random weights are never equal, so that the choice is the only one there is.
    chosen = [
        correct[subset[choose(RankingMethod.WEIGHTED_VOTE, logs[subset], groups[subset])]] for subset in subsets
    ]
    assert vote(correct, RankingMethod.WEIGHTED_VOTE, logs, groups, size) == pytest.approx(np.mean(chosen))


def test_a_majority_of_one_or_two_is_a_random_candidate():
    # Of two candidates either both say the same or there is a tie.
    correct, groups = np.array([True, True, False, False, False]), np.array([0, 0, 1, 1, 2])
    for size in (1, 2):
        assert vote(correct, RankingMethod.MAJORITY, np.zeros(5), groups, size) == pytest.approx(0.4)
    # Of all five: answers 0 and 1 with two votes each.
    assert vote(correct, RankingMethod.MAJORITY, np.zeros(5), groups, 5) == 0.5


def test_many_subsets_are_drawn_from_always_the_same_way():
    correct, logs, groups = drawn(1, count=24)
    assert comb(24, 8) > MOST_SUBSETS
    first = vote(correct, RankingMethod.WEIGHTED_VOTE, logs, groups, 8)
    assert first == vote(correct, RankingMethod.WEIGHTED_VOTE, logs, groups, 8)
    # Another draw of as many agrees: five standard errors of a share of 1,000 are at most 0.08.
    rng = np.random.default_rng(9)
    chosen = []
    for _ in range(1000):
        subset = np.sort(rng.permutation(24)[:8])
        chosen.append(correct[subset[choose(RankingMethod.WEIGHTED_VOTE, logs[subset], groups[subset])]])
    assert first == pytest.approx(np.mean(chosen), abs=0.08)


def test_pass_at_of_many():
    # 1 - C(200, 64) / C(256, 64), which is 1 but for 1e-8.
    correct = np.arange(256) < 56
    assert 1 - 1e-6 < pass_at(correct, 64) < 1.0
    assert pass_at(correct, 1) == pytest.approx(56 / 256)
    assert pass_at(~np.ones(4, bool), 2) == 0.0
    assert best_of(correct, np.arange(256.0), [256])[0] == 0.0
    # More than there are means all.
    assert best_of(correct, -np.arange(256.0), [256, 300]).tolist() == [1.0, 1.0]


@each("seed", range(6))
@each("method", list(RankingMethod))
def test_the_first_of_equals_is_that_of_going_through_the_subsets(seed, method):
    rng = np.random.default_rng(seed)
    # Few scores and answers, so that most subsets have ties; answers that are the same are right together.
    logs, groups = np.log(rng.integers(1, 4, 8) / 4), rng.integers(-1, 3, 8)
    correct = np.isin(groups, [0, 2])
    for size in (1, 3, 6, 8):
        subsets = [np.array(subset) for subset in combinations(range(8), size)]
        by_hand = np.mean([correct[subset[choose(method, logs[subset], groups[subset])]] for subset in subsets])
        if method.votes:
            found = voted(correct, [(method, logs)], groups, [size], Ties.FIRST)[0, 0]
        else:
            found = best_of(correct, logs, [size], Ties.FIRST)[0]
        assert found == pytest.approx(by_hand)


@each("seed", range(3))
def test_votes_beside_each_other_are_those_one_by_one(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(-1, 4, 9)
    correct = groups == 1
    # The scores of long solutions vanish beside others, and one candidate has none.
    logs = -rng.random(9) * np.array([1, 1, 900, 900, 900, 1, 900, 900, np.inf])
    votes = [(method, logs * scale) for method in list(RankingMethod)[1:] for scale in (1, 2)]
    found = voted(correct, votes, groups, [1, 2, 5, 9])
    for row, (method, theirs) in enumerate(votes):
        for column, size in enumerate((1, 2, 5, 9)):
            subsets = np.array(list(combinations(range(9), size)))
            chances = Ballots.of(method, theirs, groups, subsets).right(correct[subsets])
            assert found[row, column] == pytest.approx(chances.mean())
