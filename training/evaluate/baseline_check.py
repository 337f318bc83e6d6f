"""Checking whether an evaluator clears the best trivial baseline on a dataset.

An evaluator *clears* the baselines if the 95 % interval of its paired difference to the best of them, over
resamples of the traces, lies above 0. The figure compared is the one shown in the tables of an evaluation: step AUC
if it exists. The errors are invalid ones if the gold has any, and redundant ones otherwise. There is no check with
fewer than `FEWEST` steps that have an error, or fewer that have none, since hardly any evaluator would pass.
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
"""The least number of steps with an error, and of steps without; of solutions for an evaluator that does not judge
steps."""


@dataclass(frozen=True)
class BaselineCheck:
    """The comparison of an evaluator with the best trivial baseline on the traces that the evaluator has judged.

    `figure` is the name of the figure compared, `value` is the evaluator's value of it, and `difference` is the
    paired difference.
    """

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
        """True if the interval of the difference lies above 0."""
        return self.difference.low > 0


def check_row(row: Row) -> BaselineCheck | None:
    """Check a row of an evaluation.

    Returns None if the row is a baseline, if no baseline is comparable, or if there are too few labels.
    """
    if row.is_baseline or not row.beats.exists or math.isnan(row.beats.low) or not _has_enough(row):
        return None
    value = row.measured[row.beats_in].value.number
    return BaselineCheck(row.evaluator, row.mode, row.errors, row.beats_in, value, row.rival, row.beats)


def check_baselines(
    store: Store, dataset: Dataset, evaluator: StoredEvaluator, mode: Mode, draws: int = DRAWS
) -> BaselineCheck | None:
    """Check an evaluator in one mode, or online if the traces stop at their first error.

    Returns None in the same cases as `check_row`, and if the evaluator has judged no trace in that mode.
    """
    measured = with_thresholds(store, dataset, evaluator, force=True)
    rows = evaluate(store, dataset, [measured], [mode], draws).rows
    row = next((row for row in rows if not row.is_baseline), None)
    return None if row is None else check_row(row)


def _has_enough(row: Row) -> bool:
    """True if there are enough steps, or solutions, with and without an error."""
    level = Level.STEP if row.beats_in.startswith("step") else Level.SOLUTION
    gold = row.subject.items(row.errors, level).gold
    return min(int(gold.sum()), int((~gold).sum())) >= FEWEST
