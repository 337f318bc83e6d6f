"""Means over subsets of candidates against going through all of them."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from stepsight.core.metrics.best_of_n import (
    MOST_SUBSETS,
    RankingMethod,
    best_of,
    choose,
    pass_at,
    sizes_up_to,
    voted,
)
from tests.cases import each


def test_sizes_double_up_to_all():
    assert sizes_up_to(1) == [1]
    assert sizes_up_to(4) == [1, 2, 4]
    assert sizes_up_to(6) == [1, 2, 4, 6]
    assert sizes_up_to(0) == []


def test_best_of_two_of_three_by_hand():
    # Scores 0.1, 0.9, 0.5, only the third right. Subsets {1,2}: 2nd, {1,3}: 3rd, {2,3}: 2nd: one of three.
    correct, logs = np.array([False, False, True]), np.log([0.1, 0.9, 0.5])
    assert best_of(correct, logs, 2) == pytest.approx(1 / 3)
    assert best_of(correct, logs, 1) == pytest.approx(1 / 3)
    assert best_of(correct, logs, 3) == 0.0
    # More than there are means all.
    assert best_of(correct, logs, 8) == 0.0


def test_equal_scores_count_equally_often():
    # {1,2}: half, {1,3} and {2,3}: the third, which is best and wrong.
    correct, logs = np.array([True, False, False]), np.log([0.5, 0.5, 0.9])
    assert best_of(correct, logs, 2) == pytest.approx(1 / 6)
    assert best_of(correct[[1, 0, 2]], logs, 2) == pytest.approx(1 / 6)


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
    assert best_of(correct, logs, size) == pytest.approx(by_hand)
    assert pass_at(correct, size) == pytest.approx(np.mean([correct[subset].any() for subset in subsets]))
    # Sums of random weights are never equal, so that the choice is the only one there is.
    chosen = [
        correct[subset[choose(RankingMethod.WEIGHTED_VOTE, logs[subset], groups[subset])]] for subset in subsets
    ]
    assert voted(correct, RankingMethod.WEIGHTED_VOTE, logs, groups, size) == pytest.approx(np.mean(chosen))


def test_a_majority_of_one_or_two_is_a_random_candidate():
    # Of two candidates either both say the same or there is a tie.
    correct, groups = np.array([True, True, False, False, False]), np.array([0, 0, 1, 1, 2])
    for size in (1, 2):
        assert voted(correct, RankingMethod.MAJORITY, np.zeros(5), groups, size) == pytest.approx(0.4)
    # Of all five: answers 0 and 1 with two votes each.
    assert voted(correct, RankingMethod.MAJORITY, np.zeros(5), groups, 5) == 0.5


def test_the_order_of_candidates_changes_nothing():
    correct, logs, groups = drawn(3)
    order = np.random.default_rng(0).permutation(7)
    for size in (2, 4):
        for method in (RankingMethod.MAJORITY, RankingMethod.WEIGHTED_VOTE):
            assert voted(correct, method, logs, groups, size) == pytest.approx(
                voted(correct[order], method, logs[order], groups[order], size)
            )
        assert best_of(correct, logs, size) == pytest.approx(best_of(correct[order], logs[order], size))


def test_many_subsets_are_drawn_from_always_the_same_way():
    correct, logs, groups = drawn(1, count=24)
    assert comb(24, 8) > MOST_SUBSETS
    first = voted(correct, RankingMethod.WEIGHTED_VOTE, logs, groups, 8)
    assert first == voted(correct, RankingMethod.WEIGHTED_VOTE, logs, groups, 8)
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
    assert best_of(correct, np.arange(256.0), 256) == 0.0
    assert best_of(correct, -np.arange(256.0), 256) == 1.0
