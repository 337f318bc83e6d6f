import json

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Outputs, StepScores
from stepsight.storage.database.store import Store
from stepsight.storage.exports.judgment_rows import COLUMNS, judgment_rows
from stepsight.storage.exports.trace_lines import trace_lines
from stepsight.storage.importers import find_kind, parse_row
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import StoredTrace
from tests.storage.samples import ERROR, FIRST_ERROR, add, evaluator, judge, many

SAID = {
    "percent": (Outputs.VALIDITY, [[0.4, 0, 0.6], [0.75, 0, 0.25], [0, 0, 1], [0, 0, 0]], None, ""),
    "words": (Outputs.VERDICT, [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]], 0.0, "Step 2."),
    "number": (Outputs.SOLUTION, [[0, 0, 0]] * 4, 0.25, ""),
    "three": (Outputs.THREE_WAY, [[0.1, 0.2, 0.7], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0, 0, 0]], None, ""),
}


def say(store: Store, trace: StoredTrace, name: str) -> int:
    outputs, rows, solution, why = SAID[name]
    row = register_evaluator(
        store, name=name, fingerprint=f"of {name}", format="x", attention="x", info={"outputs": outputs.value}
    )
    said = Judgment(trace, Mode.OFFLINE, StepScores(np.array(rows, np.float32)), solution, why)
    save_judgments(store, row.id, [said])
    return row.id


def columns(rows: list, *names: str) -> list[tuple]:
    return [tuple(row[name] for name in names) for row in rows]


def test_every_substep_has_a_row_and_what_is_not_said_is_empty(store: Store) -> None:
    (trace,) = add(store, [FIRST_ERROR])
    ids = {name: say(store, trace, name) for name in SAID}
    rows = {name: list(judgment_rows(store, [trace.trace_id], [id])) for name, id in ids.items()}
    assert all(list(row) == list(COLUMNS) for found in rows.values() for row in found)
    assert columns(rows["three"], "dataset", "trace", "step", "substep", "gold", "mode") == [
        ("sums", "first", 1, 1, "valid", "offline"),
        ("sums", "first", 2, 1, "neg", "offline"),
        ("sums", "first", 2, 2, "neg", "offline"),
        ("sums", "first", 3, 1, None, "offline"),
    ]
    numbers = ("neg", "neu", "pos", "validity", "redundancy", "verdict")
    assert columns(rows["three"], *numbers) == [
        (0.1, 0.2, 0.7, 0.9, 0.2, "redundant"),
        (0.8, 0.1, 0.1, 0.2, 0.1, "not valid"),
        (0.1, 0.1, 0.8, 0.9, 0.1, "valid"),
        (None,) * 6,
    ]
    assert columns(rows["percent"], *numbers)[:2] == [
        (None, None, None, 0.6, None, "valid"),
        (None, None, None, 0.25, None, "not valid"),
    ]
    assert columns(rows["words"], "validity", "verdict", "solution", "rationale") == [
        (None, "valid", 0.0, "Step 2."),
        (None, "not valid", 0.0, "Step 2."),
        (None, "valid", 0.0, "Step 2."),
        (None, None, 0.0, "Step 2."),
    ]
    assert columns(rows["number"], "step", "validity", "solution", "evaluator", "fingerprint") == [
        (None, None, 0.25, "number", "of number")
    ]
    assert len(list(judgment_rows(store, [trace.trace_id]))) == 3 * 4 + 1


def test_a_hindsight_judgment_has_rows_of_both_modes_and_stands_for_the_others(store: Store) -> None:
    (trace,) = add(store, [ERROR])
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, "hindsight"), judge(trace, "offline", 9)])
    rows = list(judgment_rows(store, [trace.trace_id]))
    hindsight = judge(trace, "hindsight").hindsight
    assert hindsight is not None
    assert [row["mode"] for row in rows] == ["online"] * 3 + ["offline"] * 3
    both = [*hindsight.online.validity, *hindsight.offline.validity]
    assert [row["validity"] for row in rows] == [pytest.approx(float(value), abs=1e-6) for value in both]


def test_judgments_of_another_version_of_a_trace_are_left_out(store: Store) -> None:
    (trace,) = add(store, [FIRST_ERROR])
    say(store, trace, "three")
    with store.write() as session:
        session.connection().exec_driver_sql("UPDATE traces SET digest = 'other'")
        session.connection().exec_driver_sql("UPDATE judgments SET trace_digest = 'earlier'")
    assert list(judgment_rows(store, [trace.trace_id])) == []


def test_rows_come_in_the_order_asked_for_over_many_batches(store: Store) -> None:
    stored = add(store, many(450))
    mini = evaluator(store)
    save_judgments(store, mini.id, (judge(trace, "offline") for trace in stored))
    backwards = [trace.trace_id for trace in reversed(stored)]
    assert [row["trace"] for row in judgment_rows(store, backwards)] == [trace.id for trace in reversed(stored)]


def test_traces_are_written_so_that_they_can_be_imported_gold_and_all(store: Store) -> None:
    stored = add(store)
    lines = b"".join(trace_lines(store, [trace.trace_id for trace in stored])).splitlines()
    kind = find_kind("jsonl")
    again = [parse_row(kind, json.loads(line), f"row {n}") for n, line in enumerate(lines, 1)]
    assert [trace.digest for trace in again] == [trace.digest for trace in stored]
    assert [dict(trace.meta) for trace in again] == [dict(trace.meta) for trace in stored]
