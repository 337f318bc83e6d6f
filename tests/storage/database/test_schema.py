"""What the database itself refuses."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from stepsight.storage.database.schema import DatasetRow, JudgmentRow, StepRow, SubstepRow, TraceRow
from tests.cases import each
from tests.storage.samples import add, evaluator

TRACE = {
    "external_id": "x",
    "position": 9,
    "problem": "p",
    "digest": "d",
    "n_steps": 2,
    "n_substeps": 2,
    "first_error": None,
    "has_gold": False,
    "meta": {},
}
JUDGMENT = {"mode": "offline", "digest": "d", "derived": False, "scores": b""}


@each(
    "wrong",
    [
        {"external_id": "error"},
        {"position": 0},
        {"position": -1},
        {"n_steps": 0},
        {"n_substeps": 1},
        {"has_gold": True, "first_error": 2},
        {"has_gold": True, "first_error": -1},
        {"first_error": 1},
        {"dataset_id": 99},
    ],
)
def test_traces(store, wrong):
    dataset_id = add(store)[0].dataset_id
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(insert(TraceRow), TRACE | {"dataset_id": dataset_id} | wrong)


@each(
    "wrong",
    [
        {"label": 3, "valid": True},
        {"label": 0, "valid": True},
        {"label": 2, "valid": False},
        {"label": 1, "valid": None},
        {"trace_id": 99},
    ],
)
def test_steps(store, wrong):
    trace_id = add(store)[0].trace_id
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(
            insert(StepRow), {"trace_id": trace_id, "position": 9, "label": None, "valid": None} | wrong
        )


def test_a_substep_belongs_to_a_step(store):
    trace_id = add(store)[0].trace_id
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(insert(SubstepRow), {"trace_id": trace_id, "step": 9, "position": 0, "text": "t"})


@each(
    "wrong",
    [
        {"mode": "later"},
        {"mode": "hindsight"},
        {"dataset_id": 99},
        {"evaluator_id": 99},
        {"scores": None},
    ],
)
def test_judgments(store, wrong):
    trace = add(store)[0]
    ids = {"trace_id": trace.trace_id, "dataset_id": trace.dataset_id, "evaluator_id": evaluator(store).id}
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(insert(JudgmentRow), JUDGMENT | ids | wrong)


def test_a_moment_comes_back_in_utc(store):
    east = datetime(2024, 5, 1, 3, 30, tzinfo=timezone(timedelta(hours=5)))
    with store.write() as session:
        session.add(DatasetRow(name="d", kind="plain", source="", sha256="", created=east))
    with store.read() as session:
        created = session.scalars(select(DatasetRow.created)).one()
    # 03:30 at five hours east of Greenwich is 22:30 of the day before there.
    assert created == datetime(2024, 4, 30, 22, 30, tzinfo=UTC)
    assert created.utcoffset() == timedelta(0)
