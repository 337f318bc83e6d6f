"""Thresholds chosen by hand, and against trying them one by one."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_score, recall_score

from stepsight.core.judgment import Mode
from stepsight.core.metrics.binary import macro_f1
from stepsight.core.metrics.figures import Subject
from stepsight.core.metrics.reasoneval import Errors, Level
from stepsight.core.metrics.table import Items
from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import Threshold, find_calibration, register_evaluator
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.calibration import Goal, calibrate, choose
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import add, evaluator
from tests.training.hand import say, traces, valid


def items(scores, wrong, errors=Errors.INVALID):
    """Steps with these validities or redundancies; 1 is an error."""
    values = np.array(scores, np.float32).astype(np.float64)
    golds = ~np.array(wrong, np.bool_)
    shown = values if errors == Errors.INVALID else -values
    return Items(shown, golds, golds, np.arange(len(golds)))


def test_the_best_macro_f1():
    """Errors 0.1, 0.2, 0.62; right 0.6, 0.7, 0.8. At 0.6 two are found: F1 4 / (2 + 3), 6 / (4 + 3).

    Up to 0.7, which takes 0.6 with it: 6 / (4 + 3), 4 / (2 + 3), which is as good: the default lies in the first.
    """
    found = choose(items([0.1, 0.2, 0.62, 0.6, 0.7, 0.8], [1, 1, 1, 0, 0, 0]), Errors.INVALID)
    assert found.value == 0.5
    assert found.macro_f1 == pytest.approx((4 / 5 + 6 / 7) / 2)
    assert (found.precision, found.recall) == (1.0, pytest.approx(2 / 3))


def test_a_wanted_recall_at_the_best_precision():
    """All three errors are below 0.7, with 0.6 among them: precision 3 / 4; 0.66 is the shortest in between."""
    tried = items([0.1, 0.2, 0.62, 0.6, 0.7, 0.8], [1, 1, 1, 0, 0, 0])
    found = choose(tried, Errors.INVALID, Goal.RECALL, 0.9)
    assert (found.value, found.precision, found.recall) == (0.66, 0.75, 1.0)
    # Two thirds are enough for a recall of 0.6.
    assert choose(tried, Errors.INVALID, Goal.RECALL, 0.6).value == 0.5


def test_redundant_is_what_reaches_the_threshold():
    """Redundant 0.3, 0.4; not 0.05, 0.1, 0.2: between 0.2 and 0.3 all are right, and 0.3 itself would do."""
    found = choose(items([0.3, 0.4, 0.05, 0.1, 0.2], [1, 1, 0, 0, 0], Errors.REDUNDANT), Errors.REDUNDANT)
    assert (found.value, found.macro_f1, found.precision, found.recall) == (0.25, 1.0, 1.0, 1.0)


@each("errors", list(Errors))
@each("seed", range(6))
def test_no_threshold_is_better(errors, seed):
    """Every score is tried by the rule of the protocol; there are ties, and neighbours in single precision."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random(40), 1 + seed % 3).astype(np.float32)
    scores[:4] = np.nextafter(scores[4], [0, 1, 2, -1], dtype=np.float32)
    wrong = rng.random(40) < 0.4
    tried = items(scores.tolist(), wrong.tolist(), errors)

    def flagged(cut: float) -> np.ndarray:
        return scores < np.float32(cut) if errors == Errors.INVALID else scores >= np.float32(cut)

    found = choose(tried, errors)
    known = [
        f1_score(wrong, flagged(cut), average="macro", zero_division=0)
        for cut in [0.0, 1.0, *scores.astype(float), *np.nextafter(scores, np.float32(1)).astype(float)]
        if 0 <= cut <= 1
    ]
    assert found.macro_f1 == pytest.approx(max(known))
    assert f1_score(wrong, flagged(found.value), average="macro") == pytest.approx(found.macro_f1)
    wanted = choose(tried, errors, Goal.RECALL, 0.8)
    assert wanted.recall >= 0.8
    assert recall_score(wrong, flagged(wanted.value)) == pytest.approx(wanted.recall)
    assert precision_score(wrong, flagged(wanted.value)) == pytest.approx(wanted.precision)
    every = [cut for cut in scores.astype(float) if 0 <= cut <= 1 and flagged(cut)[wrong].mean() >= 0.8]
    assert all(wanted.precision >= precision_score(wrong, flagged(cut)) - 1e-12 for cut in every)


def test_a_threshold_between_neighbours_in_single_precision():
    low = np.float32(0.3)
    high = np.nextafter(low, np.float32(1))
    found = choose(items([float(low), float(high)], [1, 0]), Errors.INVALID)
    assert low < np.float32(found.value) <= high


@pytest.mark.parametrize(
    ("scores", "wrong"), [([], []), ([0.1, 0.2], [0, 0]), ([0.1, 0.2], [1, 1]), ([0.1, np.nan, 0.3], [1, 0, 0])]
)
def test_nothing_to_choose_from(scores, wrong):
    with refused():
        choose(items(scores, wrong), Errors.INVALID)


