import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, roc_auc_score

from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.ternary import Classified, accuracy, classify, confusion, macro_auc, macro_f1
from stepsight.core.trace import Label
from tests.core.metrics.tables import three_way

# Gold neg, neg, neu, pos, pos, pos; decided neg, pos, pos, pos, pos, neg.
GOLDS = ["neg", "neg", "neu", "pos", "pos", "pos"]
PROBS = [[0.6, 0.2, 0.2], [0.3, 0.1, 0.6], [0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6], [0.5, 0.1, 0.4]]


def test_one_class_against_the_rest_at_a_threshold():
    steps = classify(three_way(GOLDS, PROBS), Label.NEU, 0.2)
    # p_neu is at least 0.2 at the first, third and fifth; the others go to the likelier of neg and pos.
    assert steps.predicted.tolist() == [1, 2, 1, 2, 1, 0]


def test_a_class_that_the_gold_lacks():
    steps = classify(three_way(["pos", "neu"], [[0.1, 0.2, 0.7], [0.1, 0.6, 0.3]]))
    # Mean over neu and pos, each in order.
    assert macro_auc(steps).number == 1
    assert macro_auc(steps).reason == "the gold has no neg"
    assert macro_f1(steps).number == 1
    alone = classify(three_way(["pos"], [[0.1, 0.2, 0.7]]))
    assert macro_auc(alone).reason == "the gold has one class only"


def test_nothing_labelled():
    steps = classify(three_way([None], [[0.1, 0.2, 0.7]]))
    for metric in (accuracy, macro_f1, macro_auc):
        assert metric(steps).reason == "there is nothing to measure"
    assert confusion(steps).tolist() == [[0, 0, 0]] * 3


def test_draws_equal_the_metrics_on_repeated_steps():
    rng = np.random.default_rng(5)
    trace = np.repeat(np.arange(30), 4)
    golds = rng.integers(0, 3, 120)
    probs = rng.dirichlet([1, 1, 1], 120) + 0.3 * np.eye(3)[golds]
    steps = Classified(probs, golds, probs.argmax(axis=1), trace)
    weights = resamples(30, 25)
    drawn = zip(
        weights, accuracy.draws(steps, weights), macro_f1.draws(steps, weights), macro_auc.draws(steps, weights),
        strict=True,
    )  # fmt: skip
    for row, acc, f1, auc in drawn:
        chosen = np.repeat(np.arange(120), row[trace].astype(int))
        part = Classified(probs[chosen], golds[chosen], steps.predicted[chosen], trace[chosen])
        assert acc == pytest.approx(accuracy_score(part.gold, part.predicted))
        assert f1 == pytest.approx(f1_score(part.gold, part.predicted, average="macro"))
        mean = np.mean([roc_auc_score(part.gold == label, part.probs[:, label]) for label in Label])
        assert auc == pytest.approx(mean)
        # And so do the figures of these steps by themselves.
        assert macro_auc(part).number == pytest.approx(mean)
        assert macro_f1(part).number == pytest.approx(f1)
        assert accuracy(part).number == pytest.approx(acc)
        assert confusion(part).tolist() == confusion_matrix(part.gold, part.predicted).tolist()


def test_a_resample_without_gold_of_a_class_leaves_it_out():
    # Gold pos, pos in one trace and neg in the other; predicted pos, neg and neg.
    steps = Classified(np.eye(3)[[2, 0, 0]], np.array([2, 2, 0]), np.array([2, 0, 0]), np.array([0, 0, 1]))
    weights = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.uint8)
    # F1 of pos: 2 / (2 + 1), and of neg 1, not 0 where only predictions have it; both: 2 / 3 and 2 / (1 + 2).
    np.testing.assert_allclose(macro_f1.draws(steps, weights), [2 / 3, 1, 2 / 3, np.nan])
