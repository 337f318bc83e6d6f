"""The gold and the judgments of a dataset as columns: what metrics are computed from, without its texts."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from sys import intern

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from stepsight.core.arrays import AnyInts, Ints
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.storage.database.schema import (
    DIGEST_LENGTH,
    CalibrationRow,
    DatasetRow,
    JudgedRow,
    JudgmentRow,
    StepRow,
    SubstepRow,
    TraceRow,
)
from stepsight.storage.database.store import IN_PARTS, Store
from stepsight.storage.traces.columns import trace_group
from stepsight.storage.traces.queries import Dataset

Rows = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Gold:
    """A dataset's traces in file order. Of shape (traces,): `trace_ids` of the database, `ids`, `digests`, `groups`
    (the class that the benchmark puts a trace in, else ""), `counts` of steps. Of shape (steps,): `label` and
    `valid`, `SILENT` where the gold is, and `substeps`, how many each has. With `kept`, of shape (traces,), only so
    many steps of each trace are in view; the others are in no table."""

    dataset: Dataset
    trace_ids: Ints
    ids: tuple[str, ...]
    digests: NDArray[np.bytes_]
    groups: tuple[str, ...]
    counts: Ints
    label: AnyInts
    valid: AnyInts
    substeps: AnyInts
    kept: Ints | None = None

    @cached_property
    def in_view(self) -> NDArray[np.bool_]:
        """Whether each step is in view, shape (steps,)."""
        if self.kept is None:
            return np.ones(len(self.label), np.bool_)
        inside: NDArray[np.bool_] = self.position < self.kept[self.trace]
        return inside

    @cached_property
    def trace(self) -> AnyInts:
        """The place of each step's trace, shape (steps,)."""
        return np.repeat(np.arange(len(self.counts), dtype=np.int32), self.counts)

    @cached_property
    def position(self) -> AnyInts:
        """The place of each step in its trace, shape (steps,)."""
        starts = (np.cumsum(self.counts) - self.counts).astype(np.int32)
        return np.arange(len(self.label), dtype=np.int32) - np.repeat(starts, self.counts)

    def ends_at_first_error(self) -> bool:
        """Whether the labelled traces stop at their first error, so that their endings give it away: at least nine
        of ten that have one, as in PRM800K."""
        wrong = np.flatnonzero(self.valid == 0)
        if not len(wrong):
            return False
        traces, first = np.unique(self.trace[wrong], return_index=True)
        at_end = self.position[wrong[first]] == self.counts[traces] - 1
        return bool(at_end.mean() >= 0.9)


def read_gold(store: Store, dataset: Dataset) -> Gold:
    """The gold of a dataset, in memory in proportion to its steps."""
    traces = (
        select(TraceRow.id, TraceRow.external_id, TraceRow.digest, TraceRow.n_steps, trace_group())
        .where(TraceRow.dataset_id == dataset.id)
        .order_by(TraceRow.position)
    )
    names: list[str] = []
    groups: list[str] = []
    numbers, digests = [np.empty((0, 2), np.int64)], [np.empty(0, f"S{DIGEST_LENGTH}")]
    with store.read() as session:
        for part in session.execute(traces, execution_options=IN_PARTS).partitions():
            ids, some, texts, counts, of = zip(*part, strict=True)
            names.extend(some)
            # Thousands of traces share a name of few.
            groups.extend(intern(str(group)) for group in of)
            numbers.append(np.column_stack([ids, counts]))
            digests.append(np.array([text.encode() for text in texts], digests[0].dtype))
        label, valid, substeps = _read_steps(session, dataset.id)
    trace_ids, counts = np.concatenate(numbers).T
    # Traces that were added between the queries come last.
    steps = int(counts.sum())
    return Gold(
        dataset=dataset,
        trace_ids=trace_ids,
        ids=tuple(names),
        digests=np.concatenate(digests),
        groups=tuple(groups),
        counts=counts,
        label=label[:steps],
        valid=valid[:steps],
        substeps=substeps[:steps],
    )


