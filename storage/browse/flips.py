"""Flipped verdicts of a dataset's traces, as the gallery of evidence lists them."""

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
from stepsight.storage.browse.filter_columns import cached_traces, read_versions
from stepsight.storage.database.schema import EvaluatorRow, JudgedRow, ProfileRow, StepRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import Profiles, read_profiles
from stepsight.storage.traces.queries import Neighbours

_BATCH = 500


@dataclass(frozen=True, eq=False)
class Flips:
    """The traces of a dataset that an evaluator has judged in hindsight mode, as database ids, shape (traces,).

    `by_kind` has the traces with a flipped verdict on a step, by the gold of the step; a trace may be in several.
    `none` has the others. Each is ordered by the largest retroactive change of such a step, descending, then by
    file order.
    """

    by_kind: Mapping[Flip, Ints]
    none: Ints

    @property
    def nbytes(self) -> int:
        return self.none.nbytes + sum(ids.nbytes for ids in self.by_kind.values())

    def of(self, kind: Flip | None) -> Ints:
        """The traces of a kind of flip, or for None those without a flip."""
        return self.none if kind is None else self.by_kind[kind]

    def neighbours(self, kind: Flip | None, trace_id: int) -> Neighbours:
        """The traces before and after one in the order of its kind; none if it is not of that kind."""
        ids = self.of(kind)
        places = np.flatnonzero(ids == trace_id)
        if not len(places):
            return Neighbours(None, None)
        place = int(places[0])
        before = int(ids[place - 1]) if place else None
        return Neighbours(before, int(ids[place + 1]) if place + 1 < len(ids) else None)


def hindsight_evaluators(store: Store) -> dict[int, tuple[int, ...]]:
    """The datasets with hindsight judgments, and their evaluators, both as database ids."""
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
    """The flips among a dataset's fresh hindsight judgments, with validities from `threshold` on being valid. Read
    once, and kept in memory until the store changes."""
    with store.read() as session:
        versions = read_versions(session, dataset_id, [evaluator_id])

        def read() -> Flips:
            traces = cached_traces(store, session, dataset_id, versions[None])
            parts = read_profiles(session, traces, dataset_id, evaluator_id, (Mode.HINDSIGHT,))
            return _read_flips(session, traces.trace_ids, [part.given for part in parts], threshold)

        key = ("flips", dataset_id, evaluator_id, threshold)
        return store.cache.get(key, (versions[None], versions[evaluator_id]), read)


def _read_flips(
    session: Session, trace_ids: Ints, given: Sequence[Mapping[Mode, Profiles]], threshold: float
) -> Flips:
    online, offline = (Profiles.joined([one[mode] for one in given]) for mode in (Mode.ONLINE, Mode.OFFLINE))
    return _find(session, trace_ids[online.places], online.counts, online.validity, offline.validity, threshold)


def _find(
    session: Session, ids: Ints, counts: Ints, online: Floats32, offline: Floats32, threshold: float
) -> Flips:
    """`ids` of the traces in file order and the `counts` of their steps, (traces,), with the validity of each step
    online and offline, (steps,)."""
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
    of_flips, changes = trace[flipped], change[flipped]
    by_kind = {kind: _order(ids, of_flips[steps], changes[steps]) for kind, steps in kinds.items()}
    quiet = ~np.isin(trace, of_flips)
    return Flips(by_kind, _order(ids, trace[quiet], np.nan_to_num(change[quiet])))


def _read_gold(session: Session, ids: Ints, trace: Ints, position: Ints) -> Ints:
    """The gold of the validity of some steps, given by the index of the trace in `ids` and of the step in the
    trace: 0, 1 or `SILENT`."""
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
