"""The gold labels and judgments of traces as numeric columns, for metrics, exports, filters and sorting.

No Python object is created per row: the judgments of a few thousand traces are read into one array.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import intern
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, func, null, select, text
from sqlalchemy.orm import Session

from stepsight.core.arrays import AnyInts, Bools, Floats32, Floats64, Ints
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.core.scores import first_of_steps, least_valid
from stepsight.storage.database.schema import JudgmentRow, SubstepRow, TraceRow, TriangleRow
from stepsight.storage.database.store import Store, read_columns
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.judgments.judgments import are_probabilities
from stepsight.storage.traces.columns import read_shares, trace_group
from stepsight.storage.traces.queries import Dataset

# The traces read at once; every database allows an IN with this many keys.
_MOST = 2_000
# One text for each trace: a row for each step would take three times as long to fetch.
_SIGN = (
    "substr('abcdefghijkl', 1 + 3 * coalesce(s.label + 1, 0)"
    " + CASE WHEN s.valid THEN 2 WHEN NOT s.valid THEN 1 ELSE 0 END, 1)"
)
_STEPS = {
    "sqlite": f"SELECT id, group_concat(sign, '') FROM (SELECT s.trace_id AS id, {_SIGN} AS sign FROM steps AS s"
    " WHERE s.trace_id IN :ids ORDER BY s.trace_id, s.position) GROUP BY id",
    "postgresql": f"SELECT s.trace_id, string_agg({_SIGN}, '' ORDER BY s.position) FROM steps AS s"
    " WHERE s.trace_id IN :ids GROUP BY s.trace_id",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class TraceGold:
    """The gold labels of several traces, as columns.

    `trace_ids` (database ids), `ids` and `counts` (step counts) have one value per trace. `label`, `valid` and
    `substeps` (sub-step counts) have one value per step, trace by trace. `label` and `valid` are `SILENT` where
    there is no gold label. `share` has one value per step too, NaN where there is none, or is None if no step has a
    share.
    """

    trace_ids: Ints
    ids: tuple[str, ...]
    counts: Ints
    label: AnyInts
    valid: AnyInts
    substeps: AnyInts
    share: Floats64 | None = None

    @cached_property
    def trace(self) -> AnyInts:
        """The index of the trace that each step belongs to, as an array of shape (steps,)."""
        return np.repeat(np.arange(len(self.counts), dtype=np.int32), self.counts)

    @cached_property
    def position(self) -> AnyInts:
        """The index of each step within its trace, as an array of shape (steps,)."""
        return within(self.counts).astype(np.int32)

    @cached_property
    def has_substeps(self) -> bool:
        """True if any step has more than one sub-step."""
        return bool((self.substeps > 1).any())

    @cached_property
    def sizes(self) -> Ints:
        """The sub-step count of each trace, as an array of shape (traces,)."""
        sizes = np.add.reduceat(self.substeps, starts(self.counts)) if len(self.counts) else self.counts
        return sizes.astype(np.int64)

    @cached_property
    def owners(self) -> AnyInts:
        """The index of the step that each sub-step belongs to, as an array of shape (sub-steps,)."""
        return np.repeat(np.arange(len(self.substeps)), self.substeps)

    @cached_property
    def step_ends(self) -> AnyInts:
        """For each sub-step, the index within its trace of the last sub-step of the same step. The shape is
        (sub-steps,)."""
        return np.repeat(np.cumsum(self.substeps) - 1, self.substeps) - np.repeat(starts(self.sizes), self.sizes)

    @cached_property
    def _by_id(self) -> Ints:
        return np.argsort(self.trace_ids, kind="stable")

    def places(self, trace_ids: Ints) -> Ints:
        """Return the indices in `trace_ids` of the given database ids."""
        places: Ints = self._by_id[np.searchsorted(self.trace_ids, trace_ids, sorter=self._by_id)]
        return places


@dataclass(frozen=True, eq=False, kw_only=True)
class Gold(TraceGold):
    """The gold labels of all traces of a dataset, in file order.

    `digests` and `groups` have shape (traces,). A group is the benchmark's class of a trace, or "". If `kept` is
    given, an array of shape (traces,), only the first `kept[i]` steps of trace i are in view, and tables omit the
    rest.
    """

    dataset: Dataset
    digests: tuple[str, ...]
    groups: tuple[str, ...]
    kept: Ints | None = None

    @cached_property
    def in_view(self) -> Bools:
        """A mask of shape (steps,) that selects the steps in view. Without `kept`, these are all steps."""
        if self.kept is None:
            return np.ones(len(self.label), np.bool_)
        inside: Bools = self.position < self.kept[self.trace]
        return inside

    @cached_property
    def last_in_view(self) -> Ints:
        """The index within each trace of its last sub-step in view, as an array of shape (traces,)."""
        sub_steps = np.bincount(self.trace, np.where(self.in_view, self.substeps, 0), len(self.counts))
        return sub_steps.astype(np.int64) - 1

    def ends_at_first_error(self) -> bool:
        """True if most traces with an error end at the error, so that the length of a trace gives the error away.
        "Most" means at least nine tenths, as in PRM800K."""
        wrong = np.flatnonzero(self.valid == 0)
        if not len(wrong):
            return False
        traces, first = np.unique(self.trace[wrong], return_index=True)
        at_end = self.position[wrong[first]] == self.counts[traces] - 1
        return bool(at_end.mean() >= 0.9)


def read_gold(store: Store, dataset: Dataset) -> Gold:
    """Read the gold labels of a dataset. Memory use grows with the number of steps."""
    row = TraceRow
    columns = (row.id, row.external_id, row.digest, row.n_steps, row.n_substeps, trace_group())
    traces = select(*columns).where(row.dataset_id == dataset.id).order_by(row.position)
    with store.read() as session:
        ids, names, digests, *numbers, groups = read_columns(session, traces)
        trace_ids, counts, sizes = (np.array(column, np.int64) for column in (ids, *numbers))
        label, valid = read_steps(session, trace_ids, counts)
        share = read_shares(session, trace_ids, counts)
        substeps = read_substeps(session, trace_ids, counts, sizes)
    return Gold(
        dataset=dataset,
        trace_ids=trace_ids,
        ids=tuple(names),
        digests=tuple(digests),
        # Thousands of traces share a name of few.
        groups=tuple(intern(str(group)) for group in groups),
        counts=counts,
        label=label,
        valid=valid,
        share=share,
        substeps=substeps,
    )


def read_gold_of(session: Session, trace_ids: Sequence[int]) -> tuple[TraceGold, tuple[dict[str, Any], ...]]:
    """Read the gold labels and the metadata of the given traces, in order. Deleted traces are skipped."""
    row = TraceRow
    statement = select(row.id, row.external_id, row.n_steps, row.n_substeps, row.meta).where(row.id.in_(trace_ids))
    by_id = {one.id: one for one in session.connection().execute(statement).all()}
    rows = [by_id[id] for id in trace_ids if id in by_id]
    ids, counts, sizes = (np.array([one[column] for one in rows], np.int64) for column in (0, 2, 3))
    label, valid = read_steps(session, ids, counts)
    share, substeps = read_shares(session, ids, counts), read_substeps(session, ids, counts, sizes)
    names, metas = (tuple(one[column] for one in rows) for column in (1, 4))
    return TraceGold(
        trace_ids=ids,
        ids=names,
        counts=counts,
        label=label,
        valid=valid,
        substeps=substeps,
        share=share,
    ), metas


def read_steps(session: Session, trace_ids: Ints, counts: AnyInts) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return `label` and `valid` for all steps of the given traces, trace by trace. `counts` holds the step counts
    of the traces. Both arrays are `SILENT` where there is no gold label."""
    statement = text(_STEPS[session.get_bind().dialect.name]).bindparams(bindparam("ids", expanding=True))
    signs: dict[int, str] = {}
    ids = trace_ids.tolist()
    for start in range(0, len(ids), _MOST):
        # Not through the session, whose work on each row would take most of the time.
        part = session.connection().execute(statement, {"ids": ids[start : start + _MOST]})
        signs.update((id, found) for id, found in part)
    if [len(signs.get(id, "")) for id in ids] != counts.tolist():
        raise DamagedError("steps: not as many as their traces should have.")
    codes = np.frombuffer("".join(map(signs.__getitem__, ids)).encode(), np.int8) - np.int8(ord("a"))
    return codes // 3 + np.int8(SILENT), codes % 3 + np.int8(SILENT)


