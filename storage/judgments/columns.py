"""The gold labels and judgments of traces as numeric columns, for metrics, exports, filters and sorting.

No Python object is created per row. The judgments of a few thousand traces are read into one array, from which the
rows of a mode are selected by index. If a trace has several judgments, the standing one is used, as defined in
`judgments`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import intern
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, func, null, or_, select, text
from sqlalchemy.orm import Session

from stepsight.core.arrays import AnyInts, Bools, Floats32, Floats64, Ints
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.storage.database.schema import JudgmentRow, SubstepRow, TraceRow
from stepsight.storage.database.store import Store, read_columns
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.judgments.judgments import (
    are_probabilities,
    stands,
)
from stepsight.storage.judgments.step_profiles import step_rows, unsaid
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
        substeps = _read_substeps(session, trace_ids, counts, sizes)
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
    share, substeps = read_shares(session, ids, counts), _read_substeps(session, ids, counts, sizes)
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


def _read_substeps(session: Session, trace_ids: Ints, counts: Ints, sizes: Ints) -> NDArray[np.int32]:
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
    """The probabilities of `m` judgments, each of which stands in at least one of the requested modes.

    `trace`, `evaluator` and `hindsight` (True for a hindsight judgment) have shape (m,). `stands` has shape (m,
    modes) and is True for the modes in which a judgment stands. `probs` has shape (rows, 3), and `start` has shape
    (m,) and holds the index in `probs` of each judgment's first row. `solution` is the judgment's score of the
    whole solution, or NaN. `spread_start` is the index in `spread` of its first value, and `rationale` is an index
    into `rationales`. Both are `SILENT` if the judgment has no spread or no rationale.

    """

    trace: Ints
    evaluator: Ints
    hindsight: Bools
    stands: Bools
    probs: Floats32
    start: Ints
    solution: Floats64
    spread: Floats32
    spread_start: Ints
    rationale: Ints
    rationales: tuple[str, ...]

    def place(self, judgment: Ints, row: Ints, i: Ints) -> Ints:
        """Return the index in `probs` of sub-step `i` in the row `row` of each given judgment's triangle. If a
        judgment is not in hindsight mode, `row` is ignored."""
        return self.start[judgment] + np.where(self.hindsight[judgment], row * (row + 1) // 2, 0) + i

    def spread_at(self, judgment: Ints, i: Ints) -> Floats32:
        """Return the spread of each given judgment at the sub-step with the index `i`, or NaN if the judgment has
        no spread."""
        start = self.spread_start[judgment]
        there = start != SILENT
        if not there.any():
            return np.full(len(i), np.nan, np.float32)
        spread: Floats32 = np.where(there, self.spread[np.where(there, start + i, 0)], np.float32(np.nan))
        return spread


def read_rows(
    session: Session,
    gold: TraceGold,
    part: slice,
    evaluator_ids: Sequence[int],
    modes: Sequence[Mode],
    *,
    rationales: bool = False,
) -> JudgmentRows:
    """Read the judgments by the given evaluators that stand in the given modes, for the slice `part` of the traces.
    Raises `DamagedError` if the length of a judgment does not fit its trace, or if a value is not a probability."""
    row, standing = JudgmentRow, [stands(mode) for mode in modes]
    # For a single mode the condition says it already.
    shown = standing if len(modes) > 1 else []
    statement = (
        select(row.trace_id, row.evaluator_id, row.mode, row.probabilities, row.solution, row.spread,
               row.rationale if rationales else null(), *shown)
        .join(TraceRow, TraceRow.id == row.trace_id)
        .where(row.trace_id.in_(gold.trace_ids[part].tolist()), row.evaluator_id.in_(evaluator_ids), or_(*standing))
    )  # fmt: skip
    columns = read_columns(session, statement)
    trace_ids, evaluators, stored, blobs, solutions, spreads, words, *standing_in = columns
    trace = gold.places(np.array(trace_ids, np.int64))
    places = {id: place for place, id in enumerate(evaluator_ids)}
    hindsight = np.array([mode == Mode.HINDSIGHT for mode in stored], np.bool_)
    n = gold.sizes[trace]
    probs, lengths = _joined(blobs)
    spread, spread_lengths = _joined([blob or b"" for blob in spreads])
    has_spread = spread_lengths > 0
    expected = np.where(hindsight, n * (n + 1) // 2, n) * len(Label)
    if (lengths != expected).any() or (spread_lengths[has_spread] != n[has_spread]).any():
        raise DamagedError("judgments.probabilities: not as many as their trace has steps.")
    if len(probs) and not are_probabilities(probs):
        raise DamagedError("judgments.probabilities: a value is not a probability.")
    texts: dict[str, int] = {}
    rationale = [texts.setdefault(word, len(texts)) if word else SILENT for word in words]
    return JudgmentRows(
        trace=trace,
        evaluator=np.array([places[id] for id in evaluators], np.int64),
        hindsight=hindsight,
        stands=np.array(standing_in or [[True] * len(stored)], np.bool_).T,
        probs=probs.reshape(-1, len(Label)),
        start=starts(lengths) // len(Label),
        # None becomes NaN.
        solution=np.array(solutions, np.float64),
        spread=spread,
        spread_start=np.where(has_spread, starts(spread_lengths), SILENT),
        rationale=np.array(rationale, np.int64),
        rationales=tuple(texts),
    )


def _joined(stored: Sequence[bytes]) -> tuple[Floats32, Ints]:
    """Concatenate the stored float32 arrays. Return the result together with the length of each array."""
    sizes = np.fromiter(map(len, stored), np.int64, len(stored))
    if (sizes % 4).any():
        raise DamagedError("judgments.probabilities: a number is cut off.")
    return np.frombuffer(b"".join(stored), "<f4").astype(np.float32, copy=False), sizes // 4


def substep_rows(
    gold: TraceGold, judgments: JudgmentRows, chosen: Ints, online: Bools, last: Ints | None = None
) -> tuple[Ints, Ints, Floats32]:
    """Return the online or offline probabilities of every sub-step of the chosen judgments.

    The result is three arrays, with the index of the judgment in `chosen`, the index of the sub-step in `gold`, and
    the probabilities. `online` says for each judgment which of the two to return. A hindsight judgment has a
    triangle of probabilities, with one row for each number of sub-steps read so far. The online probabilities of a
    sub-step come from the row in which the last sub-step of its step had been read. The offline ones come from the
    row of sub-step `last[trace]`, by default the final one, and sub-steps after `last` get NaN.
    """
    trace = judgments.trace[chosen]
    sizes = gold.sizes[trace]
    rows, i = np.repeat(np.arange(len(chosen)), sizes), within(sizes)
    own = np.repeat(starts(gold.sizes)[trace], sizes) + i
    end = np.repeat(sizes - 1 if last is None else last[trace], sizes)
    j = np.where(online[rows], gold.step_ends[own], end)
    seen = np.where(judgments.hindsight[chosen][rows], np.minimum(i, j), i)
    probs = judgments.probs[judgments.place(chosen[rows], j, seen)]
    return rows, own, probs if last is None else np.where((i > j)[:, None], np.float32(np.nan), probs)


def read_table(store: Store, gold: Gold, evaluator_id: int, mode: Mode) -> StepTable:
    """Return an evaluator's scores in a mode, joined with the gold labels.

    The table contains only the steps of traces with a standing judgment. If `gold.kept` hides some steps, offline
    scores are taken only from hindsight judgments.
    """
    asked = Mode.HINDSIGHT if gold.kept is not None and mode == Mode.OFFLINE else mode
    probs = np.full((len(gold.owners), len(Label)), np.nan, np.float32)
    solution = np.full(len(gold.ids), np.nan)
    judged = np.zeros(len(gold.ids), np.bool_)
    last = None if gold.kept is None else gold.last_in_view
    with store.read() as session:
        for start in range(0, len(gold.ids), _MOST):
            judgments = read_rows(session, gold, slice(start, start + _MOST), (evaluator_id,), (asked,))
            everyone = np.arange(len(judgments.trace))
            online = np.full(len(everyone), mode == Mode.ONLINE)
            _, own, found = substep_rows(gold, judgments, everyone, online, last)
            probs[own] = found
            solution[judgments.trace] = judgments.solution
            judged[judgments.trace] = True
    if gold.kept is not None:
        # A score of the whole solution says nothing about its beginning.
        solution[:] = np.nan
    table = build_columns(gold, probs, solution)
    wanted = judged[table.trace] & gold.in_view
    return table if wanted.all() else table.where(wanted)


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
