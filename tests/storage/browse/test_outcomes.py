"""Pairs of outcomes, against what each evaluator's own columns say."""

import sqlite3
from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import event

from stepsight.core.judgment import Mode
from stepsight.core.metrics.first_error import Outcome
from stepsight.core.trace import Trace
from stepsight.storage.browse.browse import browse, list_matching
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.browse.outcomes import (
    BY_LENGTH,
    OutcomePairs,
    outcome_table,
    outcomes_by,
    pair_outcomes,
)
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset
from tests.messages import refused
from tests.storage.browse.test_browse import drawn
from tests.storage.samples import SAMPLES, add, evaluator, find_evaluator, judge

MANY = 2_100
"""More traces than are read at once."""
PUBLISHED = {"GPT-4": "gpt4", "ReasonEval": "reasoneval_wizardmath"}


@pytest.mark.parametrize(("errors", "unread"), [("invalid", 0), ("redundant", 2)])
def test_two_published_evaluators_are_paired_as_their_rows_are(sqlite_store, data, errors, unread):
    store, name = sqlite_store, f"mr-math-{errors}"
    import_file(store, name, data / f"mr-math/mr-math_{errors}_errors.json")
    for evaluator_, start in PUBLISHED.items():
        (path,) = (data / f"mr-math/scores/{errors}").glob(f"{start}*")
        import_scores(store, name, path, evaluator_)
    one, two = (find_evaluator(store, f"imported:{called}").id for called in ("ReasonEval", "GPT-4"))
    dataset = find_dataset(store, name)
    pairs = pair_outcomes(store, dataset.id, TraceFilter(evaluator=one, other=two))
    others = [row.other for row in browse(store, dataset.id, TraceFilter(evaluator=one, other=two)).rows]
    assert others == browse(store, dataset.id, TraceFilter(evaluator=two)).rows
    assert pairs is not None

    assert pairs.on_redundancy == (errors == "redundant")
    rows = [browse(store, dataset.id, TraceFilter(evaluator=who), limit=1000).rows for who in (one, two)]
    expected = Counter(
        (bool(mine.n_redundant) if errors == "redundant" else mine.first_error is not None, *both)
        for mine, theirs in zip(*rows, strict=True)
        if (both := (mine.mistake, theirs.mistake)) and all(both)
    )
    assert {
        (error, *pair): number for error in pairs.counts for pair, number in pairs.counts[error].items()
    } == expected
    assert pairs.unknown == unread
    # The sums that a page shows are those of the lists that they lead to.
    for mine in (True, False):
        for theirs in (True, False):
            words = {True: "right", False: "wrong"}
            where = TraceFilter(evaluator=one, other=two, mistake=words[mine], other_mistake=words[theirs])
            assert pairs.count(mine, theirs) == len(list_matching(store, dataset.id, where)) > 0
    gold = "error" if errors == "invalid" else "redundant"
    missed = TraceFilter(evaluator=one, other=two, mistake="missed", other_mistake="right", gold=gold)
    assert pairs.count(Outcome.MISSED, Outcome.RIGHT, (True,)) == len(list_matching(store, dataset.id, missed))


def test_other_conditions_hold_and_those_on_outcomes_do_not(sqlite_store):
    store = sqlite_store
    traces = add(store, SAMPLES)
    one, two = evaluator(store), evaluator(store, "other")
    for who in (one, two):
        save_judgments(store, who.id, [judge(trace, Mode.OFFLINE) for trace in traces])
    where = TraceFilter(evaluator=one.id, other=two.id)
    everything = pair_outcomes(store, traces[0].dataset_id, where)
    assert everything is not None
    # Both said the same; of the trace without gold nothing is known.
    assert [sum(everything.counts[error].values()) for error in (True, False)] == [2, 1]
    assert (everything.unknown, len(traces)) == (1, 4)
    assert all(mine == theirs for error in everything.counts for mine, theirs in everything.counts[error])
    narrowed = where.model_copy(update={"gold": "clean", "mistake": "missed", "other_mistake": "wrong"})
    assert pair_outcomes(store, traces[0].dataset_id, narrowed) == everything
    nothing = where.model_copy(update={"text": "no such text"})
    assert pair_outcomes(store, traces[0].dataset_id, nothing) == OutcomePairs({True: {}, False: {}}, 0)


@pytest.mark.parametrize("field", ["kind", "level", BY_LENGTH])
def test_outcomes_by_a_field_are_those_of_the_lists_that_their_conditions_select(sqlite_store, field):
    # `level` has more values than are listed one by one, and `kind` two in some traces.
    made = [
        replace(trace, meta={"kind": ["x", "y"] if number % 5 else "y", "level": number / 4})
        for number, trace in enumerate(drawn(60))
    ]
    traces = add(sqlite_store, made)
    who = evaluator(sqlite_store)
    save_judgments(sqlite_store, who.id, [judge(trace, Mode.OFFLINE) for trace in traces])
    dataset_id = traces[0].dataset_id
    where = TraceFilter(evaluator=who.id)
    rows = outcomes_by(sqlite_store, dataset_id, where, field)
    assert len(rows) == {"kind": 2, "level": 4}.get(field, len(rows)) > 1
    for row in rows:
        for kind, count in row.counts.items():
            listed = where.model_copy(update={**row.conditions, "mistake": kind.value})
            assert count == len(list_matching(sqlite_store, dataset_id, listed))
    # A condition on what is counted by, and on the outcome counted, does not hold, and one on something else does.
    mine = {BY_LENGTH: {"length": "9"}}.get(field, {"meta": (f"{field}=9",)})
    narrowed = where.model_copy(update=mine | {"mistake": "missed"})
    assert repr(outcomes_by(sqlite_store, dataset_id, narrowed, field)) == repr(rows)
    assert outcomes_by(sqlite_store, dataset_id, where.model_copy(update={"text": "no such text"}), field) == []


def test_one_evaluator_has_no_pairs(sqlite_store):
    (trace, *_) = add(sqlite_store, SAMPLES)
    who = evaluator(sqlite_store)
    assert pair_outcomes(sqlite_store, trace.dataset_id, TraceFilter(evaluator=who.id)) is None
    assert pair_outcomes(sqlite_store, trace.dataset_id, TraceFilter(other=who.id)) is None
    with refused():
        browse(sqlite_store, trace.dataset_id, TraceFilter(evaluator=who.id, other_mistake="right"))


def test_a_table_of_outcomes_does_not_depend_on_how_many_values_a_statement_may_have(sqlite_store):
    traces = [Trace.of(f"What is {number}?", ["It is."], ["pos"], id=str(number)) for number in range(MANY)]
    ids = [trace.trace_id for trace in add(sqlite_store, traces)]

    @event.listens_for(sqlite_store.engine, "checkout")
    def limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, MANY - 1)

    columns, rows = outcome_table(sqlite_store, find_dataset(sqlite_store, "sums").id, TraceFilter(), ids, {})
    assert list(columns) == ["trace", "steps", "first_error", "redundant_steps"]
    assert [row["trace"] for row in rows] == [trace.id for trace in traces]
    assert rows[0] == {"trace": "0", "steps": 1, "first_error": None, "redundant_steps": 0}
