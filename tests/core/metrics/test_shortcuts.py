"""How far scores follow length and place, by hand and beside SciPy."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.shortcuts import error_is_last, last_by_chance, last_is_least, rank_correlation
from stepsight.core.metrics.table import build_table
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace


def table(*validities, labels=None):
    """A table of traces with these validities of their steps."""
    judged = []
    for number, validity in enumerate(validities):
        trace = Trace.of("q", ["s"] * len(validity), labels[number] if labels else None, id=str(number))
        judged.append((trace, StepScores(np.array([[1 - v, 0, v] for v in validity], np.float32))))
    return build_table(judged)


def test_one_group_gives_spearmans_correlation_with_ties():
    rng = np.random.default_rng(1)
    one = rng.normal(size=200).round(1)
    other = one + rng.normal(size=200)
    trace = np.repeat(np.arange(40), 5)
    found = rank_correlation(one, other, np.zeros(200, int), trace, resamples(40, 50))
    assert found.number == pytest.approx(spearmanr(one, other).statistic, abs=1e-12)
    assert found.low < found.number < found.high


def test_what_only_gold_explains_is_no_correlation_beyond_it():
    # Wrong steps are long and score low; within each class, long and short ones score alike.
    scores, lengths = np.array([9, 9, 8, 8, 2, 2, 1, 1.0]), np.array([1, 2, 1, 2, 7, 8, 7, 8.0])
    gold, trace = np.array([1, 1, 1, 1, 0, 0, 0, 0]), np.arange(8)
    raw = rank_correlation(scores, lengths, np.zeros(8, int), trace, resamples(8, 20))
    assert raw.number == pytest.approx(spearmanr(scores, lengths).statistic)
    assert raw.number < -0.7
    assert rank_correlation(scores, lengths, gold, trace, resamples(8, 20)).number == pytest.approx(0)


def test_scores_that_do_not_vary_have_no_correlation():
    same = rank_correlation(np.ones(3), np.arange(3.0), np.zeros(3, int), np.arange(3), resamples(3, 5))
    assert (same.exists, same.reason) == (False, "all scores or all lengths are the same")


def test_a_last_step_that_ties_counts_in_part_and_single_steps_do_not_count():
    # Last of 2; tie of 2 of 3; not the last of 2; a single step.
    found = table([0.9, 0.1], [0.5, 0.7, 0.5], [0.1, 0.9], [0.3])
    assert last_is_least(found, resamples(4, 10)).number == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert last_by_chance(found, resamples(4, 10)).number == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 3)
    assert not last_is_least(table([0.3]), resamples(1, 5)).exists


def test_a_constant_evaluator_has_exactly_the_share_of_chance():
    found = table([0.5] * 2, [0.5] * 5)
    assert last_is_least(found, resamples(2, 5)) == last_by_chance(found, resamples(2, 5))


def test_golds_errors_in_last_steps_are_counted_among_solutions_with_an_error():
    labels = (["pos", "neg"], ["neg", "pos"], ["pos", "pos"], ["neg"])
    found = table([0.9, 0.1], [0.5, 0.7], [0.1, 0.9], [0.3], labels=labels)
    assert error_is_last(found, resamples(4, 10)).number == 0.5
