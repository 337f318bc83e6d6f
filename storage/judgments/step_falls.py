"""Lists of the steps of a dataset, sorted by the largest fall in a later step's validity when the step is left out.

A step carries its solution if leaving it out lowers the validity of a later sub-step by `core.left_out.NOTABLE` or
more. Otherwise it is unused. The last sub-step of a trace is in neither list, because nothing follows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from sqlalchemy import Select, delete, exists, func, insert, select, true
from sqlalchemy.orm import Session

from stepsight.core.left_out import NOTABLE, Dependence, Gap, LeaveOneOut
from stepsight.storage.database.schema import DatasetRow, EvaluatorRow, LeftOutScoresRow, StepFallRow, TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import is_fresh

MOST_COUNTED = 10_000
"""The largest number of steps that `count_falls` counts, so that it takes as long for any dataset."""

_NOTABLE = float(np.float32(NOTABLE))


class Need(StrEnum):
    """The two lists of steps. If a step in `carries` is left out, the validity of a later step falls notably. If a
    step in `unused` is left out, no later step's does."""

    CARRIES = "carries"
    UNUSED = "unused"


@dataclass(frozen=True)
class StepFall:
    """The largest fall in the validity of a later sub-step when the sub-step with the 0-based index `step` is left
    out. The fall is computed by `core.left_out.Dependence.largest_falls`."""

    trace_id: int
    step: int
    fall: float


def save_falls(session: Session, key: dict[str, Any], dataset_id: int, scores: LeaveOneOut) -> None:
    """Compute the falls from a trace's scores and store them, replacing earlier ones. `key` holds the evaluator,
    trace and gap that identify the scores."""
    falls = Dependence(scores, 0.5).largest_falls()
    rows = [key | {"dataset_id": dataset_id, "step": step, "fall": float(falls[step])} for step in scores.known]
    session.execute(
        delete(StepFallRow).where(*(getattr(StepFallRow, name) == value for name, value in key.items()))
    )
    if rows:
        session.execute(insert(StepFallRow), rows)


def list_falls(
    store: Store, dataset_id: int, evaluator_id: int, gap: Gap, need: Need, limit: int, offset: int = 0
) -> list[StepFall]:
    """Return one page of the list `need`. Steps in `carries` are sorted by the largest fall first, steps in
    `unused` by the smallest first."""
    columns = StepFallRow.trace_id, StepFallRow.step, StepFallRow.fall
    # All in one direction, in which an index has them.
    order = [column.desc() if need == Need.CARRIES else column.asc() for column in (columns[2], *columns[:2])]
    wanted = _falls(dataset_id, evaluator_id, gap, need).with_only_columns(*columns)
    with store.read() as session:
        return [StepFall(*row) for row in session.execute(wanted.order_by(*order).limit(limit).offset(offset))]


def count_falls(store: Store, dataset_id: int, evaluator_id: int, gap: Gap, need: Need) -> int:
    """Return the number of steps in the list `need`, or `MOST_COUNTED` if there are more."""
    some = _falls(dataset_id, evaluator_id, gap, need).with_only_columns(StepFallRow.step).limit(MOST_COUNTED)
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(some.subquery())) or 0


def left_out_evaluators(store: Store, gap: Gap | None = None) -> dict[int, dict[int, str]]:
    """Return, for each dataset id, the evaluators that have scored traces of the dataset with steps left out.

    Each value maps evaluator ids to names, sorted by name. If `gap` is given, only scores with this gap count.
    """
    conditions = [LeftOutScoresRow.dataset_id == DatasetRow.id, LeftOutScoresRow.evaluator_id == EvaluatorRow.id]
    if gap is not None:
        conditions.append(LeftOutScoresRow.gap == gap.value)
    pairs = select(DatasetRow.id, EvaluatorRow.id, EvaluatorRow.name).join(EvaluatorRow, true())
    found: dict[int, dict[int, str]] = {}
    with store.read() as session:
        ordered = pairs.where(exists().where(*conditions)).order_by(EvaluatorRow.name, EvaluatorRow.id)
        for dataset_id, evaluator_id, name in session.execute(ordered):
            found.setdefault(dataset_id, {})[evaluator_id] = name
    return found


def gaps_of(store: Store, dataset_id: int, evaluator_id: int) -> Sequence[Gap]:
    """Return the gaps for which an evaluator has scores of a dataset with steps left out."""
    with store.read() as session:
        return [
            gap
            for gap in Gap
            if session.scalar(
                select(
                    exists().where(
                        LeftOutScoresRow.dataset_id == dataset_id,
                        LeftOutScoresRow.evaluator_id == evaluator_id,
                        LeftOutScoresRow.gap == gap.value,
                    )
                )
            )
        ]


def _falls(dataset_id: int, evaluator_id: int, gap: Gap, need: Need) -> Select[Any]:
    """Select the falls in the list `need`, ignoring traces that have changed since they were scored."""
    scores, falls = LeftOutScoresRow, StepFallRow
    same = (scores.evaluator_id == falls.evaluator_id) & (scores.trace_id == falls.trace_id)
    needed = falls.fall >= _NOTABLE if need == Need.CARRIES else falls.fall < _NOTABLE
    return (
        select(falls)
        .join(scores, same & (scores.gap == falls.gap))
        .join(TraceRow, TraceRow.id == falls.trace_id)
        .where(falls.dataset_id == dataset_id, falls.evaluator_id == evaluator_id, falls.gap == gap.value)
        .where(needed, falls.step < TraceRow.n_substeps - 1, is_fresh(scores.trace_digest, TraceRow.digest))
    )
