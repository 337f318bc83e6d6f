"""The gold labels and judgments of traces as numeric columns, for metrics, exports, filters and sorting.

No Python object is created per row: the judgments of a few thousand traces are read into one array.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import intern
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, bindparam, exists, func, literal, select, text
from sqlalchemy.orm import Session

from stepsight.core.arrays import AnyInts, Bools, Floats32, Floats64, Ints
from stepsight.core.judgment import Mode
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.core.scores import first_of_steps, least_valid
from stepsight.core.trace import Label
from stepsight.storage.database.schema import JudgmentRow, StepRow, SubstepRow, TraceRow, TriangleRow
from stepsight.storage.database.store import IN_PARTS, Store, read_columns
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.judgments.judgments import are_probabilities
from stepsight.storage.traces.queries import Dataset

# The number of traces read at once; every database allows an IN clause with this many keys.
_MOST = 2_000
GROUP_KEYS = ("classification", "question_type", "family", "generator")
"""The fields of a benchmark's metadata that give the class of a trace, the first one first."""
# One text per trace: fetching a row per step would take three times as long.
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

    `trace_ids` (database ids), `ids`, `counts` (step counts), `digests` and `groups` have one value per trace. A
    group is the benchmark's class of a trace, or "". `label`, `valid` and `substeps` (sub-step counts) have one
    value per step, trace by trace. `label` and `valid` are `SILENT` where there is no gold label. `share` has one
    value per step too, NaN where there is none, or is None if no step has a share.

    If `kept` is given, an array of shape (traces,), only the first `kept[i]` steps of trace i are in view, and
    tables omit the rest.
    """

    trace_ids: Ints
    ids: tuple[str, ...]
    counts: Ints
    label: AnyInts
    valid: AnyInts
    substeps: AnyInts
    digests: tuple[str, ...]
    groups: tuple[str, ...]
    share: Floats64 | None = None
    kept: Ints | None = None

    def __len__(self) -> int:
        return len(self.trace_ids)

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
        return np.repeat(np.arange(len(self.substeps), dtype=np.int32), self.substeps)

    @cached_property
    def _id_order(self) -> Ints:
        return np.argsort(self.trace_ids, kind="stable")

    def places(self, trace_ids: Ints) -> Ints:
        """Return the index of each given database id in `trace_ids`, or `SILENT` if it is not among them."""
        if not len(self):
            return np.full(len(trace_ids), SILENT)
        index = np.searchsorted(self.trace_ids, trace_ids, sorter=self._id_order)
        places = self._id_order[np.minimum(index, len(self) - 1)]
        return np.where(self.trace_ids[places] == trace_ids, places, SILENT)

    @cached_property
    def in_view(self) -> Bools:
        """A mask of shape (steps,) that selects the steps in view. Without `kept`, these are all steps."""
        if self.kept is None:
            return np.ones(len(self.label), np.bool_)
        return self.position < self.kept[self.trace]

    @cached_property
    def last_in_view(self) -> Ints:
        """The index within each trace of its last sub-step in view, as an array of shape (traces,)."""
        sub_steps = np.bincount(self.trace, np.where(self.in_view, self.substeps, 0), len(self.counts))
        return sub_steps.astype(np.int64) - 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Gold(TraceGold):
    """The gold labels of all traces of a dataset, in file order."""

    dataset: Dataset

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
    with store.read() as session:
        return Gold(dataset=dataset, **read_gold_columns(session, TraceRow.dataset_id == dataset.id))


def read_gold_columns(
    session: Session, chosen: ColumnElement[bool], order: Sequence[int] | None = None, *, brief: bool = False
) -> dict[str, Any]:
    """Return the fields of a `TraceGold` of the chosen traces, in file order or in the `order` of database ids.
    To save memory, `brief` ones have no shares, and their ids and digests are empty."""
    row = TraceRow
    group = func.coalesce(*[row.meta[key].as_string() for key in GROUP_KEYS], "")
    texts = (literal(""), literal("")) if brief else (row.external_id, row.digest)
    statement = select(row.id, *texts, row.n_steps, row.n_substeps, group)
    columns = read_columns(session, statement.where(chosen).order_by(row.position))
    if order is not None:
        place = {id: place for place, id in enumerate(columns[0])}
        columns = [[column[place[id]] for id in order if id in place] for column in columns]
    ids, names, digests, *numbers, groups = columns
    trace_ids, counts, sizes = (np.array(column, np.int64) for column in (ids, *numbers))
    label, valid = read_steps(session, trace_ids, counts)
    return {
        "trace_ids": trace_ids,
        "ids": tuple(names),
        "counts": counts,
        "label": label,
        "valid": valid,
        "substeps": read_substeps(session, trace_ids, counts, sizes),
        "digests": tuple(digests),
        # Thousands of traces share a few names.
        "groups": tuple(intern(str(group)) for group in groups),
        "share": None if brief else read_shares(session, trace_ids, counts),
    }


def read_steps(session: Session, trace_ids: Ints, counts: AnyInts) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return `label` and `valid` for all steps of the given traces, trace by trace. `counts` holds the step counts
    of the traces. Both arrays are `SILENT` where there is no gold label."""
    statement = text(_STEPS[session.get_bind().dialect.name]).bindparams(bindparam("ids", expanding=True))
    signs: dict[int, str] = {}
    ids = trace_ids.tolist()
    for start in range(0, len(ids), _MOST):
        # Read without the session, whose work on each row would take most of the time.
        part = session.connection().execute(statement, {"ids": ids[start : start + _MOST]})
        signs.update((id, of_trace) for id, of_trace in part)
    if [len(signs.get(id, "")) for id in ids] != counts.tolist():
        raise DamagedError("steps: their number does not match the traces.")
    codes = np.frombuffer("".join(map(signs.__getitem__, ids)).encode(), np.int8) - np.int8(ord("a"))
    return codes // 3 + np.int8(SILENT), codes % 3 + np.int8(SILENT)


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


