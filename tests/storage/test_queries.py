from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import event, text

from core.errors import UserError
from core.trace import Trace
from storage import queries
from storage.filters import Gold, TraceFilter
from storage.queries import (
    Neighbours,
    find_dataset,
    find_trace,
    get_trace,
    iterate_traces,
    list_datasets,
    neighbours,
    page_traces,
)
from storage.store import NotFoundError, Store
from tests.storage.samples import CLEAN, ERROR, SAMPLES, add, many


@contextmanager
def counted(store: Store) -> Iterator[list[str]]:
    """Collects the statements that are run."""
    statements: list[str] = []

    def collect(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if not statement.startswith(("BEGIN", "SELECT pg_catalog", "SHOW")):
            statements.append(statement)

    event.listen(store.engine, "before_cursor_execute", collect)
    yield statements
    event.remove(store.engine, "before_cursor_execute", collect)


def test_datasets_are_listed_by_name_with_their_counts(store: Store) -> None:
    add(store, SAMPLES, "b")
    add(store, [CLEAN], "a")
    add(store, [], "empty")
    found = list_datasets(store)
    assert [dataset.name for dataset in found] == ["a", "b", "empty"]
    # Of b: ERROR has 2 steps and 3 sub-steps, CLEAN 1 and 1, MISSING 2 and 2, FIRST_ERROR 3 and 4.
    counts = [(dataset.traces, dataset.errors, dataset.steps, dataset.substeps) for dataset in found]
    assert counts == [(1, 0, 1, 1), (4, 2, 8, 10), (0, 0, 0, 0)]
    assert find_dataset(store, "b") == found[1]


def test_listing_takes_one_query_however_many_datasets_there_are(store: Store) -> None:
    for name in "abcdef":
        add(store, [CLEAN], name)
    with counted(store) as statements:
        assert len(list_datasets(store)) == 6
    assert len(statements) == 1


def test_an_unknown_dataset_names_those_that_are_there(store: Store) -> None:
    with pytest.raises(NotFoundError, match=r"no dataset 'x'\. The store is empty; import a file first"):
        find_dataset(store, "x")
    add(store)
    with pytest.raises(NotFoundError, match=r"no dataset 'x'\. The store holds sums\."):
        find_dataset(store, "x")
    with pytest.raises(UserError, match="NUL byte"):
        find_dataset(store, "\x00")


def test_a_page_is_in_file_order_with_the_total(store: Store) -> None:
    add(store, many(25), "other")
    dataset_id = add(store, many(25))[0].dataset_id
    page = page_traces(store, dataset_id, limit=10, offset=20)
    assert [row.id for row in page.rows] == ["20", "21", "22", "23", "24"]
    assert page.total == 25
    row = page.rows[1]
    assert (row.position, row.problem, row.n_steps, row.n_substeps) == (21, "Problem 21", 1, 1)
    # 21 is divisible by three: its only step is wrong.
    assert (row.first_error, row.has_gold) == (0, True)
    assert get_trace(store, row.trace_id).id == "21"


def test_a_page_of_the_filtered(store: Store) -> None:
    dataset_id = add(store, many(25))[0].dataset_id
    page = page_traces(store, dataset_id, TraceFilter("clean"), limit=3, offset=2)
    # 1, 4, 7, 10, 13, … 22 have gold without an error.
    assert [row.id for row in page.rows] == ["7", "10", "13"]
    assert page.total == 8


@pytest.mark.parametrize(("limit", "offset"), [(10, 25), (10, 10**30), (0, 0), (10**30, 25)])
def test_a_page_beyond_the_end_is_empty(store: Store, limit: int, offset: int) -> None:
    dataset_id = add(store, many(25))[0].dataset_id
    page = page_traces(store, dataset_id, limit=limit, offset=offset)
    assert (page.rows, page.total) == ([], 25)


def test_negative_numbers_and_unknown_datasets(store: Store) -> None:
    with pytest.raises(ValueError, match="limit -1"):
        page_traces(store, 1, limit=-1)
    with pytest.raises(ValueError, match="offset -1"):
        page_traces(store, 1, offset=-1)
    assert page_traces(store, 99).total == 0


def test_a_trace_by_its_id_or_by_dataset_and_name(store: Store) -> None:
    stored = add(store)[0]
    assert stored.digest == ERROR.digest
    assert (stored.dataset, stored.position) == ("sums", 0)
    assert get_trace(store, stored.trace_id) == stored
    assert find_trace(store, "sums", "error") == stored


@pytest.mark.parametrize("trace_id", [0, -1, 99, 2**31, 10**30])
def test_no_such_trace(store: Store, trace_id: int) -> None:
    add(store)
    with pytest.raises(NotFoundError, match=f"no trace {trace_id}"):
        get_trace(store, trace_id)
    with pytest.raises(NotFoundError, match=f"no trace {trace_id}"):
        neighbours(store, trace_id)


def test_no_such_trace_in_the_dataset(store: Store) -> None:
    add(store)
    for dataset, id in (("sums", "none"), ("none", "error")):
        with pytest.raises(NotFoundError, match=f"no trace '{id}' in the dataset '{dataset}'"):
            find_trace(store, dataset, id)
    with pytest.raises(UserError, match="the id holds a NUL byte"):
        find_trace(store, "sums", "\x00")


def test_neighbours(store: Store) -> None:
    add(store, many(3), "other")
    ids = [trace.trace_id for trace in add(store, many(10))]
    assert neighbours(store, ids[0]) == Neighbours(None, ids[1])
    assert neighbours(store, ids[5]) == Neighbours(ids[4], ids[6])
    assert neighbours(store, ids[9]) == Neighbours(ids[8], None)
    # 0, 3, 6 and 9 have an error; 5 itself has none.
    assert neighbours(store, ids[5], TraceFilter("error")) == Neighbours(ids[3], ids[6])
    assert neighbours(store, ids[5], TraceFilter(text="step of 5")) == Neighbours(None, None)


def test_going_through_a_dataset_in_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add(store, many(3), "other")
    dataset_id = add(store, many(25))[0].dataset_id
    for size in (1, 5, 24, 25, 26):
        monkeypatch.setattr(queries, "BATCH", size)
        assert [trace.id for trace in iterate_traces(store, dataset_id)] == [str(i) for i in range(25)]
        errors = iterate_traces(store, dataset_id, TraceFilter("error"))
        assert [trace.id for trace in errors] == [str(i) for i in range(0, 25, 3)]
    assert list(iterate_traces(store, 99)) == []


def test_deleted_traces_do_not_stop_the_rest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset_id = add(store, many(25))[0].dataset_id
    with store.write() as session:
        session.execute(text("DELETE FROM traces WHERE position BETWEEN 3 AND 20"))
    monkeypatch.setattr(queries, "BATCH", 5)
    assert [trace.position for trace in iterate_traces(store, dataset_id)] == [0, 1, 2, 21, 22, 23, 24]


def test_a_batch_takes_a_fixed_number_of_queries(store: Store) -> None:
    dataset_id = add(store, many(400))[0].dataset_id
    with counted(store) as statements:
        assert len(list(iterate_traces(store, dataset_id))) == 400
    # Traces, sub-steps, steps, and where the dataset ends.
    assert len(statements) == 4


def test_no_connection_is_held_between_batches(store: Store) -> None:
    dataset_id = add(store, many(3))[0].dataset_id
    traces = iterate_traces(store, dataset_id)
    next(traces)
    assert store.engine.pool.checkedin() == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("gold", "index"),
    [
        ("any", "autoindex_traces_2"),
        ("error", "ix_traces_gold_error"),
        ("clean", "ix_traces_gold_clean"),
        ("missing", "ix_traces_gold_missing"),
    ],
)
def test_a_page_reads_an_index_in_order(sqlite_store: Store, gold: Gold, index: str) -> None:
    add(sqlite_store)
    with counted(sqlite_store) as statements:
        page_traces(sqlite_store, 1, TraceFilter(gold), limit=2)
    with sqlite_store.engine.connect() as connection:
        count, page = (
            connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", (1, 2, 0)[: statement.count("?")]).all()
            for statement in statements
        )
    assert len(page) == 1, "a second row would be a sort"
    assert f"{index} (dataset_id=?)" in page[0].detail
    assert "COVERING INDEX" in count[0].detail


def test_a_stored_trace_is_not_the_trace_it_was_made_of(store: Store) -> None:
    stored = add(store, [ERROR])[0]
    assert isinstance(stored, Trace)
    assert (stored.id, stored.digest) == (ERROR.id, ERROR.digest)
