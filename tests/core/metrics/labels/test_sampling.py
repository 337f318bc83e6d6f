"""Traces drawn by information, and the estimates from their labels."""

import random

import numpy as np
import pytest

from stepsight.core.metrics.labels.sampling import draw, estimate_mean, information, weights_of

TOLD = [0.9, 0.1, 0.4, 0.0, 0.6, 0.3]
PROBLEMS = [0, 0, 1, 2, 2, 3]


def drawn(seed: int, share: float = 0.2) -> tuple[list[int], list[float]]:
    order, chances = zip(*draw(TOLD, PROBLEMS, share, random.Random(seed)), strict=True)
    return list(order), list(chances)


def test_information_is_high_where_evaluators_differ_or_are_near_their_thresholds() -> None:
    validities = np.array([[0.9, 0.9, 0.5, np.nan], [0.9, 0.1, np.nan, np.nan]])
    told = information(validities, np.array([0.5, 0.5]))
    # Agreeing and sure; range 0.8; at the threshold; nothing is known, so the mean of the others.
    assert told == pytest.approx([0.1, 0.5, 0.5, (0.1 + 0.5 + 0.5) / 3])
    assert information(validities[:, 3:], np.array([0.5, 0.5])) == pytest.approx([0.0])


def test_chances_are_those_of_the_draw() -> None:
    # By hand: 1 has the weight 0.1 of 2.3, later 0.05 of 1.35, since 0 is of its problem and has been drawn.
    firsts = [drawn(seed) for seed in range(3000)]
    share = np.mean([order[0] == 0 for order, _ in firsts])
    chance = 0.8 * 0.9 / 2.3 + 0.2 / 6
    assert share == pytest.approx(chance, abs=4 * (chance * (1 - chance) / 3000) ** 0.5)
    after = [chances[1] for order, chances in firsts if order[:2] == [0, 1]]
    assert after == pytest.approx([0.8 * 0.05 / 1.35 + 0.2 / 5] * len(after))
    assert len(after) > 10
    assert all(sorted(order) == list(range(6)) for order, _ in firsts)
    assert [chances[-1] for _, chances in firsts] == pytest.approx([1.0] * 3000)


def test_estimates_are_unbiased_whatever_is_predicted() -> None:
    values, predicted = np.array([1.0, 1, 0, 1, 0, 1]), np.array([0.9, 0.2, 0.1, 0.7, 0.8, 0.4])
    of_many = []
    for seed in range(4000):
        order, chances = drawn(seed)
        first = np.array(order[:3])
        weights = weights_of(np.array(chances[:3]), 6)
        of_many.append(predicted.mean() + (weights * (values - predicted)[first]).mean())
    error = np.std(of_many) / 4000**0.5
    assert np.mean(of_many) == pytest.approx(values.mean(), abs=4 * error)


def test_an_estimate_narrows_to_the_mean_and_leaves_out_the_unknown() -> None:
    rng = np.random.default_rng(0)
    values = (rng.random(40) < 0.7).astype(float)
    chances = 1 / np.arange(40, 0, -1)
    known = estimate_mean(values, np.arange(40), chances, np.full(40, 0.5))
    assert [known.number, known.low, known.high] == pytest.approx([values.mean()] * 3)
    part = estimate_mean(values[:20], np.arange(20), chances[:20], np.full(40, 0.5))
    # Without preference and with one prediction for all, it is the plain mean, with the finite population's factor.
    half = 1.959964 * values[:20].std(ddof=1) * (0.5 / 20) ** 0.5
    assert [part.number, part.high - part.number] == pytest.approx([values[:20].mean(), half])
    unknown = np.where(np.arange(20) < 5, np.nan, values[:20])
    assert estimate_mean(unknown, np.arange(20), chances[:20], np.full(40, 0.5)).number == values[5:20].mean()
    assert estimate_mean(unknown[:12], np.arange(12), chances[:12], np.full(40, 0.5)).reason
