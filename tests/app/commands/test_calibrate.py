"""`stepsight calibrate`, as it is typed."""

import json

import pytest

from tests.storage.samples import add, evaluator
from tests.training.hand import say, traces


@pytest.fixture
def db(sqlite_store):
    stored = add(sqlite_store, traces())
    say(sqlite_store, stored, evaluator(sqlite_store, "first").id)
    return sqlite_store.name


def test_a_threshold_is_told_and_kept(command, db):
    """The figures are those of tests/training/test_calibration.py."""
    argv = ("calibrate", "--dataset", "sums", "--evaluator", "first", "--db", db)
    assert command(*argv) == (
        0,
        "first: threshold of validity 0.66 (was 0.5), chosen on sums, offline.\nThere it gives macro-F1 84.4 over 7"
        " steps and finds 100.0 % of 2 errors with precision 66.7 %. Measure it on another dataset.\n",
        "",
    )
    code, out, err = command(*argv, "--errors", "redundant", "--goal", "recall", "--recall", "1", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found.pop("macro_f1") == pytest.approx((12 / 14 + 2 / 4) / 2)
    assert found.pop("precision") == pytest.approx(1 / 3)
    assert found == {
        "evaluator": "first", "dataset": "sums", "mode": "offline", "threshold": "redundancy", "before": 0.15,
        "value": 0.15, "recall": 1.0, "n_steps": 9, "n_errors": 1,
        "thresholds": {"validity": 0.66, "redundancy": 0.15},
    }  # fmt: skip


def test_an_evaluator_that_can_run_scores_first(command, sqlite_store, tiny):
    add(sqlite_store, traces())
    code, out, err = command(
        "calibrate", "--dataset", "sums", "--evaluator", tiny, "--mode", "online", "--db", sqlite_store.name
    )
    assert (code, err) == (0, "")
    assert out.startswith("tiny: threshold of validity ")