def read_substeps(session: Session, trace_ids: Ints, counts: Ints, sizes: Ints) -> NDArray[np.int32]:
    """Return the sub-step count of each step, given each trace's step count and sub-step count."""
    substeps = np.ones(int(counts.sum()), np.int32)
    # Sorted by key, which is the order of the rows in the database.
    parted = np.flatnonzero(sizes != counts)
    parted = parted[np.argsort(trace_ids[parted])]
    first = starts(counts)
    for begin in range(0, len(parted), _MOST):
        places = parted[begin : begin + _MOST]
        step = SubstepRow.trace_id, SubstepRow.step
        numbers = select(func.count()).where(SubstepRow.trace_id.in_(trace_ids[places].tolist()))
        numbers = numbers.group_by(*step).order_by(*step)
        sizes_of_steps = np.array(session.connection().scalars(numbers).all(), np.int32)
        if len(sizes_of_steps) != counts[places].sum():
            raise DamagedError("substeps: a step has no sub-step.")
        substeps[np.repeat(first[places], counts[places]) + within(counts[places])] = sizes_of_steps
    return substeps


def starts(counts: AnyInts) -> Ints:
    """Return the index at which each of several consecutive runs starts, given the lengths of the runs."""
    return np.cumsum(counts, dtype=np.int64) - counts


def within(counts: AnyInts) -> Ints:
    """Return the ranges 0, …, count - 1 for every count, concatenated into one array."""
    return np.arange(int(counts.sum())) - np.repeat(starts(counts), counts)


def join_scores(blobs: Sequence[bytes], sizes: Ints) -> Floats32:
    """Concatenate stored scores, an array of shape (sub-steps, 3). `sizes` has the number of sub-steps of each.
    Raises `DamagedError` if a length does not fit, or if a value is not a probability."""
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    if (lengths != sizes * len(Label) * 4).any():
        raise DamagedError("judgments: the scores do not match the steps of their trace.")
    probs = np.frombuffer(b"".join(blobs), "<f4").astype(np.float32, copy=False)
    if len(probs) and not are_probabilities(probs):
        raise DamagedError("judgments: a value is not a probability.")
    return probs.reshape(-1, len(Label))


