import numpy as np
import pytest

from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.table import Third
from stepsight.core.trace import Label
from stepsight.training.evaluate.diagnostics import (
    by_class,
    by_retroactive_change,
    counted,
    decide,
    is_three_way,
    lacking,
    pairs,
    shares,
    sweep,
    thirds,
)
from stepsight.training.evaluate.evaluation import minus
from tests.core.metrics.tables import SILENT, VALID, WRONG, table
from tests.training.judged import fill, measure, row_of


@pytest.fixture
def found(sqlite_store):
    return measure(sqlite_store, fill(sqlite_store))


@pytest.fixture
def offline(found):
    return row_of(found, Mode.OFFLINE)


@pytest.fixture
def online(found):
    return row_of(found, Mode.ONLINE)


def test_shares_and_what_is_lacking():
    assert shares(np.array([2, 2, 0, 2])).tolist() == [0.25, 0, 0.75]
    assert np.isnan(shares(np.empty(0, np.int64))).all()
    assert lacking(np.array([2, 0])) == [Label.NEU]


def test_neu_by_argmax_and_at_a_threshold(offline):
    steps = offline.subject.table
    # Argmax takes 2 of 12 steps for neu, of which one is; the gold has two.
    found = decide(steps, Label.NEU)
    assert (found.rule, found.predicted) == ("argmax", 2 / 12)
    assert [v.number for v in (found.precision, found.recall, found.f1)] == pytest.approx([1 / 2, 1 / 2, 1 / 2])
    # p_neu is at least 0.15 at 0.2 (neg), 0.3 (neu), 0.7 (neu), 0.7 (pos): precision 2 / 4, recall 2 / 2.
    found = decide(steps, Label.NEU, 0.15)
    assert (found.rule, found.predicted) == ("p ≥ 0.15", 4 / 12)
    assert [v.number for v in (found.precision, found.recall, found.f1)] == pytest.approx([1 / 2, 1, 2 / 3])
    found = decide(steps, Label.NEU, 0.8)
    assert (found.precision.reason, found.recall.number, found.f1.number) == ("nothing is predicted so", 0, 0)


def test_the_sweep_is_the_decision_at_every_threshold(offline):
    steps = offline.subject.table
    found = sweep(steps)
    assert len(found.taus) == 101
    for tau, precision, recall, f1 in zip(found.taus, found.precision, found.recall, found.f1, strict=True):
        one = decide(steps, Label.NEU, tau)
        values = [one.precision.number, one.recall.number, one.f1.number]
        np.testing.assert_allclose([precision, recall, f1], values, err_msg=str(tau))
    # 0.7 of single precision is less than 0.7: the tie is one all the same.
    assert found.recall[70] == 0.5
    assert found.recall[71] == 0


def test_a_sweep_of_a_class_that_the_gold_lacks_has_a_reason():
    found = sweep(table((["pos", "neg"], [0.9, 0.1])))
    assert found.reason == "the gold has one class only"
    assert np.isnan(found.f1).all()


def test_each_class(offline, found):
    figures = by_class(offline.subject.table, found.weights)
    # neg: one decided, rightly, of two: 2 / 3. pos: 9 decided, 7 of them of the 8 that are: 14 / 17.
    assert [figures[f"{name}_f1"].number for name in ("neg", "neu", "pos")] == pytest.approx(
        [2 / 3, 1 / 2, 14 / 17]
    )
    # p_neu of the two neu is 0.3 and 0.7; of the rest 0.2, 0.7 and eight times 0.1: 9 and 9.5 of 10 pairs.
    assert figures["neu_auc"].number == pytest.approx(18.5 / 20)
    f1 = figures["pos_f1"]
    assert 0 < f1.low <= f1.number <= f1.high <= 1


def test_a_class_that_the_gold_lacks_has_no_figures(found, offline):
    kept = offline.subject.table.label != Label.NEG
    figures = by_class(offline.subject.table.where(kept), found.weights)
    assert figures["neg_f1"].reason == "the gold has no such item"
    assert figures["neg_auc"].reason == "the gold has one class only"
    assert figures["neu_f1"].exists


def test_three_way_evaluators_are_recognised(found, offline):
    assert is_three_way(offline.subject)
    assert not is_three_way(row_of(found, Mode.OFFLINE, evaluator="words").subject)
    assert not is_three_way(row_of(found, Mode.OFFLINE, evaluator="baseline:length").subject)


def test_steps_after_the_first_error_do_not_count():
    steps = table(([VALID, WRONG, VALID, SILENT], [0.9] * 4), ([VALID, VALID], [0.9] * 2))
    assert counted(steps, Errors.INVALID).tolist() == [True, True, False, False, True, True]
    assert counted(steps, Errors.REDUNDANT).all()


def test_thirds(found, online, offline):
    parts = {mode: thirds(row, found.weights) for mode, row in (("online", online), ("offline", offline))}
    auc = {mode: [parts[mode][f"{third}_step_auc"] for third in Third] for mode in parts}
    # Every first step is valid. Second steps: 0.3 is wrong, 0.9, 0.9 and 0.8 are not. Third steps that count, all
    # 0.9: one is wrong.
    assert auc["offline"][0].reason == "the gold has one class only"
    assert [value.number for value in auc["offline"][1:]] == [1, 0.5]
    # Online the wrong one has 0.9, the others 0.4, 0.9 and 0.8: half a pair of three.
    assert auc["online"][1].number == pytest.approx(0.5 / 3)
    gain = minus(parts["offline"], parts["online"])
    assert gain["middle_step_auc"].number == pytest.approx(1 - 0.5 / 3)
    assert gain["late_step_auc"].number == 0
    assert not gain["early_step_auc"].exists
    # Second steps, neg neu pos pos: neg is found; p_neu 0.3 against 0.2, 0.1, 0.7: 2 of 3; p_pos 0.8 and 0.1
    # against 0.1 and 0.6: 2.5 of 4.
    assert parts["offline"]["middle_macro_auc"].number == pytest.approx((1 + 2 / 3 + 2.5 / 4) / 3)
    assert parts["offline"]["early_macro_auc"].reason == "the gold has no neg"


def test_retroactive_change(online, offline):
    found = by_retroactive_change(online, offline)
    # Of the 11 steps up to the first errors one fell, which is wrong, and one rose, which is not; of the nine that
    # stayed the last of the third trace is wrong and is taken for valid in both modes.
    assert {kind: (part.steps, part.wrong) for kind, part in found.items()} == {
        "fell": (1, 1),
        "rose": (1, 0),
        "stayed": (9, 1),
    }
    assert {kind: (part.online.number, part.offline.number) for kind, part in found.items()} == {
        "fell": (0, 1),
        "rose": (0, 1),
        "stayed": pytest.approx((8 / 9, 8 / 9)),
    }
    assert found["stayed"].share_wrong.number == pytest.approx(1 / 9)
    none = by_retroactive_change(online, offline)["fell"].__class__(0, 0, *[found["fell"].online] * 2)
    assert none.share_wrong.reason == "there is no such step"


def test_pairs_are_of_one_evaluator_and_kind_of_error(found):
    made = [(one.evaluator, one.errors, one.mode, other.mode) for one, other in pairs(found.rows)]
    assert ("one_mind", "invalid", "online", "offline") in made
    assert ("one_mind", "redundant", "online", "offline") in made
    assert "words" not in {name for name, *_ in made}
    assert all(one.evaluator == other.evaluator and one.errors == other.errors for one, other in pairs(found.rows))