def read_substeps(session: Session, trace_ids: Ints, counts: Ints, sizes: Ints) -> NDArray[np.int32]:
    """Return the sub-step count of each step, given each trace's step count and sub-step count."""
    substeps = np.ones(int(counts.sum()), np.int32)
    # In the order of the keys, which is that of the rows in the database.
    parted = np.flatnonzero(sizes != counts)
    parted = parted[np.argsort(trace_ids[parted])]
    first = starts(counts)
    for begin in range(0, len(parted), _MOST):
        places = parted[begin : begin + _MOST]
        step = SubstepRow.trace_id, SubstepRow.step
        numbers = select(func.count()).where(SubstepRow.trace_id.in_(trace_ids[places].tolist()))
        numbers = numbers.group_by(*step).order_by(*step)
        found = np.array(session.connection().scalars(numbers).all(), np.int32)
        if len(found) != counts[places].sum():
            raise DamagedError("substeps: a step has none.")
        substeps[np.repeat(first[places], counts[places]) + within(counts[places])] = found
    return substeps


def starts(counts: AnyInts) -> Ints:
    """Return the index at which each of several consecutive runs starts, given the lengths of the runs."""
    begin: Ints = np.cumsum(counts, dtype=np.int64) - counts
    return begin


def within(counts: AnyInts) -> Ints:
    """Return the ranges 0, …, count - 1 for every count, concatenated into one array."""
    return np.arange(int(counts.sum())) - np.repeat(starts(counts), counts)


