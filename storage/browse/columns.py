"""A view: a dataset's columns as a filter and an order read them, kept in memory between requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import Outputs
from stepsight.storage.browse.facets import (
    Buckets,
    changed,
    dataset_facets,
    differ,
    evaluator_facets,
    into_buckets,
    stable_order,
)
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.browse.verdict_columns import VerdictColumns, read_verdict_columns
from stepsight.storage.database.cache import cache_of
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.schema import CalibrationRow, DatasetRow, EvaluatorRow, JudgedRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.calibrations import thresholds_in_force
from stepsight.storage.judgments.profiles import cell_bit
from stepsight.storage.traces.columns import TraceColumns, read_relabelled, read_trace_columns, with_relabelled
from stepsight.storage.traces.search import find_text

By = Literal["position", "validity", "redundancy", "change", "steps", "error"]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

# Events that can be stored in another order than they are numbered in.
_AT_ONCE = 1_000
_OF_EVALUATOR = ("validity", "redundancy", "change")


@dataclass(frozen=True)
class Sort:
    """An order of traces; equal ones are in file order, and those without a value last, whichever way it goes.

    `validity`, `redundancy` and `change` are those of the filter's evaluator in its mode, `error` is the step of
    the gold's first error. Raises `UserError` on another word.
    """

    by: By = "position"
    descending: bool = False

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise UserError(f"The order is {self.by!r:.40}.", f"Expected {', '.join(get_args(By))}.")


class View:
    """What a filter and an order need of a dataset, read within a session.

    Raises `UserError` where a condition or the order needs an evaluator and the filter names none.
    """

    def __init__(self, store: Store, session: Session, dataset_id: int, where: TraceFilter, sort: Sort) -> None:
        _check(where, sort)
        self._session, self._where, self._sort = session, where, sort
        self._memory, self._dataset_id = cache_of(store), dataset_id
        named = [id for id in (where.evaluator, where.against) if id is not None]
        self._versions = _read_versions(session, dataset_id, named)
        self._version = self._versions[None], self._versions.get(where.evaluator)
        self._relabelled = self._read_relabelled()
        self.catalogue: TraceColumns = self._read_catalogue()
        # The evaluator's verdicts in both modes, and those in the filter's mode.
        self.said = None if where.evaluator is None else self._verdicts(where.evaluator)
        self.read = None if self.said is None else self.said[where.read_mode]

    def _read_relabelled(self) -> Ints:
        """The ids of the traces that people labelled: read again after whatever anybody did while labelling."""
        # The count of the latest too: of events at once the one with the later number may be there first.
        latest = EventRow.id > select(func.max(EventRow.id)).scalar_subquery() - _AT_ONCE
        newest = self._session.execute(select(func.count(), func.max(EventRow.id)).where(latest)).one()
        return self._memory.get(
            ("relabelled", self._dataset_id),
            (self._versions[None], *newest),
            lambda: read_relabelled(self._session, self._dataset_id),
            lambda found: found.nbytes,
        )

    def _read_catalogue(self) -> TraceColumns:
        found: TraceColumns = self._memory.get(
            ("catalogue", self._dataset_id),
            self._versions[None],
            lambda: read_trace_columns(self._session, self._dataset_id),
            lambda found: found.nbytes,
        )
        if not len(self._relabelled):
            return found
        return self._memory.get(
            ("relabelled catalogue", self._dataset_id),
            (self._versions[None], self._relabelled.tobytes()),
            lambda: with_relabelled(found, self._relabelled),
            # The other columns are those of the catalogue in memory.
            lambda found: found.relabelled.nbytes,
        )

    def narrow(self) -> "Matches":
        """The traces that meet the filter."""
        cells = self._cells()
        where = self._where
        by_cell = {
            name: facet.has(getattr(where, name))
            for name, facet in cells.facets.items()
            if where.is_set(name) and name != "change"
        }
        return Matches(cells, by_cell, self._by_trace())

    def order(self, chosen: Flags) -> Ints:
        """The places of the chosen traces, shape (n,), in the order asked for."""
        if self._sort.by == "position":
            places = np.flatnonzero(chosen)
            return places[::-1] if self._sort.descending else places
        said = (self._where.evaluator, self._where.mode) if self._sort.by in _OF_EVALUATOR else None
        order = self._memory.get(
            ("order", self._dataset_id, said, self._sort),
            self._version if said else self._versions[None],
            self._read_order,
            lambda found: found.nbytes,
        )
        return order[chosen[order]]

    def _by_trace(self) -> dict[str, Flags]:
        """By the field of each condition that is no facet, the traces that meet it, each of shape (n,)."""
        where, meets = self._where, {}
        if where.text.strip():
            meets["text"] = self._text(where.text.strip())
        if self.read is None:
            return meets
        if where.change:
            meets["change"] = changed(self.read, where.change)
        if where.labels is not None:
            meets["cell"] = (self.read.cells & cell_bit(*where.labels)) != 0
        if where.against is not None:
            meets["against"] = differ(self.read, self._verdicts(where.against)[where.read_mode])
        return meets

    def _read_order(self) -> Ints:
        return stable_order(self._key(), self._sort.descending)

    def _key(self) -> NDArray[np.float32]:
        by = self._sort.by
        if by in _OF_EVALUATOR:
            key: NDArray[np.float32] = getattr(self.read, by)
            return key
        if by == "steps":
            return self.catalogue.steps.astype(np.float32)
        error = self.catalogue.first_error
        return np.where(error == SILENT, np.nan, error).astype(np.float32)

    def _cells(self) -> Buckets:
        return self._memory.get(
            ("cells", self._dataset_id, self._where.evaluator, self._where.mode),
            (self._version, self._relabelled.tobytes()),
            self._read_cells,
            lambda found: found.nbytes,
        )

    def _read_cells(self) -> Buckets:
        facets = dataset_facets(self.catalogue)
        if self.said is not None:
            facets |= evaluator_facets(self.said, self._where.read_mode)
        return into_buckets(facets)

    def _verdicts(self, evaluator_id: int) -> dict[Mode, VerdictColumns]:
        return self._memory.get(
            ("verdicts", self._dataset_id, evaluator_id),
            (self._versions[None], self._versions[evaluator_id]),
            lambda: self._read_verdicts(evaluator_id),
            lambda found: sum(verdicts.nbytes for verdicts in found.values()),
        )

    def _read_verdicts(self, evaluator_id: int) -> dict[Mode, VerdictColumns]:
        info = self._session.scalar(select(EvaluatorRow.info).where(EvaluatorRow.id == evaluator_id)) or {}
        cut = thresholds_in_force(self._session, evaluator_id)
        outputs = Outputs(info.get("outputs", Outputs.THREE_WAY))
        return read_verdict_columns(self._session, self.catalogue, self._dataset_id, evaluator_id, outputs, cut)

    def _text(self, wanted: str) -> Flags:
        return self._memory.get(
            ("text", self._dataset_id, wanted.lower()),
            self._versions[None],
            lambda: find_text(self._session, self.catalogue.trace_ids, wanted),
            lambda found: found.nbytes,
        )


class Matches:
    """The traces that meet every condition, and by field those that meet every other one: of facets among the
    cells, shape (c,), of the rest among the traces, shape (n,)."""

    def __init__(self, cells: Buckets, by_cell: Mapping[str, Flags], by_trace: Mapping[str, Flags]) -> None:
        self._cells, self._by_cell, self._by_trace = cells, by_cell, by_trace
        self._met_cells = _every(by_cell)
        self._met_traces = _every(by_trace)
        self._tally = cells.tally(self._met_traces)

    @property
    def chosen(self) -> Flags:
        """Shape (n,)."""
        return self._within(self._met_traces)

    def counts(self) -> dict[str, dict[str, int]]:
        """By facet and value, how many traces have that value and meet the conditions on everything else."""
        return {
            name: facet.count(_masked(self._tally_but_for(name), _every(self._by_cell, name)))
            for name, facet in self._cells.facets.items()
        }

    def loosened(self) -> dict[str, int]:
        """By the field of each condition, how many traces there would be without it."""
        found = {name: int(_masked(self._tally, _every(self._by_cell, name)).sum()) for name in self._by_cell}
        for name in self._by_trace:
            found[name] = int(np.count_nonzero(self._within(_every(self._by_trace, name))))
        return found

    def _tally_but_for(self, name: str) -> Ints:
        if name not in self._by_trace:
            return self._tally
        return self._cells.tally(_every(self._by_trace, name))

    def _within(self, traces: Flags | None) -> Flags:
        """Those of some traces whose cells meet every condition on cells."""
        if self._met_cells is None:
            return np.ones(len(self._cells.cell), np.bool_) if traces is None else traces.copy()
        met: Flags = self._met_cells[self._cells.cell]
        return met if traces is None else met & traces


def _every(meets: Mapping[str, Flags], but_for: str = "") -> Flags | None:
    """Where all conditions are met but for one; None where there is no other."""
    found: Flags | None = None
    for name, met in meets.items():
        if name != but_for:
            found = met if found is None else found & met
    return found


def _masked(numbers: Ints, flags: Flags | None) -> Ints:
    return numbers if flags is None else np.where(flags, numbers, 0)


def _check(where: TraceFilter, sort: Sort) -> None:
    named = where.needing_evaluator()
    if where.evaluator is None and named is not None:
        raise UserError(f"The {named} filter needs an evaluator.", "Choose one.")
    if where.evaluator is None and sort.by in _OF_EVALUATOR:
        raise UserError(f"The order by {sort.by} needs an evaluator.", "Choose one.")


def _read_versions(session: Session, dataset_id: int, evaluators: list[int]) -> dict[int | None, Any]:
    """The version of the traces, under None, and that of each evaluator's verdicts on them."""
    columns: list[Any] = []
    for id in evaluators:
        judged = JudgedRow.dataset_id == dataset_id, JudgedRow.evaluator_id == id
        columns += [
            select(EvaluatorRow.created).where(EvaluatorRow.id == id).scalar_subquery(),
            select(JudgedRow.revision).where(*judged).scalar_subquery(),
            select(func.max(CalibrationRow.id)).where(CalibrationRow.evaluator_id == id).scalar_subquery(),
        ]
    # Ids of what was deleted may be used again, moments not.
    found = session.execute(
        select(DatasetRow.created, DatasetRow.revision, *columns).where(DatasetRow.id == dataset_id)
    ).one_or_none()
    versions: dict[int | None, Any] = {None: found and tuple(found[:2])}
    for place, id in enumerate(evaluators):
        versions[id] = found and tuple(found[2 + 3 * place : 5 + 3 * place])
    return versions
