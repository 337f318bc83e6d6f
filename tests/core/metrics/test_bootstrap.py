"""Figures must have the value that scikit-learn gives, and every resample that on the items repeated as drawn."""

import errno
import json
import math
import os

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, f1_score, precision_score, recall_score, roc_auc_score

from stepsight.core.metrics import binary, bootstrap
from stepsight.core.metrics.binary import auc, brier, macro_f1
from stepsight.core.metrics.bootstrap import Value, interval, resamples
from stepsight.core.metrics.table import Items


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(3)
    trace = np.repeat(np.arange(40), rng.integers(1, 8, 40))
    golds = rng.random(len(trace)) < 0.7
    # Two decimals, so that many scores tie.
    scores = np.round(np.clip(golds * 0.3 + rng.random(len(trace)) * 0.7, 0, 1), 2)
    return Items(scores, golds, scores >= 0.5, trace)


def repeated(items, weights):
    return np.repeat(np.arange(len(items)), weights[items.trace].astype(int))


def test_figures_and_draws_equal_scikit_learn_on_the_repeated_items(items):
    weights = resamples(40, 60)
    f1s, aucs = macro_f1.draws(items, weights), auc.draws(items, weights)
    for row, drawn_f1, drawn_auc in zip(weights, f1s, aucs, strict=True):
        part = items.where(repeated(items, row))
        expected = f1_score(part.gold, part.predicted, average="macro"), roc_auc_score(part.gold, part.scores)
        assert (drawn_f1, drawn_auc) == pytest.approx(expected)
        assert (macro_f1(part).number, auc(part).number) == pytest.approx(expected)
        assert binary.precision(part).number == pytest.approx(precision_score(part.gold, part.predicted))
        assert binary.recall(part).number == pytest.approx(recall_score(part.gold, part.predicted))
        assert brier(part).number == pytest.approx(brier_score_loss(part.gold, part.scores))


def test_chunks_change_nothing(items, monkeypatch):
    weights = resamples(40, 30)
    whole = auc.draws(items, weights)
    monkeypatch.setattr("stepsight.core.metrics.bootstrap._CHUNK", 7 * len(items))
    np.testing.assert_array_equal(auc.draws(items, weights), whole)


def test_resamples_draw_as_many_as_there_are_and_repeat():
    weights = resamples(25, 50)
    assert (weights.sum(axis=1) == 25).all()
    np.testing.assert_array_equal(weights, resamples(25, 50))
    assert resamples(0, 5).shape == (5, 0)


@pytest.mark.parametrize("disk", ["has room", "is full"])
def test_many_resamples_lie_in_a_file_if_the_disk_has_room(items, monkeypatch, disk):
    kept = resamples(40, 200)
    monkeypatch.setattr(bootstrap, "_IN_MEMORY", 5_000)
    monkeypatch.setattr(bootstrap, "_CHUNK", 300)
    if disk == "is full":

        def refuse(file, offset, length):
            raise OSError(errno.ENOSPC, "no space left on device")

        monkeypatch.setattr(bootstrap.os, "posix_fallocate", refuse, raising=False)
    filed = resamples(40, 200)
    in_file = isinstance(filed, np.memmap)
    assert in_file == (disk == "has room" and hasattr(os, "posix_fallocate"))
    assert (filed == kept).all()
    # Each chunk leaves memory once it is used, and can be used again.
    for _ in range(2):
        assert np.array_equal(macro_f1.draws(items, filed), macro_f1.draws(items, kept))
        assert np.array_equal(auc.draws(items, filed), auc.draws(items, kept))


def test_a_resample_with_one_class_has_no_value_though_it_is_judged_wrongly():
    # Two traces, one item each, both right or both wrong: drawing either twice leaves one class.
    weights, predicted = np.array([[1, 1], [2, 0], [0, 2]], np.uint8), np.array([False, True])
    for value, gold in ((1, predicted), (0, ~predicted)):
        items = Items(np.array([0.2, 0.8]), gold, predicted, np.arange(2))
        np.testing.assert_array_equal(auc.draws(items, weights), [value, np.nan, np.nan])
        np.testing.assert_array_equal(macro_f1.draws(items, weights), [value, np.nan, np.nan])


def test_the_interval_holds_the_middle_of_the_draws():
    # Of 0, 1, ..., 1000 thousandths the 2.5th and 97.5th percentile.
    found = interval(Value(0.5), np.arange(1001) / 1000)
    assert (found.low, found.high) == (pytest.approx(0.025), pytest.approx(0.975))
    assert np.isnan(interval(Value.none("why"), np.ones(3)).low)
    assert np.isnan(interval(Value(0.5), np.array([np.nan, np.nan, 1])).low)


def test_about_95_of_100_intervals_hold_the_truth():
    # AUC of N(1, 1) against N(0, 1) is Phi(1 / sqrt(2)) = 0.760.
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(100):
        golds = np.arange(200) % 2 == 0
        scores = rng.normal(golds.astype(float), 1)
        items = Items(scores, golds, scores > 0.5, np.arange(200))
        found = interval(Value(0.0), auc.draws(items, resamples(200, 200)))
        held += found.low <= 0.76 <= found.high
    assert 88 <= held <= 100


def test_no_value_is_null_with_its_reason():
    assert Value.none("one class").as_json() == {"value": None, "low": None, "high": None, "reason": "one class"}
    assert not Value.none("one class").exists


def test_a_value_with_its_interval():
    value = Value(0.5).within(0.25, 0.75)
    assert json.loads(json.dumps(value.as_json())) == {"value": 0.5, "low": 0.25, "high": 0.75}
    assert value.exists
    assert math.isnan(Value(0.0).low)
    assert Value(0.0).exists