def _read_steps(session: Session, dataset_id: int) -> tuple[AnyInts, AnyInts, AnyInts]:
    of_dataset = TraceRow.dataset_id == dataset_id
    steps = (
        select(StepRow.label, StepRow.valid)
        .join(TraceRow, TraceRow.id == StepRow.trace_id)
        .where(of_dataset)
        .order_by(TraceRow.position, StepRow.position)
    )
    substeps = (
        select(func.count())
        .select_from(SubstepRow)
        .join(TraceRow, TraceRow.id == SubstepRow.trace_id)
        .where(of_dataset)
        .group_by(TraceRow.position, SubstepRow.step)
        .order_by(TraceRow.position, SubstepRow.step)
    )
    labels, counts = [np.empty((0, 2), np.int8)], [np.empty(0, np.int32)]
    for part in session.execute(steps, execution_options=IN_PARTS).partitions():
        rows = [(SILENT if label is None else label, SILENT if valid is None else valid) for label, valid in part]
        labels.append(np.array(rows, np.int8))
    for numbers in session.scalars(substeps, execution_options=IN_PARTS).partitions():
        counts.append(np.array(numbers, np.int32))
    gold = np.concatenate(labels)
    return gold[:, 0], gold[:, 1], np.concatenate(counts)


def read_table(store: Store, gold: Gold, evaluator_id: int, mode: Mode) -> StepTable:
    """What an evaluator said in a mode, with the gold; only the traces of which it has a judgment that is not stale
    have steps in it. A hindsight judgment answers for either mode, and where steps are out of view it alone tells
    what was said offline with the others."""
    places = {int(trace_id): place for place, trace_id in enumerate(gold.trace_ids)}
    ends = np.cumsum(gold.counts)
    sizes = np.add.reduceat(gold.substeps, ends - gold.counts) if len(ends) else np.empty(0, np.int64)
    first_substep = np.cumsum(sizes) - sizes
    step_ends = np.repeat(np.cumsum(gold.substeps) - 1, gold.substeps)
    last = None if gold.kept is None else step_ends[first_substep + _substeps_before(gold)] - first_substep
    probs = np.full((int(sizes.sum()), 3), np.nan, np.float32)
    solution = np.full(len(ends), np.nan)
    judged = np.zeros(len(ends), np.bool_)
    for trace_id, stored, digest, data, whole in _judgments(store, gold.dataset.id, evaluator_id, mode):
        place = places.get(trace_id)
        if place is None or digest.encode() != gold.digests[place]:
            continue
        own = slice(first_substep[place], first_substep[place] + sizes[place])
        rows = _rows(data, step_ends[own] - own.start, stored, mode, None if last is None else int(last[place]))
        if rows is None:
            continue
        probs[own] = rows
        # A score of the whole says nothing of a beginning.
        solution[place] = np.nan if whole is None or gold.kept is not None else whole
        judged[place] = True
    table = build_columns(gold, probs, solution)
    wanted = judged[table.trace] & gold.in_view
    return table if wanted.all() else table.where(wanted)


def _substeps_before(gold: Gold) -> Ints:
    """How many sub-steps of each trace come before its last step in view."""
    assert gold.kept is not None
    before = gold.position < gold.kept[gold.trace] - 1
    return np.bincount(gold.trace, np.where(before, gold.substeps, 0), len(gold.ids)).astype(np.int64)


def _judgments(
    store: Store, dataset_id: int, evaluator_id: int, mode: Mode
) -> Iterator[Row[int, str, str, bytes, float | None]]:
    """Judgments of the mode come after hindsight ones, and so replace them."""
    row = JudgmentRow
    statement = select(row.trace_id, row.mode, row.trace_digest, row.probabilities, row.solution).where(
        row.evaluator_id == evaluator_id, row.dataset_id == dataset_id
    )
    with store.read() as session:
        for stored in (Mode.HINDSIGHT, mode):
            answers = session.execute(statement.where(row.mode == stored.value), execution_options=IN_PARTS)
            for part in answers.partitions():
                yield from part


