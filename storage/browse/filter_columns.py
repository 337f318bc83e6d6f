"""The columns of a dataset that filtering and sorting need, held in memory and cached between requests."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from stepsight.core.arrays import Bools, Floats32, Ints
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.table import SILENT, Third
from stepsight.storage.browse.columns import (
    BINS,
    GOLD,
    OUTCOME_NAMES,
    SOLUTION_GOLD,
    STEP_GOLD,
    TraceColumns,
    VerdictColumns,
    bins_of,
    cell_bit,
    read_trace_columns,
    read_verdicts,
)
from stepsight.storage.browse.filters import Sort, TraceFilter
from stepsight.storage.browse.metadata import MetaColumn, MetaCondition, find_values, read_meta_column
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import read_versions
from stepsight.storage.traces.search import find_text

_OF_EVALUATOR = ("validity", "redundancy", "change")

CHANGES = (0.1, 0.3, 0.5)
"""The retroactive changes that are counted."""


@dataclass(frozen=True, eq=False)
class Facet:
    """A filter field that takes only a few values, with its value for each of `n` traces.

    The array `codes` of shape (n,) gives the value of each trace as an index into `names`, or `SILENT` if it has no
    value. A trace can have further values, listed in `also`: each is mapped to a mask of shape (n,) that selects
    the traces that have it.
    """

    names: tuple[str, ...]
    codes: NDArray[np.signedinteger[Any]]
    also: Mapping[str, Bools] = field(default_factory=dict)

    def has(self, value: str) -> Bools:
        """Return a mask of shape (n,) that selects the traces with `value`. No trace has an unknown value."""
        if value in self.also:
            return self.also[value]
        if value not in self.names:
            return np.zeros(len(self.codes), np.bool_)
        return np.equal(self.codes, self.names.index(value))

    def count(self, chosen: Bools) -> dict[str, int]:
        """Return, for each value, the number of traces with it that the mask `chosen` of shape (n,) selects."""
        sums = np.bincount(self.codes[chosen] + 1, minlength=len(self.names) + 1)[1:].tolist()
        counts = dict(zip(self.names, sums, strict=True))
        return counts | {name: int(np.count_nonzero(flags & chosen)) for name, flags in self.also.items()}


class BrowseColumns:
    """The columns of a dataset that a filter and a sort order need.

    `traces` holds the columns of the traces. Outcomes concern redundant errors if `on_redundancy` is True.
    `verdicts` maps each mode to the verdicts of the filter's evaluator, and `in_mode` holds its verdicts in the
    filter's mode; both are None if the filter names no evaluator. `others_verdicts` and `other` hold those of the
    evaluator in its field `other`. Raises `UserError` if a condition or the sort order needs an evaluator and the
    filter names none.
    """

    def __init__(self, store: Store, session: Session, dataset_id: int, where: TraceFilter, sort: Sort) -> None:
        _check(where, sort)
        self._session, self._where, self._sort = session, where, sort
        self._store, self._cache, self._dataset_id = store, store.cache, dataset_id
        named = [id for id in (where.evaluator, where.against, where.other) if id is not None]
        self._versions = read_versions(session, dataset_id, named)
        self.traces: TraceColumns = cached_traces(store, session, dataset_id, self._versions.traces)
        # As in `reasoneval.kinds_of_error`: by default, redundancy if gold has no other errors.
        only_redundant = self.traces.redundant.any() and not (self.traces.first_error != SILENT).any()
        self.on_redundancy = where.errors == "redundant" if where.errors else bool(only_redundant)
        self.verdicts = None if where.evaluator is None else self._verdicts(where.evaluator)
        self.in_mode = None if self.verdicts is None else self.verdicts[where.read_mode]
        self.others_verdicts = None if where.other is None else self._verdicts(where.other)
        self.other = None if self.others_verdicts is None else self.others_verdicts[where.read_mode]

    @property
    def has_error(self) -> Bools:
        """A mask of shape (n,) that selects the traces with an error of the kind in question in the gold labels."""
        return self.traces.redundant if self.on_redundancy else self.traces.first_error != SILENT

    @cached_property
    def facets(self) -> dict[str, Facet]:
        """The facets, keyed by filter field. Those of verdicts are included only if the filter names an
        evaluator."""
        traces = self.traces
        # If no gold label is redundant, a filter for solutions without redundant steps is of no use.
        asks = self._where.gold == "not-redundant" or bool(traces.redundant.any())
        not_redundant = (
            traces.solutions == SOLUTION_GOLD.index("without") if asks else np.zeros(len(traces), np.bool_)
        )
        facets = {
            "gold": Facet(GOLD, traces.gold, {"redundant": traces.redundant, "not-redundant": not_redundant}),
            "group": Facet(traces.group_names, traces.group),
            "error_at": Facet(tuple(third.value for third in Third), traces.third),
        }
        if self.verdicts is None or self.in_mode is None:
            return facets
        verdicts = self.in_mode
        also = {"redundant": verdicts.redundant, "unjudged": ~verdicts.judged}
        online, offline = self.verdicts[Mode.ONLINE].valid, self.verdicts[Mode.OFFLINE].valid
        differs = np.where((online == SILENT) | (offline == SILENT), SILENT, online != offline)
        changes = {f"{least:g}": _change_condition(verdicts, least) for least in CHANGES}
        return facets | {
            "verdict": Facet(("invalid", "valid"), verdicts.valid, also),
            "mistake": Facet(OUTCOME_NAMES, verdicts.mistake, {"wrong": verdicts.mistaken}),
            "modes": Facet(("agree", "disagree"), differs.astype(np.int8)),
            "change": Facet((), np.full(len(traces), SILENT, np.int8), changes),
        }

    @cached_property
    def chosen(self) -> Bools:
        """A mask of shape (n,) that selects the traces that meet every condition."""
        return self._matches(self._conditions)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return, for each value of each facet, the number of traces that have it and meet the conditions on other
        fields."""
        return {name: facet.count(self._matches_without(name)) for name, facet in self.facets.items()}

    def loosened(self) -> dict[str, int]:
        """Return, for each condition, the number of traces that meet all the other conditions."""
        return {name: int(np.count_nonzero(self._matches_without(name))) for name in self._conditions}

    def _matches_without(self, name: str) -> Bools:
        if name not in self._conditions:
            return self.chosen
        return self._matches({other: mask for other, mask in self._conditions.items() if other != name})

    def _matches(self, conditions: Mapping[str, Bools]) -> Bools:
        matches = np.ones(len(self.traces), np.bool_)
        for mask in conditions.values():
            matches &= mask
        return matches

    def order(self, chosen: Bools) -> Ints:
        """Return the indices of the traces selected by the mask `chosen` of shape (n,), in the sort order."""
        if self._sort.by == "position":
            places = np.flatnonzero(chosen)
            return places[::-1] if self._sort.descending else places
        if self._sort.by == "doubt":
            ranked = self.traces.places(np.array(self._sort.ranked, np.int64))
            # Some may have been deleted since they were ranked.
            ranked = ranked[ranked != SILENT][:: -1 if self._sort.descending else 1]
            places = np.concatenate([ranked, np.setdiff1d(np.flatnonzero(chosen), ranked)])
            return places[chosen[places]]
        evaluator = (self._where.evaluator, self._where.mode) if self._sort.by in _OF_EVALUATOR else None

        def sort() -> Ints:
            key = self._key()
            # NaN comes last in both directions.
            return np.argsort(-key if self._sort.descending else key, kind="stable")

        version = self._version_of(self._where.evaluator) if evaluator else self._versions.traces
        order = self._cache.get(("order", self._dataset_id, evaluator, self._sort), version, sort)
        return order[chosen[order]]

    @cached_property
    def _conditions(self) -> dict[str, Bools]:
        """For each condition that is set, a mask of shape (n,) that selects the traces that meet it, keyed by its
        filter field. The key of a condition on metadata is "meta" followed by the condition."""
        meets = {name: self._meets(name) for name in self._where.active if name != "meta"}
        return meets | {f"meta {condition}": self._meta(condition) for condition in self._where.on_metadata}

    def _meets(self, name: str) -> Bools:
        """Return a mask of shape (n,) that selects the traces that meet the filter field `name`."""
        where, judged = self._where, self.in_mode
        if name == "text":
            return self._cache.get(
                ("text", self._dataset_id, where.text.lower()),
                self._versions.traces,
                lambda: find_text(self._session, self.traces.trace_ids, where.text),
            )
        if name == "length":
            least, most = where.lengths
            return (self.traces.counts >= least) & (self.traces.counts <= most)
        if name == "change" and judged is not None:
            return _change_condition(judged, where.change)
        if name == "cell" and judged is not None and where.labels is not None:
            return np.bitwise_and(judged.cells, cell_bit(*where.labels)).astype(np.bool_)
        if name == "bin":
            kind, place = where.bin_place
            if kind in SOLUTION_GOLD:
                return np.equal(self.solution_cells(), SOLUTION_GOLD.index(kind) * BINS + place)
            return self.traces.any_step(np.equal(self.step_cells(), STEP_GOLD.index(kind) * BINS + place))
        if name == "against" and judged is not None and where.against is not None:
            valid, other = judged.valid, self._verdicts(where.against)[where.read_mode].valid
            return np.not_equal(valid, SILENT) & np.not_equal(other, SILENT) & np.not_equal(valid, other)
        if name == "other_mistake" and self.other is not None:
            return self.other.makes(where.other_mistake)
        return self.facets[name].has(getattr(where, name))

    def _key(self) -> Floats32:
        column = self._sort.by
        if column in _OF_EVALUATOR:
            return getattr(self.in_mode, column)
        if column == "steps":
            return self.traces.counts.astype(np.float32)
        error = self.traces.first_error
        return np.where(error == SILENT, np.nan, error).astype(np.float32)

    def _version_of(self, evaluator_id: int | None) -> Hashable:
        return self._versions.traces, self._versions.verdicts.get(evaluator_id or 0)

    def _verdicts(self, evaluator_id: int) -> dict[Mode, VerdictColumns]:
        modes: dict[Mode, VerdictColumns] = self._cache.get(
            ("verdicts", self._dataset_id, evaluator_id),
            self._version_of(evaluator_id),
            lambda: read_verdicts(self._session, self.traces, self._dataset_id, evaluator_id),
            lambda modes: sum(verdicts.nbytes for verdicts in modes.values()),
        )
        if not self.on_redundancy:
            return modes
        return {mode: verdicts.on_redundancy(self.traces.solutions) for mode, verdicts in modes.items()}

    def step_cells(self) -> NDArray[np.int8]:
        """Return the cell of every step in the dataset, trace by trace.

        A cell is a number that combines the step's gold label with the bin of its validity: `BINS` times the index
        of the label in `STEP_GOLD`, plus the bin. It is `SILENT` for a step without a gold label or a validity.
        """
        assert self.in_mode is not None
        return _cells(self.traces.kinds, self.in_mode.bins)

    def solution_cells(self) -> NDArray[np.int8]:
        """Return the cell of every solution, like `step_cells`. It combines the gold label in `SOLUTION_GOLD` with
        the bin of the solution's redundancy."""
        assert self.in_mode is not None
        return _cells(self.traces.solutions, bins_of(self.in_mode.redundancy))

    def metadata(self, field: str) -> MetaColumn:
        """Return the values of a metadata field for all traces of the dataset."""
        return self._cache.get(
            ("metadata", self._dataset_id, field),
            self._versions.traces,
            lambda: read_meta_column(self._session, self._dataset_id, self.traces, field),
        )

    def _meta(self, condition: MetaCondition) -> Bools:
        column = self.metadata(condition.field)
        if column.can_tell(condition):
            return column.meeting(condition)
        return self._cache.get(
            ("metadata with", self._dataset_id, condition),
            self._versions.traces,
            lambda: find_values(self._session, self._dataset_id, self.traces, condition),
        )


def cached_traces(store: Store, session: Session, dataset_id: int, version: Any) -> TraceColumns:
    """Return the columns of a dataset's traces, cached under `version`, which comes from `read_versions`."""
    return store.cache.get(("traces", dataset_id), version, lambda: read_trace_columns(session, dataset_id))


def _change_condition(verdicts: VerdictColumns, least: float) -> Bools:
    return verdicts.change >= np.float32(least)


def _cells(kinds: NDArray[np.int8], bins: NDArray[np.int8]) -> NDArray[np.int8]:
    return np.where((kinds == SILENT) | (bins == SILENT), SILENT, kinds * np.int8(BINS) + bins).astype(np.int8)


def _check(where: TraceFilter, sort: Sort) -> None:
    named = where.needing_evaluator()
    if where.evaluator is None and named is not None:
        raise UserError(f"The {named} filter needs an evaluator.", "Choose one.")
    if where.other is None and where.is_set("other_mistake"):
        raise UserError("The other_mistake filter needs another evaluator.", "Choose one to compare with.")
    if where.evaluator is None and sort.by in _OF_EVALUATOR:
        raise UserError(f"Sorting by {sort.by} needs an evaluator.", "Choose one.")