def read_table(store: Store, gold: Gold, evaluator_id: int, mode: Mode) -> StepTable:
    """Like `read_scores`, but in a transaction of its own."""
    with store.read() as session:
        return read_scores(session, gold, gold.dataset.id, evaluator_id, mode)


def read_scores(
    session: Session, gold: TraceGold, dataset_id: int, evaluator_id: int, mode: Mode, *, of_hindsight: bool = False
) -> StepTable:
    """Return an evaluator's up-to-date scores of a dataset in a mode, joined with the gold labels.

    The table contains only the steps of traces with a judgment in the mode or, with `of_hindsight`, of those with a
    hindsight judgment, whose end it holds. If `gold.kept` hides some steps, offline scores are those of the last
    step in view, taken from hindsight judgments. Raises `DamagedError` if the length of a judgment does not fit its
    trace, or if a value is not a probability.
    """
    is_cut = gold.kept is not None and mode == Mode.OFFLINE
    row = TriangleRow if is_cut or of_hindsight else JudgmentRow
    scores = TriangleRow.packed if is_cut else getattr(row, mode.value) if of_hindsight else JudgmentRow.scores
    statement = (
        select(row.trace_id, scores, row.solution)
        .join(TraceRow, TraceRow.id == row.trace_id)
        .where(row.evaluator_id == evaluator_id, row.dataset_id == dataset_id, row.digest == TraceRow.digest)
    )
    if row is JudgmentRow:
        statement = statement.where(JudgmentRow.mode == mode.value)
    probs = np.full((len(gold.owners), len(Label)), np.nan, np.float32)
    solution = np.full(len(gold), np.nan)
    judged = np.zeros(len(gold), np.bool_)
    first = starts(gold.sizes)
    for part in session.connection().execute(statement, execution_options=IN_PARTS).partitions():
        ids, blobs, solutions = zip(*part, strict=True)
        trace = gold.places(np.array(ids, np.int64))
        # Traces added since the gold was read are skipped.
        present = np.flatnonzero(trace != SILENT)
        trace, stored = trace[present], [blobs[place] for place in present]
        sizes = gold.sizes[trace]
        own = np.repeat(first[trace], sizes) + within(sizes)
        probs[own] = _cut_triangles(gold, trace, stored) if is_cut else join_scores(stored, sizes)
        if gold.kept is None:
            # A score of the whole solution says nothing about its prefixes. None becomes NaN.
            solution[trace] = np.array(solutions, np.float64)[present]
        judged[trace] = True
    table = build_columns(gold, probs, solution)
    shown = judged[table.trace] & gold.in_view
    return table if shown.all() else table.where(shown)


