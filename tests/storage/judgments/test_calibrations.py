import pytest
from sqlalchemy import delete, func, select

from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import CalibrationRow, DatasetRow
from stepsight.storage.judgments.evaluators import (
    Calibration,
    Threshold,
    count_shared,
    find_calibration,
    save_calibration,
)
from stepsight.storage.traces.queries import find_dataset
from tests.storage.samples import CLEAN, ERROR, MISSING, add, evaluator

VALIDITY, REDUNDANCY = Threshold.VALIDITY, Threshold.REDUNDANCY


@pytest.fixture
def dataset(store):
    add(store, [ERROR, CLEAN])
    return find_dataset(store, "sums")


def history(store):
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(CalibrationRow)) or 0


def test_the_names_are_those_of_the_thresholds():
    assert [str(name) for name in Threshold] == list(vars(Thresholds()))


def test_none_is_in_force_at_first(store):
    assert find_calibration(store, evaluator(store).id) is None


def test_one_threshold_is_chosen_and_the_other_stays(store, dataset):
    one = evaluator(store)
    found = save_calibration(store, one.id, dataset, VALIDITY, 0.4, {"mode": "online"})
    assert found == find_calibration(store, one.id)
    assert (found.thresholds, found.datasets) == (Thresholds(0.4, 0.15), ("sums",))
    assert found.origins.keys() == {VALIDITY}
    origin = found.origins[VALIDITY]
    assert (origin.dataset_id, origin.dataset) == (dataset.id, "sums")
    assert origin.info == {"mode": "online", "threshold": "validity"}
    assert origin.created.tzinfo is not None


def test_each_keeps_its_own_origin(store, dataset):
    one = evaluator(store)
    add(store, [MISSING], dataset="other")
    save_calibration(store, one.id, dataset, VALIDITY, 0.4, {})
    found = save_calibration(store, one.id, find_dataset(store, "other"), REDUNDANCY, 0.3, {})
    assert found.thresholds == Thresholds(0.4, 0.3)
    assert {name: origin.dataset for name, origin in found.origins.items()} == {
        VALIDITY: "sums",
        REDUNDANCY: "other",
    }
    assert set(found.datasets) == {"sums", "other"}


def test_the_newest_is_in_force_and_the_history_is_kept(store, dataset):
    one, other = evaluator(store), evaluator(store, "other")
    for value in (0.4, 0.6, 0.5):
        found = save_calibration(store, one.id, dataset, VALIDITY, value, {"tried": value})
    save_calibration(store, other.id, dataset, VALIDITY, 0.9, {})
    assert found.origins[VALIDITY].info["tried"] == 0.5
    assert find_calibration(store, one.id) == found
    assert (found.thresholds.validity, history(store)) == (0.5, 4)


def test_thresholds_outlive_their_dataset(store, dataset):
    one = evaluator(store)
    save_calibration(store, one.id, dataset, VALIDITY, 0.4, {})
    with store.write() as session:
        session.execute(delete(DatasetRow).where(DatasetRow.id == dataset.id))
    found = find_calibration(store, one.id)
    assert isinstance(found, Calibration)
    assert (found.origins[VALIDITY].dataset_id, found.datasets) == (None, ("sums",))


def test_shared_traces_are_those_with_the_same_text_and_gold(store, dataset):
    # Another id is the same trace, another label is not.
    renamed = Trace("other", CLEAN.problem, CLEAN.steps)
    relabelled = Trace.of(ERROR.problem, ["It is a sum.", ["So 1 + 1 = 3.", "Done."]], ["pos", "neu"], id="error")
    add(store, [renamed, relabelled, MISSING], dataset="other")
    other = find_dataset(store, "other")
    assert count_shared(store, dataset.id, other.id) == count_shared(store, other.id, dataset.id) == 1
    assert count_shared(store, dataset.id, dataset.id) == 2
    add(store, [MISSING], dataset="apart")
    assert count_shared(store, dataset.id, find_dataset(store, "apart").id) == 0
