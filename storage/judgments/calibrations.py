"""Calibrated thresholds of evaluators: a history of which the newest is in force."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from stepsight.core.scores import Thresholds
from stepsight.storage.database.schema import CalibrationRow, EvaluatorRow, TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import own_thresholds
from stepsight.storage.traces.queries import Dataset


class Threshold(StrEnum):
    """Each is chosen by itself; the names are the fields of `Thresholds`."""

    VALIDITY = "validity"
    REDUNDANCY = "redundancy"


@dataclass(frozen=True)
class ThresholdOrigin:
    """The dataset that a threshold was chosen on, and how; `dataset_id` is None where it is deleted."""

    dataset_id: int | None
    dataset: str
    info: Mapping[str, Any]
    created: datetime


@dataclass(frozen=True)
class Calibration:
    """The thresholds in force, and the origin of each that was chosen; the other is the evaluator's own."""

    thresholds: Thresholds
    origins: Mapping[Threshold, ThresholdOrigin] = field(default_factory=dict)

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets that a threshold was chosen on, each once."""
        return tuple(dict.fromkeys(origin.dataset for origin in self.origins.values()))


def save_calibration(
    store: Store, evaluator_id: int, dataset: Dataset, chosen: Threshold, value: float, info: Mapping[str, Any]
) -> Calibration:
    """Put one threshold in force, chosen on a dataset; the other stays what it was, and the history is kept."""
    with store.write() as session:
        before = thresholds_in_force(session, evaluator_id)
        session.add(
            CalibrationRow(
                evaluator_id=evaluator_id,
                dataset_id=dataset.id,
                dataset=dataset.name,
                info=dict(info) | {"threshold": chosen.value},
                **(vars(before) | {chosen.value: value}),
            )
        )
    calibration = find_calibration(store, evaluator_id)
    assert calibration is not None
    return calibration


def find_calibration(store: Store, evaluator_id: int) -> Calibration | None:
    """The thresholds in force, None where none was chosen."""
    with store.read() as session:
        rows = session.scalars(_history(evaluator_id)).all()
    if not rows:
        return None
    origins: dict[Threshold, ThresholdOrigin] = {}
    for row in rows:
        chosen = Threshold(row.info["threshold"])
        origins.setdefault(chosen, ThresholdOrigin(row.dataset_id, row.dataset, row.info, row.created))
    return Calibration(Thresholds(rows[0].validity, rows[0].redundancy), origins)


def thresholds_in_force(session: Session, evaluator_id: int) -> Thresholds:
    """Those of the newest calibration of an evaluator, else its own."""
    newest = session.scalars(_history(evaluator_id).limit(1)).one_or_none()
    if newest:
        return Thresholds(newest.validity, newest.redundancy)
    info = session.scalars(select(EvaluatorRow.info).where(EvaluatorRow.id == evaluator_id)).one_or_none()
    return own_thresholds(info or {})


def find_thresholds(store: Store, evaluator_id: int) -> Thresholds:
    """`thresholds_in_force` in a transaction of its own."""
    with store.read() as session:
        return thresholds_in_force(session, evaluator_id)


def count_shared(store: Store, dataset_id: int, other_id: int) -> int:
    """How many traces of a dataset are in the other one too: the same problem, steps and gold."""
    digests = select(TraceRow.digest).where(TraceRow.dataset_id == other_id)
    shared = TraceRow.dataset_id == dataset_id, TraceRow.digest.in_(digests)
    counted = select(func.count()).select_from(TraceRow).where(*shared)
    with store.read() as session:
        return session.scalar(counted) or 0


def _history(evaluator_id: int) -> Select[CalibrationRow]:
    """Newest first."""
    return (
        select(CalibrationRow).where(CalibrationRow.evaluator_id == evaluator_id).order_by(CalibrationRow.id.desc())
    )