def _cut_triangles(gold: TraceGold, trace: Ints, triangles: Sequence[bytes]) -> Floats32:
    """Return the scores of all sub-steps of traces when the last one in view had been read, from their packed
    hindsight judgments. Later sub-steps have NaN."""
    sizes, last = gold.sizes[trace], gold.last_in_view[trace]
    packed = join_scores(triangles, sizes * (sizes + 1) // 2)
    # Row j of a triangle comes after the rows with 1, 2, ..., j scores.
    first = starts(sizes * (sizes + 1) // 2) + last * (last + 1) // 2
    i, row = within(sizes), np.repeat(last, sizes)
    scores = packed[np.repeat(first, sizes) + np.minimum(i, row)]
    return np.where((i > row)[:, None], np.float32(np.nan), scores)


def build_columns(gold: TraceGold, probs: Floats32, solution: Floats64) -> StepTable:
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
    return ~probs.any(axis=1) | np.isnan(probs[:, 0])


def read_gold_of(session: Session, trace_ids: Sequence[int]) -> tuple[TraceGold, tuple[Mapping[str, Any], ...]]:
    """Read the gold labels and the metadata of the given traces, in order. Deleted traces are skipped."""
    chosen = TraceRow.id.in_(trace_ids)
    gold = TraceGold(**read_gold_columns(session, chosen, trace_ids))
    metas: dict[int, Mapping[str, Any]] = dict(
        session.connection().execute(select(TraceRow.id, TraceRow.meta).where(chosen)).all()
    )
    return gold, tuple(metas[id] for id in gold.trace_ids.tolist())


@dataclass(frozen=True, eq=False)
class JudgmentRows:
    """The scores of `m` judgments, each online or offline, in the order of traces, evaluators and modes.

    `trace` and `evaluator` are indices, and `online` is True for online judgments; all three have shape (m,).
    `probs` has shape (sub-steps, 3), judgment by judgment, and so have `ends`: what the same evaluator's hindsight
    judgment of the trace says online and offline, NaN without one. `solution` is the judgment's score of the whole
    solution, or NaN. `spread` has shape (sub-steps,), NaN where a judgment has none. `rationale` is an index into
    `rationales`, or `SILENT`.
    """

    trace: Ints
    evaluator: Ints
    online: Bools
    probs: Floats32
    ends: tuple[Floats32, Floats32]
    solution: Floats64
    spread: Floats32
    rationale: Ints
    rationales: tuple[str, ...]


def read_rows(session: Session, gold: TraceGold, evaluator_ids: Sequence[int]) -> JudgmentRows:
    """Read the up-to-date online and offline judgments of the traces by the given evaluators. Raises `DamagedError`
    if the length of a judgment does not fit its trace, or if a value is not a probability."""
    row, hindsight = JudgmentRow, TriangleRow
    same = (hindsight.trace_id == row.trace_id) & (hindsight.evaluator_id == row.evaluator_id)
    columns = row.mode, row.scores, hindsight.online, hindsight.offline, row.solution, row.spread, row.rationale
    statement = (
        select(row.trace_id, row.evaluator_id, *columns)
        .join(TraceRow, TraceRow.id == row.trace_id)
        .outerjoin(hindsight, same & (hindsight.digest == TraceRow.digest))
        .where(row.trace_id.in_(gold.trace_ids.tolist()), row.evaluator_id.in_(evaluator_ids))
        .where(row.digest == TraceRow.digest)
    )
    trace_ids, evaluators, modes, *others = read_columns(session, statement)
    trace = gold.places(np.array(trace_ids, np.int64))
    places = {id: place for place, id in enumerate(evaluator_ids)}
    evaluator = np.array([places[id] for id in evaluators], np.int64)
    online = np.array([mode == Mode.ONLINE for mode in modes], np.bool_)
    order = np.lexsort((~online, evaluator, trace))
    scores, *ends, solutions, spreads, words = ([column[place] for place in order] for column in others)
    sizes = gold.sizes[trace[order]]
    probs = join_scores(scores, sizes)
    spread = np.full(len(probs), np.nan, np.float32)
    texts: dict[str, int] = {}
    for start, size, blob in zip(starts(sizes), sizes, spreads, strict=True):
        if blob is not None:
            if len(blob) != size * 4:
                raise DamagedError("judgments: the spreads do not match the steps of their trace.")
            spread[start : start + size] = np.frombuffer(blob, "<f4")
    return JudgmentRows(
        trace=trace[order],
        evaluator=evaluator[order],
        online=online[order],
        probs=probs,
        ends=(_join_some(ends[0], sizes), _join_some(ends[1], sizes)),
        # None becomes NaN.
        solution=np.array(solutions, np.float64),
        spread=spread,
        rationale=np.array([texts.setdefault(word, len(texts)) if word else SILENT for word in words], np.int64),
        rationales=tuple(texts),
    )


def _join_some(blobs: Sequence[bytes | None], sizes: Ints) -> Floats32:
    """Like `join_scores`, with NaN where there are no scores."""
    present = np.array([blob is not None for blob in blobs], np.bool_)
    joined = np.full((int(sizes.sum()), len(Label)), np.nan, np.float32)
    joined[np.repeat(present, sizes)] = join_scores([blob for blob in blobs if blob is not None], sizes[present])
    return joined