def test_a_recall_out_of_reach():
    # A validity of 1 is never below a threshold.
    with refused():
        choose(items([1.0, 0.2, 0.9], [1, 1, 0]), Errors.INVALID, Goal.RECALL, 0.9)


def test_a_chosen_threshold_is_in_force(sqlite_store):
    """Above 0.61 A 2 is found, and B 2 wrongly: F1 8 / 9 and 4 / 5. Below 0.4 neither: 10 / 11 and 2 / 3."""
    stored = add(sqlite_store, traces())
    one = evaluator(sqlite_store, "one")
    say(sqlite_store, stored, one.id)
    dataset = find_dataset(sqlite_store, "sums")
    found = calibrate(sqlite_store, dataset, one)
    assert (found.threshold, found.before, found.choice.value) == (Threshold.VALIDITY, 0.5, 0.66)
    assert found.choice.macro_f1 == pytest.approx((8 / 9 + 4 / 5) / 2)
    assert (found.errors, found.steps) == (2, 7)
    kept = find_calibration(sqlite_store, one.id)
    assert kept == found.calibration
    assert kept.thresholds == Thresholds(0.66, 0.15)
    info = dict(kept.origins[Threshold.VALIDITY].info)
    assert info.pop("macro_f1") == pytest.approx(found.choice.macro_f1)
    assert info == {
        "threshold": "validity", "mode": "offline", "errors": "invalid", "goal": "macro-f1", "n_steps": 7,
        "n_errors": 2, "precision": pytest.approx(2 / 3), "recall": 1.0,
    }  # fmt: skip
    # The same code that measures agrees.
    gold = read_gold(sqlite_store, dataset)
    subject = Subject(read_table(sqlite_store, gold, one.id, Mode.OFFLINE), one.outputs, kept.thresholds)
    assert macro_f1(subject.items(Errors.INVALID, Level.STEP)).number == pytest.approx(found.choice.macro_f1)
    # Redundant: A 2 and C 2 have more than C 1; at 0.15 F1 is 12 / 14 and 2 / 4, and none is better.
    again = calibrate(sqlite_store, dataset, one, errors=Errors.REDUNDANT, goal=Goal.RECALL, recall=1.0)
    assert (again.threshold, again.choice.value, again.choice.precision) == (Threshold.REDUNDANCY, 0.15, 1 / 3)
    assert again.calibration.thresholds == Thresholds(0.66, 0.15)
    assert again.calibration.origins[Threshold.REDUNDANCY].info["wanted_recall"] == 1.0


@pytest.mark.parametrize(
    ("outputs", "errors"),
    [(Outputs.SOLUTION, Errors.INVALID), (Outputs.VERDICT, Errors.INVALID), (Outputs.VALIDITY, Errors.REDUNDANT)],
)
def test_evaluators_without_such_a_threshold(sqlite_store, outputs, errors):
    add(sqlite_store, traces())
    one = register_evaluator(
        sqlite_store, name="x", fingerprint="x", format="imported", attention="unknown", info={"outputs": outputs}
    )
    with refused():
        calibrate(sqlite_store, find_dataset(sqlite_store, "sums"), one, errors=errors)
    assert find_calibration(sqlite_store, one.id) is None


def test_an_impossible_choice_names_the_dataset(sqlite_store):
    stored = add(sqlite_store, traces())
    one = evaluator(sqlite_store, "one")
    dataset = find_dataset(sqlite_store, "sums")
    with refused():
        calibrate(sqlite_store, dataset, one, Mode.ONLINE)
    say(sqlite_store, stored, one.id, {"B": valid(0.3, 0.4)})
    with refused():
        calibrate(sqlite_store, dataset, one)
    assert find_calibration(sqlite_store, one.id) is None


def test_no_offline_threshold_where_traces_stop_at_their_error(sqlite_store):
    stored = add(sqlite_store, traces({"A": ["pos", "neg"], "B": ["pos"]}), dataset="cut")
    dataset = find_dataset(sqlite_store, "cut")
    both, causal = (
        register_evaluator(sqlite_store, name=name, fingerprint=name, format="stepsight", attention=name)
        for name in ("bidirectional", "causal")
    )
    for one in (both, causal):
        for mode in (Mode.OFFLINE, Mode.ONLINE):
            say(sqlite_store, stored, one.id, {"A": valid(0.9, 0.2), "B": valid(0.8)}, mode)
    with refused():
        calibrate(sqlite_store, dataset, both)
    assert calibrate(sqlite_store, dataset, both, Mode.ONLINE).choice.macro_f1 == 1
    # Offline and online are one for a causal evaluator.
    assert calibrate(sqlite_store, dataset, causal).choice.macro_f1 == 1


def test_a_threshold_that_finds_no_error_has_no_precision(sqlite_store):
    stored = add(sqlite_store, traces())
    one = evaluator(sqlite_store, "one")
    say(sqlite_store, stored, one.id, {trace.id: valid(*[0.9] * len(trace.substeps)) for trace in traces()})
    found = calibrate(sqlite_store, find_dataset(sqlite_store, "sums"), one)
    assert np.isnan(found.choice.precision)
    assert found.calibration.origins[Threshold.VALIDITY].info["precision"] is None
