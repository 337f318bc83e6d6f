from contextlib import contextmanager

from sqlalchemy import event, text

from stepsight.core.trace import Step, Trace
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.traces import queries
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import (
    count_siblings,
    find_dataset,
    find_trace,
    get_trace,
    iterate_traces,
    list_datasets,
    trace_batches,
)
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import CLEAN, ERROR, SAMPLES, add, many, write_lines


@contextmanager
def counted(store):
    """Collects the statements that are run."""
    statements: list[str] = []

    def collect(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if not statement.startswith(("BEGIN", "SELECT pg_catalog", "SHOW")):
            statements.append(statement)

    event.listen(store.engine, "before_cursor_execute", collect)
    yield statements
    event.remove(store.engine, "before_cursor_execute", collect)


def test_datasets_are_listed_by_name_with_their_counts(store):
    add(store, SAMPLES, "b")
    add(store, [Trace("a", "?", (Step(("1",), share=0.5), Step(("2",), share=0.25)))], "a")
    add(store, [], "empty")
    found = list_datasets(store)
    assert [dataset.name for dataset in found] == ["a", "b", "empty"]
    # Of b: ERROR has 2 steps and 3 sub-steps, CLEAN 1 and 1, MISSING 2 and 2, FIRST_ERROR 3 and 4.
    counts = [(dataset.traces, dataset.errors, dataset.steps, dataset.substeps) for dataset in found]
    assert counts == [(1, 0, 2, 2), (4, 2, 8, 10), (0, 0, 0, 0)]
    assert [dataset.soft for dataset in found] == [1, 0, 0]
    assert find_dataset(store, "b") == found[1]


def test_listing_takes_one_query_however_many_datasets_there_are(store):
    for name in "abcdef":
        add(store, [CLEAN], name)
    with counted(store) as statements:
        assert len(list_datasets(store)) == 6
    assert len(statements) == 1


def test_an_unknown_dataset_names_those_that_are_there(store):
    with refused(NotFoundError):
        find_dataset(store, "x")
    add(store)
    with refused(NotFoundError):
        find_dataset(store, "x")
    with refused():
        find_dataset(store, "\x00")


def test_a_trace_by_its_id_or_by_dataset_and_name(store):
    stored = add(store)[0]
    assert stored.digest == ERROR.digest
    assert (stored.dataset, stored.position) == ("sums", 0)
    assert get_trace(store, stored.trace_id) == stored
    assert find_trace(store, "sums", "error") == stored


@each("trace_id", [0, -1, 99, 2**31, 10**30])
def test_no_such_trace(store, trace_id):
    add(store)
    with refused(NotFoundError):
        get_trace(store, trace_id)


def test_no_such_trace_in_the_dataset(store):
    add(store)
    for dataset, id in (("sums", "none"), ("none", "error")):
        with refused(NotFoundError):
            find_trace(store, dataset, id)
    with refused():
        find_trace(store, "sums", "\x00")


def test_going_through_a_dataset_in_batches(store, monkeypatch):
    add(store, many(3), "other")
    dataset_id = add(store, many(25))[0].dataset_id
    for size in (1, 5, 24, 25, 26):
        monkeypatch.setattr(queries, "BATCH", size)
        assert [trace.id for trace in iterate_traces(store, dataset_id)] == [str(i) for i in range(25)]
    assert list(iterate_traces(store, 99)) == []


def test_deleted_traces_do_not_stop_the_rest(store, monkeypatch):
    dataset_id = add(store, many(25))[0].dataset_id
    with store.write() as session:
        session.execute(text("DELETE FROM traces WHERE position BETWEEN 3 AND 20"))
    monkeypatch.setattr(queries, "BATCH", 5)
    assert [trace.position for trace in iterate_traces(store, dataset_id)] == [0, 1, 2, 21, 22, 23, 24]


def test_a_batch_takes_a_fixed_number_of_queries(store):
    dataset_id = add(store, many(400))[0].dataset_id
    with counted(store) as statements:
        assert len(list(iterate_traces(store, dataset_id))) == 400
    # How long each is, traces, sub-steps, steps, and where the dataset ends.
    assert len(statements) == 5


def test_of_long_traces_fewer_are_held_at_once(store, monkeypatch):
    monkeypatch.setattr(queries, "_SUBSTEPS", 25)
    long = [Trace.of("A problem.", [f"Step {step} of {i}." for step in range(10)], id=f"t{i}") for i in range(7)]
    stored = add(store, long)
    ids = [trace.trace_id for trace in stored]
    assert [len(batch) for batch in trace_batches(store, ids)] == [2, 2, 2, 1]
    assert [trace.id for trace in iterate_traces(store, stored[0].dataset_id)] == [trace.id for trace in long]


def test_no_connection_is_held_between_batches(store):
    dataset_id = add(store, many(3))[0].dataset_id
    traces = iterate_traces(store, dataset_id)
    next(traces)
    # Those that lie idle were used before.
    assert store.engine.pool.checkedin() >= 1  # type: ignore[attr-defined]
    assert store.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_a_stored_trace_is_not_the_trace_it_was_made_of(store):
    stored = add(store, [ERROR])[0]
    assert isinstance(stored, Trace)
    assert (stored.id, stored.digest) == (ERROR.id, ERROR.digest)


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