@dataclass(frozen=True, eq=False)
class JudgmentRows:
    """The scores of `m` judgments, each online or offline, in the order of traces, evaluators and modes.

    `trace` and `evaluator` are indices, and `online` is True for online judgments; all three have shape (m,).
    `probs` has shape (sub-steps, 3), judgment by judgment. `solution` is the judgment's score of the whole
    solution, or NaN. `spread` has shape (sub-steps,), NaN where a judgment has none. `rationale` is an index into
    `rationales`, or `SILENT`.
    """

    trace: Ints
    evaluator: Ints
    online: Bools
    probs: Floats32
    solution: Floats64
    spread: Floats32
    rationale: Ints
    rationales: tuple[str, ...]


def read_rows(
    session: Session,
    gold: TraceGold,
    part: slice,
    evaluator_ids: Sequence[int],
    modes: Sequence[Mode] = (Mode.ONLINE, Mode.OFFLINE),
    *,
    rationales: bool = False,
) -> JudgmentRows:
    """Read the judgments by the given evaluators in the given modes, for the slice `part` of the traces. Raises
    `DamagedError` if the length of a judgment does not fit its trace, or if a value is not a probability."""
    row = JudgmentRow
    words = row.rationale if rationales else null()
    statement = (
        select(row.trace_id, row.evaluator_id, row.mode, row.scores, row.solution, row.spread, words)
        .join(TraceRow, TraceRow.id == row.trace_id)
        .where(row.trace_id.in_(gold.trace_ids[part].tolist()), row.evaluator_id.in_(evaluator_ids))
        .where(row.mode.in_([mode.value for mode in modes]), row.digest == TraceRow.digest)
    )
    trace_ids, evaluators, stored, *columns = read_columns(session, statement)
    trace = gold.places(np.array(trace_ids, np.int64))
    places = {id: place for place, id in enumerate(evaluator_ids)}
    evaluator = np.array([places[id] for id in evaluators], np.int64)
    online = np.array([mode == Mode.ONLINE for mode in stored], np.bool_)
    order = np.lexsort((~online, evaluator, trace))
    blobs, solutions, spreads, words_of = ([column[place] for place in order] for column in columns)
    sizes = gold.sizes[trace[order]]
    probs = join_scores(blobs, sizes)
    spread = np.full(len(probs), np.nan, np.float32)
    texts: dict[str, int] = {}
    for start, size, blob in zip(starts(sizes), sizes, spreads, strict=True):
        if blob is not None:
            spread[start : start + size] = _floats(blob, size)
    return JudgmentRows(
        trace=trace[order],
        evaluator=evaluator[order],
        online=online[order],
        probs=probs,
        # None becomes NaN.
        solution=np.array(solutions, np.float64),
        spread=spread,
        rationale=np.array([texts.setdefault(word, len(texts)) if word else SILENT for word in words_of], np.int64),
        rationales=tuple(texts),
    )


