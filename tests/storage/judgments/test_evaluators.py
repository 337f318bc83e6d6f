from math import nan

import pytest
from sqlalchemy import delete, func, select
from sqlalchemy.exc import StatementError

from stepsight.core.evaluator_summary import Reading
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import CalibrationRow, DatasetRow
from stepsight.storage.judgments.evaluators import (
    Calibration,
    Threshold,
    Versions,
    count_shared,
    find_calibration,
    list_evaluators,
    read_versions,
    register_evaluator,
    register_loaded,
    save_calibration,
)
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from tests.checkpoints import write_math_shepherd
from tests.messages import refused
from tests.storage.samples import CLEAN, ERROR, MISSING, SAMPLES, add, evaluator, find_evaluator, judge


def test_an_evaluator_is_added_once_and_stays_as_it_was(store):
    first = register_evaluator(
        store, name="mini", fingerprint="abc", format="stepsight", attention="causal", info={"seed": 1}
    )
    again = register_evaluator(store, name="renamed", fingerprint="abc", format="other", attention="bidirectional")
    assert again == first
    assert (first.name, first.format, first.attention, first.info) == ("mini", "stepsight", "causal", {"seed": 1})
    assert find_evaluator(store, "abc") == first


def test_evaluators_are_listed_by_name(store):
    added = [evaluator(store, name) for name in ("b", "a", "c")]
    assert list_evaluators(store) == [added[1], added[0], added[2]]


def test_one_that_says_how_valid_a_step_is_is_kept_as_such(sqlite_store, tmp_path):
    write_math_shepherd(tmp_path / "math-shepherd", card={"format": "math-shepherd"})
    row = register_loaded(sqlite_store, load_evaluator(tmp_path / "math-shepherd"))
    assert (row.format, row.attention, row.outputs) == ("math-shepherd", "causal", Outputs.VALIDITY)
    assert register_loaded(sqlite_store, load_evaluator("mini-causal")).outputs == Outputs.THREE_WAY


def test_a_reading_is_stored_beside_the_name_which_is_not_parsed(store):
    windows = Reading("both-orders", window=512)
    added = register_loaded(store, load_evaluator("mini-causal").description().read_as(windows))
    (row,) = list_evaluators(store)
    assert row == added
    assert (row.name, row.reading) == ("mini-causal, read in both orders, in windows of 512 tokens", windows)
    assert row.reading_note.startswith("mini-causal was not trained to be read in both orders.")
    called_so = evaluator(store, "causal, read in both orders")
    assert (called_so.reading, called_so.reading_note) == (Reading(), "")


def test_an_unusable_name(store):
    with refused():
        evaluator(store, "")


def test_the_facts_of_an_evaluator_are_json(store):
    with pytest.raises((StatementError, ValueError), match="not JSON compliant"):
        register_evaluator(store, name="x", fingerprint="f", format="f", attention="causal", info={"loss": nan})
    assert list_evaluators(store) == []


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


def test_versions_change_with_traces_judgments_and_thresholds_and_with_nothing_else(store):
    traces = add(store, SAMPLES)
    dataset, mini = traces[0].dataset_id, evaluator(store)
    seen: list[Versions] = []

    def changed() -> str:
        with store.read() as session:
            seen.append(read_versions(session, dataset))
            assert read_versions(session, dataset, [mini.id, 99]).verdicts.keys() == {mini.id}
        pairs = zip(Versions._fields, *seen[-2:], strict=True) if len(seen) > 1 else ()
        return " ".join(name for name, before, after in pairs if before != after)

    assert changed() == ""
    save_judgments(store, mini.id, [judge(trace, "offline") for trace in traces])
    assert changed() == "verdicts"
    # The same trace is judged anew.
    save_judgments(store, mini.id, [judge(traces[0], "offline", seed=1)])
    assert changed() == "verdicts"
    save_judgments(store, evaluator(store, "other").id, [judge(traces[0], "hindsight")])
    assert changed() == "verdicts"
    save_calibration(store, mini.id, find_dataset(store, "sums"), Threshold.VALIDITY, 0.6, {})
    assert changed() == "verdicts"
    add(store, [Trace.of("q", ["s"], id="more")])
    assert changed() == "traces"
    elsewhere = add(store, SAMPLES, dataset="elsewhere")
    save_judgments(store, mini.id, [judge(elsewhere[0], "offline")])
    assert changed() == ""
    with store.read() as session:
        assert read_versions(session, 99) == (None, {})
