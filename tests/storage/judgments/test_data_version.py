from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import Threshold, read_data_version, save_calibration
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from tests.storage.samples import SAMPLES, add, evaluator, judge


def test_it_changes_with_traces_judgments_and_thresholds_and_with_nothing_else(store):
    traces = add(store, SAMPLES)
    dataset, mini = traces[0].dataset_id, evaluator(store)
    seen = [read_data_version(store, dataset)]

    def is_new() -> bool:
        seen.append(read_data_version(store, dataset))
        return seen[-1] not in seen[:-1]

    assert not is_new()
    save_judgments(store, mini.id, [judge(trace, "offline") for trace in traces])
    assert is_new()
    # The same trace is judged anew.
    save_judgments(store, mini.id, [judge(traces[0], "offline", seed=1)])
    assert is_new()
    save_judgments(store, evaluator(store, "other").id, [judge(traces[0], "hindsight")])
    assert is_new()
    save_calibration(store, mini.id, find_dataset(store, "sums"), Threshold.VALIDITY, 0.6, {})
    assert is_new()
    add(store, [Trace.of("q", ["s"], id="more")])
    assert is_new()
    elsewhere = add(store, SAMPLES, dataset="elsewhere")
    save_judgments(store, mini.id, [judge(elsewhere[0], "offline")])
    assert not is_new()


def test_a_dataset_that_is_not_there_has_one_too(store):
    assert read_data_version(store, 99) == (0, 0)