def _rows(data: bytes, step_ends: Ints, stored: str, mode: Mode, last: int | None) -> Rows | None:
    """The rows of a mode, one for each of the sub-steps, whose `step_ends` are those of `Trace`; None where the
    judgment is of other steps. `last` is the last sub-step in view, None where all are: offline, those behind it
    have no numbers, and a judgment that is not of hindsight tells nothing."""
    rows: Rows = np.frombuffer(data, "<f4").reshape(-1, 3)
    size = len(step_ends)
    if stored != Mode.HINDSIGHT:
        return rows if len(rows) == size and (last is None or mode == Mode.ONLINE) else None
    if len(rows) != size * (size + 1) // 2:
        return None
    if mode == Mode.ONLINE:
        online: Rows = rows[step_ends * (step_ends + 1) // 2 + np.arange(size)]
        return online
    if last is None:
        return rows[-size:]
    seen: Rows = np.full((size, 3), np.nan, np.float32)
    seen[: last + 1] = rows[last * (last + 1) // 2 :][: last + 1]
    return seen


def build_columns(gold: Gold, probs: Rows, solution: NDArray[np.float64]) -> StepTable:
    """The table of a dataset from a row per sub-step; a row of zeros says nothing, as one of NaN does. Where each
    step has one, they are the table's, not copies."""
    unsaid = (probs.sum(axis=1) == 0) | np.isnan(probs[:, 0])
    redundancy = probs[:, Label.NEU]
    if (gold.substeps > 1).any():
        starts = np.cumsum(gold.substeps) - gold.substeps
        validity = np.where(unsaid, np.nan, redundancy + probs[:, Label.POS])
        owners = np.repeat(np.arange(len(gold.substeps)), gold.substeps)
        # The row of the least valid sub-step, the first of equal ones: sorted by step and then validity.
        order = np.lexsort((np.arange(len(owners)), validity, owners))
        probs, redundancy = probs[order[starts]], np.maximum.reduceat(redundancy, starts)
        unsaid = np.maximum.reduceat(unsaid, starts)
    if unsaid.any():
        probs, redundancy = np.where(unsaid[:, None], np.nan, probs), np.where(unsaid, np.nan, redundancy)
    return StepTable(
        ids=gold.ids,
        trace=gold.trace,
        position=gold.position,
        label=gold.label,
        valid=gold.valid,
        redundancy=redundancy,
        probs=probs,
        solution=solution,
        groups=gold.groups,
    )


Basis = tuple[int, ...]


def read_data_version(store: Store, dataset_id: int) -> Basis:
    """Of a dataset the revisions of its traces and of each evaluator's judgments, and the newest calibration."""
    traces = select(DatasetRow.revision).where(DatasetRow.id == dataset_id)
    judged = (
        select(JudgedRow.evaluator_id, JudgedRow.revision)
        .where(JudgedRow.dataset_id == dataset_id)
        .order_by(JudgedRow.evaluator_id)
    )
    newest = select(func.max(CalibrationRow.id))
    with store.read() as session:
        head = (session.scalar(traces) or 0, session.scalar(newest) or 0)
        return (*head, *(number for row in session.execute(judged) for number in row))


def read_version_of(store: Store, dataset_id: int, evaluator_id: int) -> Basis:
    """Of a dataset the revisions of its traces and of one evaluator's judgments, and its newest calibration."""
    traces = select(DatasetRow.revision).where(DatasetRow.id == dataset_id)
    judged = select(JudgedRow.revision).where(
        JudgedRow.dataset_id == dataset_id, JudgedRow.evaluator_id == evaluator_id
    )
    newest = select(func.max(CalibrationRow.id)).where(CalibrationRow.evaluator_id == evaluator_id)
    with store.read() as session:
        return tuple(session.scalar(one) or 0 for one in (traces, judged, newest))
