"""Scores of solutions and choices among them, worked out by hand."""

import math

import numpy as np
import pytest

from stepsight.core.metrics.best_of_n import NO_ANSWER, Aggregation, Ballots, RankingMethod, choose, log_scores
from stepsight.core.scores import StepScores

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
    assert math.exp(log_scores(SCORES)[by]) == pytest.approx(score, abs=1e-6)


def test_solutions_with_the_same_validities_in_another_order_tie():
    rows = np.zeros((7, 3))
    rows[:, 2] = np.random.default_rng(0).random(7)
    first, second = log_scores(StepScores(rows)), log_scores(StepScores(rows[[6, 0, 3, 1, 5, 4, 2]]))
    tied = [Aggregation.MIN, Aggregation.PRODUCT, Aggregation.GEOMETRIC_MEAN, Aggregation.MEAN]
    assert [first[by] for by in tied] == [second[by] for by in tied]


def test_the_product_over_a_long_solution_does_not_vanish():
    # 0.1 to the 2,000th is far below the least number there is.
    long = log_scores(StepScores(np.tile([0.9, 0.0, 0.1], (2000, 1))))[Aggregation.PRODUCT]
    assert long == pytest.approx(2000 * math.log(0.1), rel=1e-5)
    assert long > log_scores(StepScores(np.tile([0.9, 0.0, 0.1], (2001, 1))))[Aggregation.PRODUCT]


def test_a_step_that_cannot_be_valid_and_one_that_rounds_above_one():
    nothing = StepScores([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    none = -math.inf
    assert list(log_scores(nothing).values()) == [none, none, 0.0, none, math.log(0.5)]
    assert log_scores(StepScores([[0.0, 0.6, 0.5]]))[Aggregation.PRODUCT] == 0.0


def test_a_solution_without_steps_has_no_score_and_no_candidates_no_choice():
    with pytest.raises(ValueError, match="without steps"):
        log_scores(StepScores(np.zeros((0, 3))))
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
