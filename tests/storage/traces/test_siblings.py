"""Traces that solve the same problem."""

from stepsight.core.trace import Trace
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import (
    count_siblings,
    find_dataset,
    iterate_traces,
)
from tests.storage.samples import add, write_lines


def test_siblings_have_the_same_problem_in_the_same_dataset(store):
    add(store, [Trace.of("other", ["x"], id="z")], "elsewhere")
    problems = ("same", "other", "same", "Same")
    stored = add(store, [Trace.of(problem, [f"{i}"], id=f"{i}") for i, problem in enumerate(problems)], "here")
    assert [count_siblings(store, one) for one in stored] == [2, 1, 2, 1]


def test_traces_with_one_text_and_other_ids_of_the_problem_are_no_siblings(store):
    named = (
        {"problem_id": "p"},
        {"problem_id": "q"},
        {},
        {"problem_id": "p"},
        {"problem_id": 7},
        {"problem_id": "7"},
    )
    traces = [Trace.of("same", ["x"], id=f"{i}", meta=meta) for i, meta in enumerate(named)]
    stored = add(store, traces, "here")
    assert [count_siblings(store, one) for one in stored] == [2, 1, 1, 2, 2, 2]


def test_a_trace_that_is_added_is_a_sibling_too(store, tmp_path):
    rows = [{"id": f"{i}", "problem": "same", "steps": ["x"], "labels": [None]} for i in range(3)]
    for count in (1, 3):
        import_file(store, "jsonl", write_lines(tmp_path / f"{count}.jsonl", rows[:count]), "d")
        (trace, *_) = iterate_traces(store, find_dataset(store, "d").id)
        assert count_siblings(store, trace) == count
