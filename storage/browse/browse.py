"""Browsing a dataset: filtering its traces, counting them for every filter option, sorting and paging them; and
counting the values of a metadata field, or the scores of an evaluator, among the matching traces.

The columns used for filtering and sorting (`storage.traces.columns`, `storage.browse.columns`) are read
once and kept in memory until the store changes (`Store.cache`). The rows of a page are read on every request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Ints
from stepsight.core.judgment import Mode
from stepsight.core.metrics.table import SILENT
from stepsight.storage.browse.columns import BINS, OUTCOME_NAMES, SOLUTION_GOLD, STEP_GOLD, VerdictColumns
from stepsight.storage.browse.filter_columns import BrowseColumns
from stepsight.storage.browse.filters import ANY, FILE_ORDER, Sort, TraceFilter
from stepsight.storage.browse.metadata import MetaField, read_fields
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import read_versions, thresholds_in_force

Counts = Mapping[str, Mapping[str, int]]
MOST_SHOWN = 50
"""The number of values of a field that are offered."""


@dataclass(frozen=True)
class BrowseRow:
    """A trace as a row of a list, without its steps.

    `first_error` is 0-based. `group` is the benchmark's class of the trace, or "" if it has none. `validity` is the
    solution validity that the filter's evaluator gave in the filter's mode, and `redundancy` the solution
    redundancy. Scores that are missing are None. `change` is the largest absolute retroactive change. `first_wrong`
    is the 0-based index of the first step that the evaluator calls wrong. `mistake` is one of `OUTCOME_NAMES`, or
    "" if unknown. `other` is the same row with the scores of the evaluator that the filter's one is compared with.
    """

    trace_id: int
    id: str
    position: int
    problem: str
    n_steps: int
    n_substeps: int
    first_error: int | None
    has_gold: bool
    n_redundant: int
    group: str = ""
    validity: float | None = None
    online_validity: float | None = None
    offline_validity: float | None = None
    redundancy: float | None = None
    online_redundancy: float | None = None
    offline_redundancy: float | None = None
    change: float | None = None
    first_wrong: int | None = None
    mistake: str = ""
    other: "BrowseRow | None" = None


@dataclass(frozen=True)
class BrowsePage:
    """One page of a list of traces. `total` is the number of traces in the whole list.

    `counts[field][value]` is the number of traces that the filter would match if `field` were set to `value`.
    Fields about verdicts are counted only if the filter names an evaluator. `loosened[condition]` is the number of
    traces that the filter would match if that condition were dropped. Outcomes concern redundant errors if
    `on_redundancy` is True.
    """

    rows: list[BrowseRow]
    total: int
    counts: Counts
    loosened: Mapping[str, int]
    on_redundancy: bool = False


def browse(
    store: Store,
    dataset_id: int,
    where: TraceFilter = ANY,
    sort: Sort = FILE_ORDER,
    limit: int = 50,
    offset: int = 0,
) -> BrowsePage:
    """Return one page of the traces of a dataset that match `where`: at most `limit` traces from index `offset` on.

    The page is empty if `offset` is past the end or the dataset does not exist. Raises `UserError` if a condition
    or the sort order needs an evaluator and the filter names none, and `ValueError` if `limit` or `offset` is
    negative.
    """
    if limit < 0 or offset < 0:
        raise ValueError(f"limit {limit} and offset {offset}, expected 0 or more")
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where, sort)
        order = columns.order(columns.chosen)
        rows = _rows(session, columns, order[offset : offset + limit])
        return BrowsePage(rows, len(order), columns.counts(), columns.loosened(), columns.on_redundancy)


def asks_redundancy(store: Store, dataset_id: int, where: TraceFilter) -> bool:
    """True if outcomes concern redundant errors, because the filter says so or the gold labels have no other
    errors."""
    where = where.without_verdicts().without("evaluator")
    with store.read() as session:
        return BrowseColumns(store, session, dataset_id, where, FILE_ORDER).on_redundancy


def list_matching(store: Store, dataset_id: int, where: TraceFilter = ANY, sort: Sort = FILE_ORDER) -> list[int]:
    """Return the database ids of all matching traces, in the order in which `browse` lists them over its pages."""
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where, sort)
        return columns.traces.trace_ids[columns.order(columns.chosen)].tolist()


@dataclass(frozen=True)
class FieldCounts:
    """The most common values of a metadata field, at most `MOST_SHOWN`, in descending order of frequency.

    A count is the number of traces that have the value and meet the filter's other conditions. `is_whole` is True
    if the list contains every value. `least` and `most` are the smallest and the largest number in the field over
    the whole dataset, or None if the field contains no numbers.
    """

    field: str
    values: Sequence[tuple[str, int]]
    is_whole: bool
    least: float | None
    most: float | None


def list_fields(store: Store, dataset_id: int) -> Sequence[MetaField]:
    """Return the metadata fields of a dataset, the most common first."""
    with store.read() as session:
        version = read_versions(session, dataset_id, ()).traces
        return store.cache.get(
            ("metadata fields", dataset_id),
            version,
            lambda: read_fields(session, dataset_id),
            lambda fields: sum(len(field.name) + 200 for field in fields),
        )


def count_field(store: Store, dataset_id: int, where: TraceFilter, field: str) -> FieldCounts:
    """Count the values of a field among the traces that meet the filter's conditions on everything but this field.
    Values that occur only in the rest of the dataset are included with a count of 0."""
    others = tuple(str(condition) for condition in where.on_metadata if condition.field != field)
    where = where.model_copy(update={"meta": others})
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where, FILE_ORDER)
        column = columns.metadata(field)
        counts = column.count(columns.chosen)
    ordered = sorted(counts.items(), key=lambda value: (-value[1], value[0]))
    numbers = column.numbers[~np.isnan(column.numbers)]
    return FieldCounts(
        field=field,
        values=ordered[:MOST_SHOWN],
        is_whole=column.is_complete and len(ordered) <= MOST_SHOWN,
        least=float(numbers.min()) if len(numbers) else None,
        most=float(numbers.max()) if len(numbers) else None,
    )


@dataclass(frozen=True, eq=False)
class Distribution:
    """A histogram of step validities or solution redundancies, split by gold label.

    The array `counts` of shape (kinds, BINS) has a row for each kind of gold label in `kinds` and a column for each
    of the equally wide bins. `kinds` is `STEP_GOLD` for the validities of steps, and `SOLUTION_GOLD` for the
    redundancies of solutions, in which case `of_solutions` is True. Items without a gold label or a score are left
    out. A step is valid if its validity is at least `threshold`, and a solution redundant likewise.
    """

    counts: Ints
    threshold: float
    of_solutions: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        return SOLUTION_GOLD if self.of_solutions else STEP_GOLD


def read_distribution(store: Store, dataset_id: int, where: TraceFilter) -> Distribution:
    """Return the distribution of the scores that the filter's evaluator gave in the filter's mode.

    The filter must name an evaluator, and its condition `bin` is ignored.
    """
    assert where.evaluator is not None
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where.without("bin"), FILE_ORDER)
        chosen = columns.chosen
        thresholds = thresholds_in_force(session, where.evaluator)
        if columns.on_redundancy:
            threshold, of_chosen = thresholds.redundancy, columns.solution_cells()[chosen]
        else:
            of_steps = np.repeat(chosen, columns.traces.counts)
            threshold, of_chosen = thresholds.validity, columns.step_cells()[of_steps]
    kinds = len(SOLUTION_GOLD if columns.on_redundancy else STEP_GOLD)
    counts = np.bincount(of_chosen[of_chosen >= 0], minlength=kinds * BINS)
    return Distribution(counts.reshape(kinds, BINS), threshold, columns.on_redundancy)


def _rows(session: Session, columns: BrowseColumns, places: Ints) -> list[BrowseRow]:
    """Return list rows for the traces with the indices `places`, in order. Traces deleted in the meantime are
    skipped."""
    ids = columns.traces.trace_ids[places].tolist()
    names = ("position", "problem", "n_steps", "n_substeps", "first_error", "has_gold", "n_redundant")
    columns_of_row = (getattr(TraceRow, name) for name in names)
    summaries = select(TraceRow.id.label("trace_id"), TraceRow.external_id.label("id"), *columns_of_row)
    rows = {row.trace_id: row for row in session.execute(summaries.where(TraceRow.id.in_(ids)))}
    listed = []
    for id, place in zip(ids, places.tolist(), strict=True):
        if id in rows:
            row = BrowseRow(**rows[id]._mapping, group=columns.traces.groups[place])
            other = _values(columns.others_verdicts, columns.other, place)
            own = _values(columns.verdicts, columns.in_mode, place)
            listed.append(replace(row, **own, other=replace(row, **other) if other else None))
    return listed


def _values(
    verdicts: Mapping[Mode, VerdictColumns] | None, in_mode: VerdictColumns | None, place: int
) -> dict[str, Any]:
    if verdicts is None or in_mode is None:
        return {}
    scores = {"": in_mode, "online_": verdicts[Mode.ONLINE], "offline_": verdicts[Mode.OFFLINE]}
    mistake, wrong = int(in_mode.mistake[place]), int(in_mode.first_wrong[place])
    return {
        **{
            f"{prefix}{name}": _number(getattr(columns, name)[place])
            for name in ("validity", "redundancy")
            for prefix, columns in scores.items()
        },
        "change": _number(in_mode.change[place]),
        "first_wrong": None if wrong == SILENT else wrong,
        "mistake": "" if mistake == SILENT else OUTCOME_NAMES[mistake],
    }


def _number(value: np.float32) -> float | None:
    return None if np.isnan(value) else float(value)
