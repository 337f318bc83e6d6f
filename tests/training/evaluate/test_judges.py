import numpy as np
import pytest

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.baselines import BASELINES
from stepsight.core.metrics.table import build_table
from stepsight.core.scores import Thresholds
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.calibrations import Threshold, save_calibration
from stepsight.storage.judgments.columns import read_gold
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.evaluation import Judge, baseline_tables, find_judge, read_tables
from tests.storage.samples import SAMPLES, add, evaluator
from tests.training.hand import say, traces


@pytest.mark.parametrize("mode", [Mode.OFFLINE, Mode.ONLINE])
def test_the_tables_of_the_baselines_are_those_of_their_scores(sqlite_store: Store, mode: Mode) -> None:
    stored = add(sqlite_store, SAMPLES)
    gold = read_gold(sqlite_store, find_dataset(sqlite_store, "sums"))
    found = baseline_tables(sqlite_store, gold, mode)
    assert len(found) == len(BASELINES) == 4
    for table, baseline in zip(found, BASELINES.values(), strict=True):
        expected = build_table((trace, baseline.score(trace, mode)) for trace in stored)
        assert table.ids == expected.ids
        for column in ("trace", "position", "count", "label", "valid", "validity", "redundancy", "probs"):
            np.testing.assert_array_equal(getattr(table, column), getattr(expected, column), err_msg=column)


def test_an_empty_dataset_has_empty_tables(sqlite_store: Store) -> None:
    add(sqlite_store, [])
    gold = read_gold(sqlite_store, find_dataset(sqlite_store, "sums"))
    assert [len(table) for table in baseline_tables(sqlite_store, gold, Mode.OFFLINE)] == [0, 0, 0, 0]


def test_tables_come_by_mode_the_baselines_first(sqlite_store: Store) -> None:
    stored = add(sqlite_store, traces())
    judges = [Judge(one.name, one.outputs, one.id) for one in (evaluator(sqlite_store, n) for n in ("a", "b"))]
    say(sqlite_store, stored, judges[1].id or 0, mode=Mode.ONLINE)
    gold = read_gold(sqlite_store, find_dataset(sqlite_store, "sums"))
    found = read_tables(sqlite_store, gold, judges, [Mode.OFFLINE, Mode.ONLINE])
    told = [(judge.name, str(mode)) for judge, mode, _ in found]
    # Only what has been judged has a table.
    offline, online = ([(name, mode) for name in BASELINES] for mode in ("offline", "online"))
    assert told == [*offline, *online, ("b", "online")]


def test_an_evaluator_has_the_default_thresholds_until_others_are_chosen(sqlite_store: Store) -> None:
    add(sqlite_store, traces())
    add(sqlite_store, traces(kind="other"), dataset="other")
    here, elsewhere = (find_dataset(sqlite_store, name) for name in ("sums", "other"))
    one = evaluator(sqlite_store, "one")
    assert find_judge(sqlite_store, here, one, force=False) == Judge("one", one.outputs, one.id)
    save_calibration(sqlite_store, one.id, elsewhere, Threshold.VALIDITY, 0.4, {})
    found = find_judge(sqlite_store, here, one, force=False)
    assert (found.thresholds, found.chosen_here) == (Thresholds(0.4), False)
    with pytest.raises(UserError, match="the thresholds of one were chosen on other"):
        find_judge(sqlite_store, elsewhere, one, force=False)
    assert find_judge(sqlite_store, elsewhere, one, force=True).chosen_here


def test_a_threshold_that_was_replaced_does_not_count(sqlite_store: Store) -> None:
    """Chosen here, then elsewhere: only what is in force counts. The other threshold has its own origin."""
    add(sqlite_store, traces())
    add(sqlite_store, traces(kind="other"), dataset="other")
    here, elsewhere = (find_dataset(sqlite_store, name) for name in ("sums", "other"))
    one = evaluator(sqlite_store, "one")
    for dataset in (here, elsewhere):
        save_calibration(sqlite_store, one.id, dataset, Threshold.VALIDITY, 0.4, {})
    assert not find_judge(sqlite_store, here, one, force=False).chosen_here
    save_calibration(sqlite_store, one.id, here, Threshold.REDUNDANCY, 0.1, {})
    save_calibration(sqlite_store, one.id, elsewhere, Threshold.VALIDITY, 0.4, {})
    assert find_judge(sqlite_store, here, one, force=True).chosen_here
