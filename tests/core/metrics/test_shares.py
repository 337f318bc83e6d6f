"""Figures against soft labels, by hand and beside SciPy."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.figures import SHARES, others
from stepsight.core.metrics.measurement import Subject
from stepsight.core.metrics.table import build_table
from stepsight.core.scores import Outputs, StepScores, Thresholds
from stepsight.core.trace import Step, Trace


def subject(*traces, outputs=Outputs.VALIDITY):
    """An evaluator of traces whose steps have these pairs of validity and share."""
    judged = []
    for number, pairs in enumerate(traces):
        steps = tuple(Step(("s",), share=share) for _, share in pairs)
        scores = StepScores(np.array([[1 - validity, 0, validity] for validity, _ in pairs], np.float32))
        judged.append((Trace(str(number), "q", steps), scores))
    return Subject(build_table(judged), outputs, Thresholds())


def measure(found, draws=50):
    return others(found, resamples(found.table.traces, draws))


def numbers(found):
    return {name: one.value.number for name, one in measure(found).items() if name in SHARES}


def test_steps_without_a_share_do_not_count():
    # Squares: 0.04, 0.01, 0.16. Pairs within traces: (1, 0.5) in order; (0.25, 0.75) tied.
    found = numbers(subject([(0.8, 1.0), (0.9, None), (0.4, 0.5)], [(0.65, 0.25), (0.65, 0.75)]))
    assert found["share_brier"] == pytest.approx((0.04 + 0.01 + 0.16 + 0.01) / 4)
    assert found["share_order"] == pytest.approx((1 + 0.5) / 2)
    assert found["share_spearman"] == pytest.approx(
        spearmanr([0.8, 0.4, 0.65, 0.65], [1, 0.5, 0.25, 0.75]).statistic
    )


def test_intervals_hold_the_value_and_draws_are_those_of_the_resampled_traces():
    rng = np.random.default_rng(0)
    shares = rng.random((40, 4)).round(1)
    validities = np.clip(shares + rng.normal(size=shares.shape) / 4, 0, 1)
    found = subject(
        *[list(zip(*pair, strict=True)) for pair in zip(validities.tolist(), shares.tolist(), strict=True)]
    )
    measured = measure(found, 200)
    assert all(
        one.value.low < one.value.number < one.value.high for name, one in measured.items() if name in SHARES
    )
    drawn = np.repeat(np.arange(40), resamples(40, 200)[7])
    errors = ((found.table.validity.reshape(40, 4) - shares) ** 2)[drawn]
    assert measured["share_brier"].draws[7] == pytest.approx(errors.mean(), abs=1e-6)


def test_a_constant_has_half_of_the_pairs_and_no_correlation():
    measured = measure(subject([(0.5, 1.0), (0.5, 0.0)], [(0.5, 0.5)]))
    assert measured["share_order"].value.number == 0.5
    assert measured["share_brier"].value.number == pytest.approx(1 / 6)
    assert measured["share_spearman"].value.reason == "all scores or all shares are the same"


def test_figures_that_cannot_be_given_say_why():
    reasons = {
        "words": measure(subject([(1, 0.5), (0, 0.25)], outputs=Outputs.VERDICT)),
        "same": measure(subject([(0.9, 0.5), (0.1, 0.5)])),
    }
    assert reasons["words"]["share_brier"].value.reason == "the evaluator gives no scores to rank by"
    assert reasons["same"]["share_order"].value.reason == "no trace has steps with different shares"
    assert not set(SHARES) & set(measure(subject([(0.9, None)])))
