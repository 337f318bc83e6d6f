"""Verdict flips of a dataset's traces: what the gallery of evidence lists."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Floats32, Ints
from stepsight.core.evidence import Flip
from stepsight.core.judgment import Mode
from stepsight.core.metrics.table import SILENT
from stepsight.storage.browse.filter_columns import read_versions
from stepsight.storage.database.schema import EvaluatorRow, JudgedRow, ProfileRow, StepRow, TraceRow
from stepsight.storage.database.store import IN_PARTS, Store
from stepsight.storage.judgments.packed_judgments import HEAD, unpack_profiles
from stepsight.storage.traces.queries import Neighbours

_BATCH = 500
_DIGEST = HEAD["digest"].itemsize


@dataclass(frozen=True, eq=False)
class Flips:
    """The traces of a dataset that an evaluator has judged in hindsight mode, as database ids, shape (traces,).

    `by_kind` has those in which the verdict on a step flipped, by what gold says of it, and a trace may be in
    several; `none` has the others. Each comes with the largest retroactive change of such a step first; equal ones
    are in file order.
    """

    by_kind: Mapping[Flip, Ints]
    none: Ints

    @property
    def nbytes(self) -> int:
        return self.none.nbytes + sum(ids.nbytes for ids in self.by_kind.values())

    def of(self, kind: Flip | None) -> Ints:
        """The traces of a kind of flip, or those in which no verdict flipped."""
        return self.none if kind is None else self.by_kind[kind]

    def neighbours(self, kind: Flip | None, trace_id: int) -> Neighbours:
        """The traces before and after one in the order of its kind; none where it is not of that kind."""
        ids = self.of(kind)
        places = np.flatnonzero(ids == trace_id)
        if not len(places):
            return Neighbours(None, None)
        place = int(places[0])
        before = int(ids[place - 1]) if place else None
        return Neighbours(before, int(ids[place + 1]) if place + 1 < len(ids) else None)


def hindsight_evaluators(store: Store) -> dict[int, tuple[int, ...]]:
    """The datasets that were judged in hindsight mode, and the evaluators that did, both as database ids."""
    judged = exists().where(
        ProfileRow.evaluator_id == JudgedRow.evaluator_id,
        ProfileRow.dataset_id == JudgedRow.dataset_id,
        ProfileRow.mode == Mode.HINDSIGHT.value,
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
    """Every trace of which there is a hindsight judgment that is not stale; valid is what has at least the validity
    `threshold`. Read once, and kept in memory for as long as the store says the same."""
    with store.read() as session:
        versions = read_versions(session, dataset_id, [evaluator_id])
        return store.cache.get(
            ("flips", dataset_id, evaluator_id, threshold),
            (versions[None], versions[evaluator_id]),
            lambda: _read_flips(session, dataset_id, evaluator_id, threshold),
        )


def _read_flips(session: Session, dataset_id: int, evaluator_id: int, threshold: float) -> Flips:
    ids, counts, online, offline = _read_validity(session, dataset_id, evaluator_id)
    at = np.float32(threshold)
    # Of a step of which nothing was said there is no verdict.
    flipped = ((online >= at) != (offline >= at)) & ~(np.isnan(online) | np.isnan(offline))
    trace = np.repeat(np.arange(len(ids)), counts)
    position = np.arange(len(trace)) - np.repeat(np.cumsum(counts) - counts, counts)
    gold = _read_gold(session, ids, trace[flipped], position[flipped])
    change = np.abs(offline - online)
    right = (offline[flipped] >= at) == (gold == 1)
    kinds = {
        Flip.RIGHTED: right & (gold != SILENT),
        Flip.MISLED: ~right & (gold != SILENT),
        Flip.UNJUDGED: gold == SILENT,
    }
    traces, changes = trace[flipped], change[flipped]
    by_kind = {kind: _order(ids, traces[steps], changes[steps]) for kind, steps in kinds.items()}
    quiet = ~np.isin(trace, traces)
    return Flips(by_kind, _order(ids, trace[quiet], np.nan_to_num(change[quiet])))


def _read_validity(session: Session, dataset_id: int, evaluator_id: int) -> tuple[Ints, Ints, Floats32, Floats32]:
    """In file order: the ids of traces and how many steps each has, (traces,); and the validity of each step online
    and offline, (steps,)."""
    statement = (
        select(TraceRow.id, TraceRow.digest, ProfileRow.online, ProfileRow.offline)
        .join(ProfileRow, ProfileRow.trace_id == TraceRow.id)
        .where(
            ProfileRow.evaluator_id == evaluator_id,
            ProfileRow.dataset_id == dataset_id,
            ProfileRow.mode == Mode.HINDSIGHT.value,
            ProfileRow.online.is_not(None),
        )
        .order_by(TraceRow.position)
    )
    rows = [row for part in session.execute(statement, execution_options=IN_PARTS).partitions() for row in part]
    if not rows:
        none = np.empty(0, np.int64)
        return none, none, np.empty(0, np.float32), np.empty(0, np.float32)
    heads, counts, online = unpack_profiles([row.online for row in rows])
    offline = unpack_profiles([row.offline for row in rows])[2]
    fresh = heads["digest"] == np.array([row.digest[:_DIGEST] for row in rows], f"S{_DIGEST}")
    steps = np.repeat(fresh, counts)
    return np.array([row.id for row in rows], np.int64)[fresh], counts[fresh], online[steps], offline[steps]


def _read_gold(session: Session, ids: Ints, trace: Ints, position: Ints) -> Ints:
    """What gold says of the validity of some steps, given by the place of the trace in `ids` and in the trace: 0, 1
    or `SILENT`."""
    wanted = ids[np.unique(trace)].tolist()
    valid = {
        (row.trace_id, row.position): int(row.valid)
        for start in range(0, len(wanted), _BATCH)
        for row in _steps(session, wanted[start : start + _BATCH])
    }
    places = zip(ids[trace].tolist(), position.tolist(), strict=True)
    return np.array([valid.get(place, SILENT) for place in places], np.int64)


def _steps(session: Session, ids: Sequence[int]) -> Iterator[Any]:
    steps = select(StepRow.trace_id, StepRow.position, StepRow.valid)
    yield from session.execute(steps.where(StepRow.trace_id.in_(ids), StepRow.valid.is_not(None)))


def _order(ids: Ints, trace: Ints, change: Floats32) -> Ints:
    """The ids of the traces of some steps, each once, by the largest change of these steps."""
    most = np.full(len(ids), -1, np.float32)
    np.maximum.at(most, trace, change)
    order = np.argsort(-most, kind="stable")
    ordered: Ints = ids[order[: np.count_nonzero(most >= 0)]]
    return ordered
