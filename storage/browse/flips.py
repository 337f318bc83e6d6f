"""Finding the traces in which hindsight flips the verdict on a step, for the gallery of evidence."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from sqlalchemy import exists, select

from stepsight.core.arrays import AnyInts, Floats32, Ints
from stepsight.core.evidence import Flip
from stepsight.core.judgment import Mode
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.storage.browse.filter_columns import cached_traces
from stepsight.storage.database.schema import EvaluatorRow, JudgedRow, TriangleRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import read_scores
from stepsight.storage.judgments.evaluators import read_versions
from stepsight.storage.traces.queries import Neighbours


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
