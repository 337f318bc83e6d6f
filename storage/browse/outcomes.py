"""Counting the outcomes of evaluators: the traces with each pair of two evaluators' outcomes, and those with each
outcome of one evaluator by the value of a metadata field or by length. And finding the traces in which hindsight
flips the verdict on a step, for the gallery of evidence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import exists, select

from stepsight.core.arrays import AnyInts, Floats32, Ints
from stepsight.core.evidence import Flip
from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import Value, Weights, mean
from stepsight.core.metrics.first_error import OUTCOMES, Outcome
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.storage.browse.filter_columns import BrowseColumns, cached_traces
from stepsight.storage.browse.filters import FILE_ORDER, TraceFilter
from stepsight.storage.browse.metadata import MetaColumn, MetaCondition
from stepsight.storage.database.schema import EvaluatorRow, JudgedRow, TraceRow, TriangleRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import read_scores
from stepsight.storage.judgments.evaluators import read_versions
from stepsight.storage.traces.queries import Neighbours

_CONDITIONS = ("mistake", "other_mistake", "gold")
BY_LENGTH = "steps"
"""In place of a metadata field: the number of steps."""
MOST_VALUES = 20
"""The number of values of a field for which outcomes are counted, the most common first."""
# Numbers and lengths with more values are counted in this many ranges, with about equal numbers of traces.
_RANGES = 4
# The fields of `TraceFilter` that select the traces of each value counted by.
_FILTERS = {BY_LENGTH: ("length",)}


@dataclass(frozen=True)
class OutcomePairs:
    """The number of traces with each pair of outcomes: the first evaluator's and the second evaluator's.

    `counts[True]` covers the traces with an error in the gold labels and `counts[False]` those without: a redundant
    error if `on_redundancy` is True. `unknown` is the number of traces for which the gold labels or a verdict are
    missing or incomplete.
    """

    counts: Mapping[bool, Mapping[tuple[Outcome, Outcome], int]]
    unknown: int
    on_redundancy: bool = False

    def count(self, first: bool | Outcome, second: bool | Outcome, errors: tuple[bool, ...] = (True, False)) -> int:
        """Count the traces on which the two evaluators have these outcomes. In place of an outcome, True stands for
        right, and False for every other outcome. `errors` says whether to count traces with a gold error (True),
        without one (False), or both."""
        return sum(
            number
            for error in errors
            for (outcome, other), number in self.counts[error].items()
            if _matches(outcome, first) and _matches(other, second)
        )


def _matches(outcome: Outcome, expected: bool | Outcome) -> bool:
    return (outcome is Outcome.RIGHT) == expected if isinstance(expected, bool) else outcome is expected


def pair_outcomes(store: Store, dataset_id: int, where: TraceFilter) -> OutcomePairs | None:
    """Compare the outcomes of the filter's two evaluators on the traces that match the filter.

    Return None unless the filter names two evaluators.
    """
    if where.evaluator is None or where.other is None:
        return None
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where.without(*_CONDITIONS), FILE_ORDER)
        chosen = columns.chosen
        assert columns.in_mode is not None
        assert columns.other is not None
        first, second = columns.in_mode.mistake[chosen], columns.other.mistake[chosen]
        has_error = columns.has_error[chosen]
    have_both = (first != SILENT) & (second != SILENT)
    counts = {}
    for error in (True, False):
        cases = have_both & (has_error == error)
        pairs, numbers = np.unique(np.stack([first[cases], second[cases]]), axis=1, return_counts=True)
        counts[error] = {
            (OUTCOMES[first_code], OUTCOMES[second_code]): int(number)
            for first_code, second_code, number in zip(*pairs, numbers, strict=True)
        }
    return OutcomePairs(counts, int((~have_both).sum()), columns.on_redundancy)


_OUTCOME_COLUMNS: dict[str, type] = {"trace": str, "steps": int, "first_error": int, "redundant_steps": int}


def outcome_table(
    store: Store, dataset_id: int, where: TraceFilter, trace_ids: Sequence[int], evaluators: Mapping[str, int]
) -> tuple[dict[str, type], list[dict[str, object]]]:
    """Return the columns and rows of a table with a row per trace, which has the outcome of each evaluator in the
    column `outcome.NAME`, or None if there is none.

    `trace_ids` gives the traces and their order, and `evaluators` maps names to database ids. Mode and kind of
    error are those of the filter. Steps are counted from 1.
    """
    codes: dict[str, NDArray[np.int8]] = {}
    only = TraceFilter(mode=where.mode, errors=where.errors)
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, only, FILE_ORDER)
        for name, id in evaluators.items():
            of_evaluator = BrowseColumns(
                store, session, dataset_id, only.model_copy(update={"evaluator": id}), FILE_ORDER
            )
            assert of_evaluator.in_mode is not None
            codes[f"outcome.{name}"] = of_evaluator.in_mode.mistake
        places = columns.traces.places(np.array(trace_ids, np.int64))
        values = select(
            TraceRow.id, TraceRow.external_id, TraceRow.n_steps, TraceRow.first_error, TraceRow.n_redundant
        )
        summaries = {row.id: row for row in session.execute(values.where(TraceRow.dataset_id == dataset_id))}
    rows = [
        {
            "trace": row.external_id,
            "steps": row.n_steps,
            "first_error": None if row.first_error is None else row.first_error + 1,
            "redundant_steps": row.n_redundant,
        }
        | {name: None if kinds[place] == SILENT else OUTCOMES[kinds[place]].value for name, kinds in codes.items()}
        for place, id in zip(places, trace_ids, strict=True)
        if place != SILENT and (row := summaries.get(id)) is not None
    ]
    return _OUTCOME_COLUMNS | dict.fromkeys(codes, str), rows


ByCondition = Mapping[str, str | tuple[str, ...]]
_Group = tuple[str, ByCondition, NDArray[np.int64]]


@dataclass(frozen=True)
class ValueOutcomes:
    """The outcomes of an evaluator on the traces with one value of a field, or with a value in a range.

    `conditions` maps a field of `TraceFilter`, `meta` or `length`, to the conditions that select these
    traces. `right` is the share of right outcomes, with an interval if there are resamples.
    """

    value: str
    conditions: ByCondition
    counts: Mapping[Outcome, int]
    right: Value

    @property
    def traces(self) -> int:
        return sum(self.counts.values())


def outcomes_by(
    store: Store,
    dataset_id: int,
    where: TraceFilter,
    field: str,
    weights: Weights | None = None,
) -> list[ValueOutcomes]:
    """Count the outcomes of the filter's evaluator by the values of a metadata field, or by `BY_LENGTH`.

    Conditions on the outcome itself, and on the field or length that is counted by, are ignored. A trace
    with several values counts for each of them. Traces without an outcome or without a value are left out.
    `weights` are resamples of the dataset's traces, of shape (draws, n).
    """
    where = where.without("mistake", *_FILTERS.get(field, ()))
    if field not in _FILTERS:
        meta = tuple(str(condition) for condition in where.on_metadata if condition.field != field)
        where = where.model_copy(update={"meta": meta})
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where, FILE_ORDER)
        assert columns.in_mode is not None
        mistake = np.where(columns.chosen, columns.in_mode.mistake, SILENT)
        if field == BY_LENGTH:
            steps = columns.traces.counts
            groups: list[_Group] = [
                (_span(least, most), {"length": _span(least, most, "-")}, inside)
                for least, most, inside in _ranges(np.arange(len(steps)), steps.astype(np.float64))
            ]
        else:
            groups = _value_outcomes(columns.metadata(field), field)
    resampled = weights if weights is not None and weights.shape[1] == len(mistake) else None
    outcomes = []
    for value, conditions, places in groups:
        judged = np.unique(places)
        judged = judged[mistake[judged] != SILENT]
        if len(judged):
            codes = mistake[judged]
            counts = dict(zip(OUTCOMES, np.bincount(codes, minlength=len(OUTCOMES)).tolist(), strict=True))
            hit = codes == OUTCOMES.index(Outcome.RIGHT)
            outcomes.append(ValueOutcomes(value, conditions, counts, mean(hit, judged, resampled, "no trace")))
    return outcomes


def _value_outcomes(column: MetaColumn, field: str) -> list[_Group]:
    numbers = column.numbers
    if len(numbers) and not np.isnan(numbers).any() and len(np.unique(numbers)) > MOST_VALUES:
        return [
            (
                _span(least, most),
                {"meta": (str(MetaCondition(field, ">=", least)), str(MetaCondition(field, "<=", most)))},
                inside,
            )
            for least, most, inside in _ranges(column.places, numbers)
        ]
    counts = np.bincount(column.codes[column.codes != SILENT], minlength=len(column.names))
    common = sorted(range(len(column.names)), key=lambda code: (-counts[code], column.names[code]))[:MOST_VALUES]
    return [
        (name, {"meta": (str(MetaCondition(field, "=", name)),)}, column.places[column.codes == code])
        for code, name in ((code, column.names[code]) for code in common)
    ]


def _ranges(places: Ints, numbers: NDArray[np.float64]) -> Iterator[tuple[str, str, NDArray[np.int64]]]:
    """Divide the places by their numbers into ranges of about equal size. Yield the smallest number of each, the
    largest, and its places."""
    if not len(numbers):
        return
    bounds = np.unique(np.quantile(numbers, np.arange(1, _RANGES) / _RANGES, method="lower"))
    part = np.searchsorted(bounds, numbers, side="left")
    for range_ in np.unique(part):
        inside = part == range_
        yield f"{numbers[inside].min():.15g}", f"{numbers[inside].max():.15g}", places[inside]


def _span(least: str, most: str, between: str = " to ") -> str:
    return least if least == most else f"{least}{between}{most}"


@dataclass(frozen=True, eq=False)
class Flips:
    """The database ids of the traces that an evaluator judged in hindsight mode, grouped by kind of flip.

    `by_kind` lists, for each kind of flip, the traces that contain a step with that flip. The kind depends on the
    step's gold label, so a trace can appear under several kinds. `none` lists the traces without a flip. Each array
    is sorted by the largest retroactive change among the steps with that flip (for `none`, among all steps), the
    largest first. Ties are in file order.
    """

    by_kind: Mapping[Flip, Ints]
    none: Ints

    @property
    def nbytes(self) -> int:
        return self.none.nbytes + sum(ids.nbytes for ids in self.by_kind.values())

    def of(self, kind: Flip | None) -> Ints:
        """Return the traces with this kind of flip. For None, return the traces without a flip."""
        return self.none if kind is None else self.by_kind[kind]

    def neighbours(self, kind: Flip | None, trace_id: int) -> Neighbours:
        """Return the previous and the next trace in the list for `kind`. Both are None if the list lacks
        `trace_id`."""
        ids = self.of(kind)
        places = np.flatnonzero(ids == trace_id)
        if not len(places):
            return Neighbours(None, None)
        place = int(places[0])
        before = int(ids[place - 1]) if place else None
        return Neighbours(before, int(ids[place + 1]) if place + 1 < len(ids) else None)


def hindsight_evaluators(store: Store) -> dict[int, tuple[int, ...]]:
    """Return, for each dataset id, the ids of the evaluators that have judged the dataset in hindsight mode."""
    judged = exists().where(
        TriangleRow.evaluator_id == JudgedRow.evaluator_id, TriangleRow.dataset_id == JudgedRow.dataset_id
    )
    pairs = select(JudgedRow.dataset_id, JudgedRow.evaluator_id).join(
        EvaluatorRow, EvaluatorRow.id == JudgedRow.evaluator_id
    )
    evaluators: dict[int, tuple[int, ...]] = {}
    with store.read() as session:
        for dataset_id, evaluator_id in session.execute(pairs.where(judged).order_by(EvaluatorRow.name)):
            evaluators[dataset_id] = (*evaluators.get(dataset_id, ()), evaluator_id)
    return evaluators


def find_flips(store: Store, dataset_id: int, evaluator_id: int, threshold: float) -> Flips:
    """Find the flipped verdicts in an evaluator's up-to-date hindsight judgments of a dataset. A step counts as
    valid if its validity is at least `threshold`. The result is cached until the traces or the judgments change."""
    with store.read() as session:
        versions = read_versions(session, dataset_id, [evaluator_id])

        def read() -> Flips:
            traces = cached_traces(store, session, dataset_id, versions.traces)
            early, late = (
                read_scores(session, traces, dataset_id, evaluator_id, mode, of_hindsight=True)
                for mode in (Mode.ONLINE, Mode.OFFLINE)
            )
            return _group_flips(traces.trace_ids, early, late, threshold)

        key = ("flips", dataset_id, evaluator_id, threshold)
        return store.cache.get(key, (versions.traces, versions.verdicts.get(evaluator_id)), read)


def _group_flips(ids: Ints, early: StepTable, late: StepTable, threshold: float) -> Flips:
    """Group traces by kind of flip. `early` and `late` are the traces' online and offline scores, and `ids` their
    database ids."""
    trace, online, offline = early.trace, early.validity, late.validity
    least = np.float32(threshold)
    # A step without scores has no verdict.
    flipped = ((online >= least) != (offline >= least)) & ~(np.isnan(online) | np.isnan(offline))
    valid = early.valid[flipped]
    change = np.abs(offline - online)
    right = (offline[flipped] >= least) == (valid == 1)
    kinds = {
        Flip.RIGHTED: right & (valid != SILENT),
        Flip.MISLED: ~right & (valid != SILENT),
        Flip.UNJUDGED: valid == SILENT,
    }
    of_flips, changes = trace[flipped], change[flipped]
    by_kind = {kind: _order(ids, of_flips[steps], changes[steps]) for kind, steps in kinds.items()}
    quiet = ~np.isin(trace, of_flips)
    return Flips(by_kind, _order(ids, trace[quiet], np.nan_to_num(change[quiet])))


def _order(ids: Ints, trace: AnyInts, change: Floats32) -> Ints:
    """Return the ids of the traces that contain the given steps, without duplicates, the largest `change` first."""
    most = np.full(len(ids), -1, np.float32)
    np.maximum.at(most, trace, change)
    order = np.argsort(-most, kind="stable")
    return ids[order[: np.count_nonzero(most >= 0)]]
