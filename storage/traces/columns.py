"""The columns of a dataset's traces, held in memory for filtering and sorting."""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session

from stepsight.core.arrays import AnyInts, Floats64, Ints
from stepsight.core.metrics.table import SILENT, thirds
from stepsight.storage.database.labelling_schema import ItemRow, SlotRow
from stepsight.storage.database.schema import StepRow, TraceRow
from stepsight.storage.database.store import read_columns

# The traces read at once; every database allows an IN with this many keys.
_MOST = 2_000
GOLD = ("error", "clean", "missing")
GROUP_KEYS = ("classification", "question_type", "family", "generator")


@dataclass(frozen=True, eq=False)
class TraceColumns:
    """The `n` traces of a dataset in file order, as columns of shape (n,).

    - `trace_ids` are the database ids.
    - `digests` are the first 16 hexadecimal digits of the traces' digests.
    - `steps` and `substeps` are the counts of steps and of sub-steps.
    - `first_error` is the 0-based index of the first gold error, or `SILENT` if there is none.
    - `gold` is an index into `GOLD`.
    - `redundant` is True if the gold labels call a step redundant.
    - `group` is the index in `groups` of the benchmark's class of the trace, or `SILENT` if it has none.
    - `third` says in which third of the solution the first error is, as an index into
      `core.metrics.table.Third`, or `SILENT` if there is none.
    """

    trace_ids: Ints
    digests: NDArray[np.bytes_]
    steps: NDArray[np.int32]
    substeps: Ints
    first_error: NDArray[np.int32]
    gold: NDArray[np.int8]
    redundant: NDArray[np.bool_]
    group: NDArray[np.int32]
    groups: tuple[str, ...]
    third: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.trace_ids)

    @property
    def nbytes(self) -> int:
        arrays = (getattr(self, column.name) for column in fields(self))
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def places(self, trace_ids: Ints) -> Ints:
        """Return the index of each given trace in the columns, or `SILENT` if the trace is not in this dataset."""
        if not len(self):
            return np.full(len(trace_ids), SILENT)
        at = np.searchsorted(self.trace_ids, trace_ids, sorter=self._by_id)
        places = self._by_id[np.minimum(at, len(self) - 1)]
        return np.where(self.trace_ids[places] == trace_ids, places, SILENT)

    @cached_property
    def _by_id(self) -> Ints:
        return np.argsort(self.trace_ids, kind="stable")


def trace_group() -> ColumnElement[str]:
    """Return the SQL expression for the benchmark's class of a trace, or "" if the trace has none."""
    return func.coalesce(*[TraceRow.meta[key].as_string() for key in GROUP_KEYS], "")


def read_relabelled(session: Session, dataset_id: int) -> Ints:
    """Return, in ascending order, the ids of a dataset's traces that have a submitted annotation."""
    submitted = exists().where(SlotRow.item_id == ItemRow.id, SlotRow.state == "submitted")
    statement = (
        select(ItemRow.trace_id)
        .join(TraceRow, TraceRow.id == ItemRow.trace_id)
        .where(TraceRow.dataset_id == dataset_id, submitted)
        .distinct()
        .order_by(ItemRow.trace_id)
    )
    return np.array(session.scalars(statement).all(), np.int64)


def read_trace_columns(session: Session, dataset_id: int) -> TraceColumns:
    """Read the columns of a dataset's traces. Memory use grows with the number of traces."""
    row = TraceRow
    numbers = (
        row.id,
        row.n_steps,
        row.n_substeps,
        func.coalesce(row.first_error, SILENT),
        row.has_gold,
        row.n_redundant,
    )
    statement = select(*numbers, func.substr(row.digest, 1, 16), trace_group())
    columns = read_columns(session, statement.where(row.dataset_id == dataset_id).order_by(row.position))
    ids, steps, substeps, errors, with_gold, redundant, digests, groups = columns
    names = {name: place for place, name in enumerate(dict.fromkeys(str(group) for group in groups if group))}
    first_error, counts = np.array(errors, np.int32), np.array(steps, np.int32)
    has_error = first_error != SILENT
    third = np.where(has_error, thirds(first_error.astype(np.int64), counts.astype(np.int64)), SILENT)
    return TraceColumns(
        trace_ids=np.array(ids, np.int64),
        digests=np.array(digests, "S16"),
        steps=counts,
        substeps=np.array(substeps, np.int64),
        first_error=first_error,
        gold=np.where(has_error, 0, np.where(np.array(with_gold, np.bool_), 1, 2)).astype(np.int8),
        redundant=np.array(redundant, np.int64) > 0,
        group=np.array([names.get(str(group), SILENT) for group in groups], np.int32),
        groups=tuple(names),
        third=third.astype(np.int8),
    )


def read_shares(session: Session, trace_ids: Ints, counts: AnyInts) -> Floats64 | None:
    """Return the share of each step of the given traces, trace by trace, or None if no step has one. It is NaN for
    a step without a share."""
    if not session.scalar(select(exists().where(StepRow.share.is_not(None)))):
        return None
    first = dict(zip(trace_ids.tolist(), (np.cumsum(counts) - counts).tolist(), strict=True))
    share = np.full(int(counts.sum()), np.nan)
    for begin in range(0, len(trace_ids), _MOST):
        ids = trace_ids[begin : begin + _MOST].tolist()
        statement = select(StepRow.trace_id, StepRow.position, StepRow.share)
        statement = statement.where(StepRow.share.is_not(None), StepRow.trace_id.in_(ids))
        for trace_id, position, value in session.connection().execute(statement):
            share[first[trace_id] + position] = value
    return None if np.isnan(share).all() else share