def read_ends(session: Session, gold: TraceGold, evaluator_ids: Sequence[int]) -> tuple[JudgmentRows, JudgmentRows]:
    """Return the online and the offline ends of the hindsight judgments of these traces, without their other
    values."""
    row = TriangleRow
    statement = (
        select(row.trace_id, row.evaluator_id, row.online, row.offline)
        .join(TraceRow, TraceRow.id == row.trace_id)
        .where(row.trace_id.in_(gold.trace_ids.tolist()), row.evaluator_id.in_(evaluator_ids))
        .where(row.digest == TraceRow.digest)
    )
    trace_ids, evaluators, *ends = read_columns(session, statement)
    trace = gold.places(np.array(trace_ids, np.int64))
    places = {id: place for place, id in enumerate(evaluator_ids)}
    evaluator = np.array([places[id] for id in evaluators], np.int64)
    order = np.lexsort((evaluator, trace))
    trace, evaluator = trace[order], evaluator[order]
    sizes, none = gold.sizes[trace], np.full(len(trace), np.nan)
    online, offline = (
        JudgmentRows(
            trace=trace,
            evaluator=evaluator,
            online=np.full(len(trace), is_online),
            probs=join_scores([blobs[place] for place in order], sizes),
            solution=none,
            spread=np.full(int(sizes.sum()), np.nan, np.float32),
            rationale=np.full(len(trace), SILENT),
            rationales=(),
        )
        for is_online, blobs in zip((True, False), ends, strict=True)
    )
    return online, offline


def join_scores(blobs: Sequence[bytes], sizes: Ints) -> Floats32:
    """Concatenate stored scores, an array of shape (sub-steps, 3). `sizes` has the number of sub-steps of each.
    Raises `DamagedError` if a length does not fit, or if a value is not a probability."""
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    if (lengths != sizes * len(Label) * 4).any():
        raise DamagedError("judgments: not as many scores as their trace has steps.")
    probs = np.frombuffer(b"".join(blobs), "<f4").astype(np.float32, copy=False)
    if len(probs) and not are_probabilities(probs):
        raise DamagedError("judgments: a value is not a probability.")
    return probs.reshape(-1, len(Label))


def _floats(blob: bytes, size: int) -> Floats32:
    if len(blob) != size * 4:
        raise DamagedError("judgments: not as many spreads as their trace has steps.")
    return np.frombuffer(blob, "<f4")


def substeps_of(gold: TraceGold, trace: Ints) -> tuple[Ints, Ints]:
    """Return, for every sub-step of judgments of the given traces, the index of the judgment in `trace` and the
    index of the sub-step in `gold`."""
    sizes = gold.sizes[trace]
    return np.repeat(np.arange(len(trace)), sizes), np.repeat(starts(gold.sizes)[trace], sizes) + within(sizes)


