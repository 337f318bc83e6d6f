"""Browsing a dataset: its traces filtered, counted by every filter's values, sorted, a page at a time.

The columns for filtering and sorting are read once (`storage.traces.columns`, `storage.browse.verdict_columns`) and
kept in memory until the store changes (`Store.cache`); the rows of the page are read on every request.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Ints
from stepsight.core.judgment import Mode
from stepsight.core.metrics.table import SILENT
from stepsight.storage.browse.filter_columns import BrowseColumns
from stepsight.storage.browse.filters import ANY, FILE_ORDER, Sort, TraceFilter
from stepsight.storage.browse.verdict_columns import MISTAKES
from stepsight.storage.database.schema import TraceRow, in_range
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.traces.queries import Neighbours, TraceSummary

Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class BrowseRow(TraceSummary):
    """A trace of a list. `group` is its class, "" for none. The scores are those of the filter's evaluator, None if
    missing; `validity` is in the filter's mode, `first_wrong` is the first step called wrong, 0-based, and
    `mistake` one of `MISTAKES` or ""."""

    group: str = ""
    validity: float | None = None
    online_validity: float | None = None
    offline_validity: float | None = None
    change: float | None = None
    first_wrong: int | None = None
    mistake: str = ""


@dataclass(frozen=True)
class BrowsePage:
    """Some rows of a list, with the total number. `counts` has, by field of the filter and its value, the number of
    traces with that value and the other conditions unchanged; those of the evaluator's fields exist if the filter
    names one. `loosened` has, for each condition that is set, by its field, the number of traces that meet all the
    others."""

    rows: list[BrowseRow]
    total: int
    counts: Counts
    loosened: Mapping[str, int]


def browse(
    store: Store,
    dataset_id: int,
    where: TraceFilter = ANY,
    sort: Sort = FILE_ORDER,
    limit: int = 50,
    offset: int = 0,
) -> BrowsePage:
    """The traces of a dataset from the `offset`-th of those in `where`, at most `limit`.

    An offset beyond the end, or an unknown dataset, gives no rows. Raises `UserError` if a condition or the order
    needs an evaluator and the filter names none, and `ValueError` on a negative number.
    """
    if limit < 0 or offset < 0:
        raise ValueError(f"limit {limit} and offset {offset}, expected none below 0")
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where, sort)
        matches = columns.match()
        order = columns.order(matches.chosen)
        rows = _rows(session, columns, order[offset : offset + limit])
        return BrowsePage(rows, len(order), matches.counts(), matches.loosened())


def list_matching(store: Store, dataset_id: int, where: TraceFilter = ANY, sort: Sort = FILE_ORDER) -> list[int]:
    """The database ids of all traces that `browse` would page through, in its order."""
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where, sort)
        trace_ids: list[int] = columns.traces.trace_ids[columns.order(columns.match().chosen)].tolist()
        return trace_ids


def neighbours(store: Store, trace_id: int, where: TraceFilter = ANY, sort: Sort = FILE_ORDER) -> Neighbours:
    """The traces before and after this one in its dataset, among those in `where` and in that order.

    The trace itself need not be in `where`: its neighbours are those of the place where it would be. Raises
    `NotFoundError`, and `UserError` as `browse` does.
    """
    with store.read() as session:
        dataset_id = session.scalar(select(TraceRow.dataset_id).where(TraceRow.id == in_range(trace_id)))
        if dataset_id is None:
            raise NotFoundError(f"There is no trace {trace_id}.")
        columns = BrowseColumns(store, session, dataset_id, where, sort)
        chosen = columns.match().chosen
        (place,) = columns.traces.places(np.array([trace_id]))
        chosen[place] = True
        order = columns.order(chosen)
        at = int(np.flatnonzero(order == place)[0])
        ids = columns.traces.trace_ids
        before = int(ids[order[at - 1]]) if at else None
        return Neighbours(before, int(ids[order[at + 1]]) if at + 1 < len(order) else None)


def _rows(session: Session, columns: BrowseColumns, places: Ints) -> list[BrowseRow]:
    """The rows of some traces, in order, except those deleted meanwhile."""
    ids = columns.traces.trace_ids[places].tolist()
    rows = {row.trace_id: row for row in session.execute(_summaries().where(TraceRow.id.in_(ids)))}
    return [
        BrowseRow(**rows[id]._mapping, **_values(columns, int(place)))
        for id, place in zip(ids, places, strict=True)
        if id in rows
    ]


def _values(columns: BrowseColumns, place: int) -> dict[str, Any]:
    """The fields of a row that come from columns."""
    group, verdicts, in_mode = int(columns.traces.group[place]), columns.verdicts, columns.in_mode
    values: dict[str, Any] = {"group": columns.traces.groups[group] if group != SILENT else ""}
    if verdicts is None or in_mode is None:
        return values
    mistake, wrong = int(in_mode.mistake[place]), int(in_mode.first_wrong[place])
    return values | {
        "validity": _number(in_mode.validity[place]),
        "online_validity": _number(verdicts[Mode.ONLINE].validity[place]),
        "offline_validity": _number(verdicts[Mode.OFFLINE].validity[place]),
        "change": _number(in_mode.change[place]),
        "first_wrong": None if wrong == SILENT else wrong,
        "mistake": "" if mistake == SILENT else MISTAKES[mistake].value,
    }


def _number(value: np.float32) -> float | None:
    return None if np.isnan(value) else float(value)


def _summaries() -> Select[Any]:
    same = ("position", "problem", "n_steps", "n_substeps", "first_error", "has_gold", "n_redundant")
    return select(
        TraceRow.id.label("trace_id"),
        TraceRow.external_id.label("id"),
        *[getattr(TraceRow, name) for name in same],
    )
