"""Whether an evaluator tells more of a dataset than the best trivial baseline does.

It is told by the figure that every table of an evaluation holds against the baselines, step AUC where there is one:
for invalid errors where the gold has such, else for redundant ones. An evaluator *clears* the baselines if the 95 %
interval of its paired difference to the best of them, over resamples of the traces, lies above 0. Nothing is told
with fewer than `FEWEST` steps that have an error, or that have none: hardly any evaluator would clear them.
"""

import math
from dataclasses import dataclass

from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import DRAWS, Value
from stepsight.core.metrics.reasoneval import Errors, Level
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.traces.queries import Dataset
from stepsight.training.evaluate.evaluation import Row, evaluate, with_thresholds

FEWEST = 20
"""Of steps (or solutions, of an evaluator that says nothing of steps) with an error, and of those without."""


@dataclass(frozen=True)
class BaselineCheck:
    """An evaluator beside the best trivial baseline, by its name: the `figure` of both on the traces that the
    evaluator has judged, and the paired `difference`."""

    evaluator: str
    mode: Mode
    errors: Errors
    figure: str
    value: float
    baseline: str
    difference: Value

    @property
    def baseline_value(self) -> float:
        return self.value - self.difference.number

    @property
    def clears(self) -> bool:
        """True if it is above the baseline by more than the interval of the difference."""
        return self.difference.low > 0


def check_row(row: Row) -> BaselineCheck | None:
    """The check of a row of an evaluation; None if it is a baseline, cannot be held against one, or there are too
    few labels to tell."""
    if row.is_baseline or not row.beats.exists or math.isnan(row.beats.low) or not _has_enough(row):
        return None
    value = row.measured[row.beats_in].value.number
    return BaselineCheck(row.evaluator, row.mode, row.errors, row.beats_in, value, row.rival, row.beats)


def check_baselines(
    store: Store, dataset: Dataset, evaluator: StoredEvaluator, mode: Mode, draws: int = DRAWS
) -> BaselineCheck | None:
    """The check of an evaluator in a mode; the online one if traces stop at their first error. None also if it has
    judged no trace so."""
    measured = with_thresholds(store, dataset, evaluator, force=True)
    rows = evaluate(store, dataset, [measured], [mode], draws).rows
    row = next((row for row in rows if not row.is_baseline), None)
    return None if row is None else check_row(row)


def _has_enough(row: Row) -> bool:
    """True if there are enough steps, or solutions, of either kind to tell by the figure."""
    level = Level.STEP if row.beats_in.startswith("step") else Level.SOLUTION
    gold = row.subject.items(row.errors, level).gold
    return min(int(gold.sum()), int((~gold).sum())) >= FEWEST