def read_table(store: Store, gold: Gold, evaluator_id: int, mode: Mode) -> StepTable:
    """Return an evaluator's scores in a mode, joined with the gold labels.

    The table contains only the steps of traces with a judgment in the mode. If `gold.kept` hides some steps,
    offline scores are those of the last step in view, taken from hindsight judgments.
    """
    probs = np.full((len(gold.owners), len(Label)), np.nan, np.float32)
    solution = np.full(len(gold.ids), np.nan)
    judged = np.zeros(len(gold.ids), np.bool_)
    is_cut = gold.kept is not None and mode == Mode.OFFLINE
    with store.read() as session:
        for start in range(0, len(gold.ids), _MOST):
            part = slice(start, start + _MOST)
            if is_cut:
                trace, scores = _read_cut(session, gold, part, evaluator_id)
            else:
                judgments = read_rows(session, gold, part, (evaluator_id,), (mode,))
                trace, scores = judgments.trace, judgments.probs
                solution[trace] = judgments.solution
            _, own = substeps_of(gold, trace)
            probs[own] = scores
            judged[trace] = True
    if gold.kept is not None:
        # A score of the whole solution says nothing about its beginning.
        solution[:] = np.nan
    table = build_columns(gold, probs, solution)
    shown = judged[table.trace] & gold.in_view
    return table if shown.all() else table.where(shown)


def _read_cut(session: Session, gold: Gold, part: slice, evaluator_id: int) -> tuple[Ints, Floats32]:
    """Return the traces with a hindsight judgment, and the scores of all their sub-steps when the last one in view
    had been read. Later sub-steps have NaN."""
    row = TriangleRow
    statement = (
        select(row.trace_id, row.packed)
        .join(TraceRow, TraceRow.id == row.trace_id)
        .where(row.trace_id.in_(gold.trace_ids[part].tolist()), row.evaluator_id == evaluator_id)
        .where(row.digest == TraceRow.digest)
    )
    trace_ids, blobs = read_columns(session, statement)
    trace = gold.places(np.array(trace_ids, np.int64))
    sizes, last = gold.sizes[trace], gold.last_in_view[trace]
    packed = join_scores(blobs, sizes * (sizes + 1) // 2)
    # Row j of a triangle is behind those of 1, 2, ..., j scores.
    first = starts(sizes * (sizes + 1) // 2) + last * (last + 1) // 2
    i, at = within(sizes), np.repeat(last, sizes)
    scores = packed[np.repeat(first, sizes) + np.minimum(i, at)]
    return trace, np.where((i > at)[:, None], np.float32(np.nan), scores)


def build_columns(gold: Gold, probs: Floats32, solution: Floats64) -> StepTable:
    """Build the step table of a dataset from `probs`, which has one row of probabilities per sub-step. A row of
    zeros or NaN stands for missing scores. If every step has exactly one sub-step, `probs` is not copied."""
    if gold.has_substeps:
        least, redundancy, silent = step_rows(probs, gold.owners)
        probs = probs[least]
    else:
        redundancy, silent = probs[:, Label.NEU], unsaid(probs)
    if silent.any():
        probs, redundancy = np.where(silent[:, None], np.nan, probs), np.where(silent, np.nan, redundancy)
    return StepTable(
        ids=gold.ids,
        trace=gold.trace,
        position=gold.position,
        label=gold.label,
        valid=gold.valid,
        share=gold.share,
        redundancy=redundancy,
        probs=probs,
        solution=solution,
        groups=gold.groups,
    )


def step_rows(probs: Floats32, owners: AnyInts) -> tuple[Ints, Floats32, Bools]:
    """Reduce sub-step scores of shape (sub-steps, 3) to steps.

    Returns three arrays of shape (steps,): the index of each step's least valid sub-step, the greatest redundancy
    among its sub-steps, and whether any of its sub-steps has no scores. `owners` holds the index of the step that
    each sub-step belongs to, in ascending order.
    """
    silent = unsaid(probs)
    validity = np.where(silent, np.float32(np.nan), probs[:, Label.NEU] + probs[:, Label.POS])
    first = first_of_steps(owners)
    redundancy = np.maximum.reduceat(probs[:, Label.NEU], first)
    return least_valid(validity, owners), redundancy, np.logical_or.reduceat(silent, first)


def unsaid(probs: Floats32) -> Bools:
    """Return a mask that selects the rows without scores, which contain only zeros or NaN."""
    silent: Bools = ~probs.any(axis=1) | np.isnan(probs[:, 0])
    return silent
