import pytest

from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, get_trace, iterate_traces, list_datasets
from stepsight.storage.traces.writer import SAVED, save_trace
from tests.messages import refused
from tests.storage.samples import CLEAN, ERROR, MISSING


def test_a_saved_trace_is_in_the_dataset_for_such(store):
    saved = save_trace(store, MISSING)
    assert saved.new
    assert (saved.trace.dataset, saved.trace.steps, saved.trace.problem) == (SAVED, MISSING.steps, MISSING.problem)
    assert saved.trace.id == MISSING.digest[:16]
    assert get_trace(store, saved.trace.trace_id) == saved.trace


def test_the_same_trace_twice_is_one(store):
    first, second = save_trace(store, MISSING), save_trace(store, MISSING)
    assert (first.new, second.new) == (True, False)
    assert first.trace == second.trace
    save_trace(store, CLEAN)
    assert find_dataset(store, SAVED).traces == 2
    assert [trace.problem for trace in iterate_traces(store, first.trace.dataset_id)] == [
        MISSING.problem,
        CLEAN.problem,
    ]


def test_gold_makes_another_trace_and_another_dataset_another_copy(store):
    bare = type(ERROR).of(ERROR.problem, [step.substeps for step in ERROR.steps])
    save_trace(store, ERROR)
    assert save_trace(store, bare).new
    assert save_trace(store, ERROR, "mine").new
    assert {dataset.name: dataset.traces for dataset in list_datasets(store)} == {SAVED: 2, "mine": 1}


def test_an_imported_dataset_is_left_as_it_is(store, tmp_path):
    path = tmp_path / "plain.jsonl"
    path.write_text('{"id": "1", "problem": "q", "steps": ["a"]}\n')
    import_file(store, "jsonl", path, "plain")
    with refused():
        save_trace(store, MISSING, "plain")
    assert find_dataset(store, "plain").traces == 1


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "x" * 201])
def test_an_invalid_name_is_refused(store, name):
    with refused():
        save_trace(store, MISSING, name)
    assert list_datasets(store) == []
