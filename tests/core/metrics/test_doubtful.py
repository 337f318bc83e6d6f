"""Doubt in labels, on scores in which wrong labels were planted."""

import numpy as np
import pytest

from stepsight.core.metrics.doubtful import doubts


def planted(seed=0, count=300):
    """Scores of two evaluators, right labels, and labels of which twelve are wrong."""
    rng = np.random.default_rng(seed)
    right = (rng.random(count) < 0.7).astype(np.int8)
    scores = np.clip(right[:, None] * 0.5 + 0.25 + rng.normal(0, 0.15, (count, 2)), 0, 1)
    wrong = rng.choice(count, 12, replace=False)
    given = right.copy()
    given[wrong] ^= 1
    return scores, given, wrong, np.arange(count) // 3


def test_planted_labels_are_the_most_doubtful():
    scores, given, wrong, problem = planted()
    doubt = doubts(scores, np.zeros(len(given), bool), given, problem)
    assert len(set(np.argsort(-doubt)[:12]) & set(wrong)) >= 10
    assert doubt.min() >= 0
    assert doubt.max() <= 1


def test_scales_of_scores_do_not_matter_and_missing_scores_do_no_harm():
    scores, given, _, problem = planted()
    none = np.zeros(len(given), bool)
    assert np.array_equal(doubts(scores, none, given, problem), doubts(scores**3 / 7, none, given, problem))
    scores[::5, 0] = np.nan
    assert not np.isnan(doubts(scores, none, given, problem)).any()


def test_a_failing_equation_adds_to_the_doubt_in_a_valid_label():
    scores, given, _, problem = planted()
    failing = np.zeros(len(given), bool)
    failing[np.flatnonzero(given == 0)[:20]] = True
    place = np.flatnonzero(given == 1)[0]
    before = doubts(scores, failing, given, problem)[place]
    failing[place] = True
    assert doubts(scores, failing, given, problem)[place] > before


def test_nothing_counts_against_what_it_says():
    """Equations that fail in valid steps, people who call them wrong and an evaluator that has them upside down."""
    scores, given, _, problem = planted()
    valid = np.flatnonzero(given == 1)
    none = np.zeros(len(given), bool)
    failing, votes = none.copy(), np.zeros(len(given))
    failing[valid[:60]] = True
    votes[valid[60:120]] = -1
    votes[np.flatnonzero(given == 0)[:20]] = 1
    plain = doubts(scores, none, given, problem)
    assert doubts(scores, failing, given, problem, votes=votes) == pytest.approx(plain)
    upside_down = np.column_stack([scores, 1 - scores[:, 0]])
    assert doubts(upside_down, none, given, problem) == pytest.approx(plain, abs=0.02)


def test_labels_of_one_kind_give_the_same_doubt_everywhere():
    doubt = doubts(np.random.default_rng(0).random((12, 1)), np.zeros(12, bool), np.ones(12, int), np.arange(12))
    assert doubt == pytest.approx(1 - 11 / 12, abs=0.02)


@pytest.mark.parametrize(("valid", "problem"), [([0, 1, 2], [0, 1, 2]), ([0, 1, 1], [4, 4, 4])])
def test_what_cannot_be_ranked_is_an_error(valid, problem):
    with pytest.raises(ValueError, match=r"label|problems"):
        doubts(np.zeros((3, 1)), np.zeros(3, bool), np.array(valid), np.array(problem))
