from dataclasses import replace

import numpy as np
import pytest

from stepsight.app.results.measurements import Measurements
from stepsight.app.web import background_cache
from stepsight.app.web.background_cache import LARGEST, BackgroundCache, Pending
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.app.results.measured import measured
from tests.messages import refused
from tests.storage.samples import add, judge
from tests.training.judged import NAME, NEG, POS, fill, hindsight, measure, row_of


@pytest.fixture
def results(sqlite_store):
    return Measurements(sqlite_store)


def test_it_measures_what_evaluate_does(sqlite_store, results):
    dataset = fill(sqlite_store)
    found = measured(sqlite_store, NAME, results)
    assert found.modes == [Mode.OFFLINE, Mode.ONLINE]
    assert found.kinds == [Errors.INVALID, Errors.REDUNDANT]
    assert found.has_gold
    assert [judge.name for judge in found.evaluators] == ["one_mind", "words"]
    said = measure(sqlite_store, dataset, draws=1000)
    for mode in found.modes:
        here, there = (row_of(one, mode).measured["step_auc"] for one in (found.evaluation, said))
        assert here == there


def test_it_is_kept_until_what_it_rests_on_changes(sqlite_store, results, monkeypatch):
    monkeypatch.setattr(background_cache, "_REST", 0.0)
    dataset = fill(sqlite_store)
    first = measured(sqlite_store, NAME, results)
    assert results.is_measured(dataset)
    assert measured(sqlite_store, NAME, results) is first
    one_mind, _ = evaluators_of(sqlite_store, dataset.id)
    trace = next(iterate_traces(sqlite_store, dataset.id))
    save_judgments(sqlite_store, one_mind.id, [Judgment(trace, Mode.HINDSIGHT, hindsight((NEG,) * 3, (POS,) * 3))])
    # The last figures will do until there are newer ones, unless the gold itself is another one.
    assert results.is_measured(dataset)
    assert not results.is_measured(replace(dataset, left_out=1))
    second = measured(sqlite_store, NAME, results)
    before, after = (row_of(one.evaluation, Mode.OFFLINE).measured["step_auc"] for one in (first, second))
    assert before.number != after.number
    # A dataset of the same name that is another one has figures of its own.
    assert measured(sqlite_store, NAME, results, group="") is second


def test_without_patience_a_measurement_is_pending(sqlite_store):
    results = Measurements(sqlite_store, BackgroundCache(at_once=1))
    dataset = fill(sqlite_store)
    assert isinstance(results.measure(dataset, patience=0), Pending)
    assert measured(sqlite_store, NAME, results) is results.measure(dataset, patience=0).result


def test_differences_are_paired_and_of_the_same_mode_and_errors(sqlite_store, results):
    fill(sqlite_store)
    found = measured(sqlite_store, NAME, results)
    minus = results.minus(found, "baseline:constant", patience=60)
    value = minus["one_mind", Mode.OFFLINE, Errors.INVALID].differences["step_auc"]
    # An AUC without information is one half.
    auc = row_of(found.evaluation, Mode.OFFLINE).measured["step_auc"].number
    assert value.number == pytest.approx(auc - 0.5)
    assert value.low <= value.number <= value.high
    assert ("baseline:constant", Mode.OFFLINE, Errors.INVALID) not in minus
    assert results.minus(found, "nobody", patience=60) == {}


@pytest.mark.parametrize("mode", [Mode.OFFLINE, Mode.ONLINE])
def test_an_excerpt_is_made_once(sqlite_store, results, mode):
    fill(sqlite_store)
    found = measured(sqlite_store, NAME, results)
    excerpt = results.excerpt(found, mode, Errors.INVALID, patience=60)
    assert results.excerpt(found, mode, Errors.INVALID).result is excerpt.result
    assert excerpt.result.find_table(f"three-way-invalid-{mode}") is not None


def test_a_large_dataset_is_refused(sqlite_store, results):
    large = replace(fill(sqlite_store), traces=LARGEST + 1, name="my set")
    with refused():
        results.measure(large)


def test_groups_are_measured_by_themselves(sqlite_store, results):
    labels = (["pos", "neg", "pos"], ["pos", "pos", "pos"], ["neg", "pos", "pos"])
    made = [
        Trace.of(f"q{i}", ["s"] * 3, golds, id=str(i), meta={"family": "ab"[i % 2]})
        for i, golds in enumerate(labels)
    ]
    traces = add(sqlite_store, made, dataset="groups")
    fill(sqlite_store)
    one_mind = evaluators_of(sqlite_store, find_dataset(sqlite_store, NAME).id)[0]
    save_judgments(sqlite_store, one_mind.id, [judge(trace, "offline") for trace in traces])
    whole, part = measured(sqlite_store, "groups", results), measured(sqlite_store, "groups", results, group="a")
    assert whole.groups == part.groups == ["a", "b"]
    assert (whole.evaluation.traces, part.evaluation.traces) == (3, 2)
    assert np.count_nonzero([row.evaluator == "one_mind" for row in part.evaluation.rows])
