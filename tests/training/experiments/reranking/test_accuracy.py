"""How often each way of choosing is right."""

import numpy as np
import pytest

from stepsight.core.metrics.best_of_n import NO_ANSWER, Ties
from stepsight.training.experiments.reranking.accuracy import Ranked, Way, differences, measure


def ranked(scores, groups, correct):
    logs = np.log(np.array(scores))
    return Ranked(
        tuple(range(len(scores))),
        logs,
        np.array(groups),
        np.array([7, 3, 5][: len(scores)]),
        None if correct is None else np.array(correct, bool),
    )


# The first problem: the best is right, and two of three give a wrong answer. The second: one candidate, wrong.
PROBLEMS = [ranked([0.2, 0.9, 0.3], [0, 1, 0], [0, 1, 0]), ranked([0.4], [0], [0])]


def test_every_way_by_hand():
    found = measure(PROBLEMS, draws=10)
    assert found.sizes == (1, 2, 3)
    assert (found.problems, found.fewer, found.unknown) == (2, 1, 0)

    def means(way):
        return [pytest.approx(2 * value.number) for value in found.means[way]]

    # Sums over both problems; the second adds nothing.
    assert means(Way.FIRST) == [0, 0, 0]
    assert means(Way.RANDOM) == [1 / 3, 1 / 3, 1 / 3]
    # Of two, the right one is in two subsets of three.
    # The right one is the shortest.
    assert means(Way.SHORTEST) == [1 / 3, 2 / 3, 1]
    assert means(Way.PASS) == [1 / 3, 2 / 3, 1]
    assert means(Way.BEST) == [1 / 3, 2 / 3, 1]
    # {1,2} and {2,3}: 0.9 wins; of three 0.9 against 0.5.
    assert means(Way.WEIGHTED) == [1 / 3, 2 / 3, 1]
    # {1,2} and {2,3}: ties, half right each; of three two against one.
    assert means(Way.MAJORITY) == [1 / 3, 1 / 3, 0]
    pairs = [(Way.BEST, Way.MAJORITY), (Way.BEST, Way.RANDOM), (Way.MAJORITY, Way.FIRST)]
    values = differences([(found, way, found, other) for way, other in pairs])
    assert [value.number for value in values] == pytest.approx([0.5, 0.5 - 1 / 6, 0])


def test_equal_candidates_count_as_random_or_as_the_first():
    # Two equal scores, the second right: half the time, or never.
    problems = [ranked([0.5, 0.5], [0, 1], [0, 1])]
    for ties, rate in ((Ties.RANDOM, 0.5), (Ties.FIRST, 0.0)):
        found = measure(problems, draws=10, ties=ties)
        assert [found.of_all(way).number for way in (Way.BEST, Way.WEIGHTED, Way.MAJORITY)] == [rate] * 3
        assert found.of_all(Way.RANDOM).number == 0.5


def test_a_pool_of_one_leaves_no_choice():
    found = measure([ranked([0.5], [0], [1])], draws=10)
    assert found.sizes == (1,)
    assert {values[0].number for values in found.means.values()} == {1.0}


def test_problems_of_which_nothing_is_known_are_left_out_and_counted():
    found = measure([*PROBLEMS, ranked([0.5, 0.6], [0, 1], None)], draws=10)
    assert (found.problems, found.unknown) == (2, 1)
    assert found.sizes == (1, 2, 3)
    assert measure([ranked([0.5], [0], None)]) is None


def test_without_answers_nothing_is_voted_on():
    found = measure([ranked([0.2, 0.9], [NO_ANSWER, NO_ANSWER], [0, 1])], draws=10)
    assert not found.means[Way.MAJORITY][0].exists
    assert not found.means[Way.WEIGHTED][0].exists
    assert found.means[Way.MAJORITY][0].reason == "no candidate has an answer"
    assert found.means[Way.BEST][1].number == 1.0


def test_intervals_are_of_the_problems_and_differences_are_paired():
    # In 40 of 100 problems the better candidate is right, in the others the first and worse one.
    problems = [ranked([0.2, 0.9], [0, 1], [i >= 40, i < 40]) for i in range(100)]
    found = measure(problems)
    last = found.means[Way.BEST][-1]
    assert last.number == pytest.approx(0.4)
    # 1.96 standard errors of a share of 100: 1.96 * sqrt(0.4 * 0.6 / 100) = 0.096.
    assert last.low == pytest.approx(0.4 - 0.096, abs=0.02)
    assert last.high == pytest.approx(0.4 + 0.096, abs=0.02)
    (gain,) = differences([(found, Way.BEST, found, Way.FIRST)])
    assert gain.number == pytest.approx(-0.2)
    # What one gains the other loses: twice the error.
    assert gain.high - gain.low == pytest.approx(2 * (last.high - last.low), rel=0.1)
    # A random one of two, of which one is right, is right half the time in every problem.
    assert found.means[Way.RANDOM][0].low == found.means[Way.RANDOM][0].high == 0.5
