"""Scores of solutions and choices among them, worked out by hand."""

import math
from itertools import combinations
from math import comb

import numpy as np
import pytest

from stepsight.core.metrics.best_of_n import (
    MOST_SUBSETS,
    NO_ANSWER,
    Aggregation,
    Ballots,
    RankingMethod,
    Ties,
    best_of,
    choose,
    log_score,
    pass_at,
    sizes_up_to,
    voted,
)
from stepsight.core.scores import StepScores
from tests.cases import each

# Validities 0.9, 0.5 and 0.8: neutral counts as valid.
SCORES = StepScores([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0], [0.2, 0.0, 0.8]])


@pytest.mark.parametrize(
    ("by", "score"),
    [
        (Aggregation.MIN, 0.5),
        (Aggregation.PRODUCT, 0.9 * 0.5 * 0.8),
        (Aggregation.LAST, 0.8),
        (Aggregation.GEOMETRIC_MEAN, 0.36 ** (1 / 3)),
        (Aggregation.MEAN, 2.2 / 3),
    ],
)
def test_a_solutions_score_by_each_rule(by, score):
    assert math.exp(log_score(SCORES, by)) == pytest.approx(score, abs=1e-6)


def test_solutions_with_the_same_validities_in_another_order_tie():
    rows = np.zeros((7, 3))
    rows[:, 2] = np.random.default_rng(0).random(7)
    first, second = StepScores(rows), StepScores(rows[[6, 0, 3, 1, 5, 4, 2]])
    for by in (Aggregation.MIN, Aggregation.PRODUCT, Aggregation.GEOMETRIC_MEAN, Aggregation.MEAN):
        assert log_score(first, by) == log_score(second, by)


def test_the_product_over_a_long_solution_does_not_vanish():
    # 0.1 to the 2,000th is far below the least number there is.
    long, longer = (
        log_score(StepScores(np.tile([0.9, 0.0, 0.1], (steps, 1))), Aggregation.PRODUCT) for steps in (2000, 2001)
    )
    assert long == pytest.approx(2000 * math.log(0.1), rel=1e-5)
    assert long > longer


