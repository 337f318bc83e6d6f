"""The judges of an evaluation: the baselines and evaluators of the store, with what they said."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.baselines import BASELINES
from core.errors import UserError
from core.judgment import Mode
from core.metrics.table import StepTable
from core.outputs import Outputs
from core.scores import Thresholds
from storage.calibrations import Calibration, count_shared, find_calibration
from storage.columns import Gold, build_columns, read_table
from storage.evaluators import StoredEvaluator
from storage.queries import Dataset, iterate_traces
from storage.store import Store

# Of a dataset's traces, the share that may be among those that thresholds were chosen on.
_MAY_SHARE = 0.03


@dataclass(frozen=True)
class Judge:
    """A baseline, or an evaluator of the store by its `id`, with the thresholds that it is measured at: calibrated
    ones, else its `own`."""

    name: str
    outputs: Outputs
    id: int | None = None
    calibration: Calibration | None = None
    own: Thresholds = field(default_factory=Thresholds)
    chosen_here: bool = False

    @property
    def thresholds(self) -> Thresholds:
        return self.calibration.thresholds if self.calibration else self.own


def find_judge(store: Store, dataset: Dataset, evaluator: StoredEvaluator, force: bool) -> Judge:
    """The evaluator with its thresholds; refused where they were chosen on the dataset's traces, unless `force`."""
    calibration = find_calibration(store, evaluator.id)
    problem = _chosen_here(store, dataset, calibration) if calibration else ""
    if problem and not force:
        raise UserError(
            f"the thresholds of {evaluator.name} were chosen {problem}: what they reach there says nothing of"
            " other traces.",
            "Measure it on another dataset, or add --force, which marks its rows.",
        )
    return Judge(evaluator.name, evaluator.outputs, evaluator.id, calibration, evaluator.thresholds, bool(problem))


def _chosen_here(store: Store, dataset: Dataset, calibration: Calibration) -> str:
    """How a dataset is the one that thresholds were chosen on, "" where it is not."""
    for origin in calibration.origins.values():
        if dataset.id == origin.dataset_id or dataset.name == origin.dataset:
            return f"on {dataset.name}"
        if origin.dataset_id is None:
            continue
        shared = count_shared(store, dataset.id, origin.dataset_id)
        if shared > _MAY_SHARE * dataset.traces:
            return f"on {origin.dataset}, which has {shared:,} of the {dataset.traces:,} traces of {dataset.name}"
    return ""


def read_tables(
    store: Store, gold: Gold, judges: Sequence[Judge], modes: list[Mode]
) -> Iterator[tuple[Judge, Mode, StepTable]]:
    """One at a time, so that only one table is held that no row needs."""
    for mode in modes:
        for baseline, table in zip(BASELINES.values(), baseline_tables(store, gold, mode), strict=True):
            yield Judge(baseline.name, baseline.outputs), mode, table
        for judge in judges:
            assert judge.id is not None
            table = read_table(store, gold, judge.id, mode)
            if len(table):
                yield judge, mode, table


def baseline_tables(store: Store, gold: Gold, mode: Mode) -> list[StepTable]:
    """A table for each baseline, in one pass over the texts."""
    probs = [np.empty((int(gold.substeps.sum()), 3), np.float32) for _ in BASELINES]
    done = 0
    for trace in iterate_traces(store, gold.dataset.id):
        end = done + len(trace.substeps)
        for part, baseline in zip(probs, BASELINES.values(), strict=True):
            part[done:end] = baseline.score(trace, mode).probs
        done = end
    none = np.full(len(gold.ids), np.nan)
    return [build_columns(gold, part, none) for part in probs]