def test_a_step_that_cannot_be_valid_and_one_that_rounds_above_one():
    nothing = StepScores([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    none = -math.inf
    assert [log_score(nothing, by) for by in Aggregation] == [none, none, 0.0, none, math.log(0.5)]
    assert log_score(StepScores([[0.0, 0.6, 0.5]]), Aggregation.PRODUCT) == 0.0


def test_a_solution_without_steps_has_no_score_and_no_candidates_no_choice():
    with pytest.raises(ValueError, match="without steps"):
        log_score(StepScores(np.zeros((0, 3))), Aggregation.MIN)
    with pytest.raises(ValueError, match="no candidate"):
        choose(RankingMethod.MAJORITY, [], [])


# Scores and answers of five candidates: a twice, b twice, c once.
LOGS = np.log([0.2, 0.5, 0.3, 0.4, 0.6])
GROUPS = [0, 1, 0, 1, 2]


def test_each_method_chooses_as_it_says():
    assert choose(RankingMethod.BEST_OF_N, LOGS, GROUPS) == 4
    # a 0.2 + 0.3 = 0.5, b 0.5 + 0.4 = 0.9, c 0.6; the best of b is the second candidate.
    assert choose(RankingMethod.WEIGHTED_VOTE, LOGS, GROUPS) == 1
    # Two for a, two for b: the one that comes first.
    assert choose(RankingMethod.MAJORITY, LOGS, GROUPS) == 0
    assert choose(RankingMethod.MAJORITY, LOGS, [2, 1, 0, 1, 1]) == 1


def test_the_first_of_equals_is_chosen():
    assert choose(RankingMethod.BEST_OF_N, [-1.0, -0.5, -0.5], [0, 1, 2]) == 1
    assert choose(RankingMethod.WEIGHTED_VOTE, np.log([0.4, 0.2, 0.2]), [1, 0, 0]) == 0
    assert choose(RankingMethod.WEIGHTED_VOTE, np.log([0.3, 0.3]), [0, 0]) == 0


def test_a_candidate_without_an_answer_has_no_vote():
    none = NO_ANSWER
    # Three without an answer and the best of all against one answer.
    assert choose(RankingMethod.WEIGHTED_VOTE, np.log([0.9, 0.9, 0.1, 0.9]), [none, none, 0, none]) == 2
    assert choose(RankingMethod.MAJORITY, np.zeros(4), [none, none, 0, none]) == 2
    # Where nobody answers each is alone.
    assert choose(RankingMethod.WEIGHTED_VOTE, np.log([0.2, 0.7, 0.6]), [none] * 3) == 1
    assert choose(RankingMethod.MAJORITY, np.log([0.2, 0.7, 0.6]), [none] * 3) == 0


def test_votes_of_tiny_weights_count():
    # Products of long solutions: e^-900 + e^-900.5 are more than e^-899.7, though all of them are 0 as numbers.
    assert math.exp(-900) == 0.0
    assert choose(RankingMethod.WEIGHTED_VOTE, [-899.7, -900.0, -900.5], [0, 1, 1]) == 1
    # 1 > e^-0.3 (1 + e^-0.5) = 0.7408 * 1.6065 = 1.19 is false, and with e^-2 it is true: 0.7408 * 1.1353 = 0.84.
    assert choose(RankingMethod.WEIGHTED_VOTE, [-899.7, -900.0, -902.0], [0, 1, 1]) == 0


def test_a_candidate_without_a_score_weighs_nothing():
    nothing = -math.inf
    assert choose(RankingMethod.BEST_OF_N, [nothing, -900.0], [0, 1]) == 1
    assert choose(RankingMethod.WEIGHTED_VOTE, [nothing, nothing, -900.0], [0, 0, 1]) == 2
    assert choose(RankingMethod.WEIGHTED_VOTE, [nothing, nothing], [0, 1]) == 0
    assert choose(RankingMethod.MAJORITY, [nothing, nothing, 0.0], [0, 0, 1]) == 0


def test_ties_are_broken_at_random_in_chances():
    subsets = np.array([[0, 1, 2, 3], [0, 1, 3, 4], [1, 2, 3, 4]])
    correct = np.array([True, False, True, False, False])
    ballots = Ballots.of(RankingMethod.MAJORITY, LOGS, np.array(GROUPS), subsets)
    # a and b with two votes each; b with two; b with two.
    assert ballots.won.tolist() == [[True, True, False], [False, True, False], [False, True, False]]
    assert ballots.right(correct[subsets]).tolist() == [0.5, 0.0, 0.0]
    # Where it is said of each candidate whether it is right, one that gives the same answer can differ.
    half = np.array([True, False, False, False, False])
    assert ballots.right(half[subsets]).tolist() == [0.25, 0.0, 0.0]
    weighted = Ballots.of(RankingMethod.WEIGHTED_VOTE, LOGS, np.array(GROUPS), subsets)
    # Of b the best-scored candidate stands, and in the last subset c has 0.6 against 0.9 of b.
    assert weighted.right(np.array([False, True, False, False, False])[subsets]).tolist() == [1.0, 1.0, 1.0]


def test_votes_do_not_vanish_beside_a_candidate_that_does_not_vote():
    # Products over long solutions: exp(-810) and exp(-790) are both 0 beside exp(-1).
    assert choose(RankingMethod.WEIGHTED_VOTE, [-1.0, -810.0, -790.0], [NO_ANSWER, 0, 1]) == 2
    assert choose(RankingMethod.WEIGHTED_VOTE, [-1.0, -790.0, -810.0], [NO_ANSWER, 0, 1]) == 1
    # Three of exp(-800) are more than one of exp(-799).
    assert choose(RankingMethod.WEIGHTED_VOTE, [0.0, -800, -800, -800, -799], [NO_ANSWER, 0, 0, 0, 1]) == 1


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
