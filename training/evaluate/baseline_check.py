"""Checking whether an evaluator clears the best trivial baseline on a dataset.

An evaluator *clears* the baselines if the 95 % interval of its paired difference from the best baseline, over
resamples of the traces, lies above 0. The difference is taken in step AUC or, if that is undefined, in the next
figure of `RIVALRY`. The errors are invalid steps if the gold labels have any, and redundant steps otherwise. There
is no check if there are too few labels (`FEWEST`).
"""

from dataclasses import dataclass

from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import DRAWS, Value
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.shortcuts import find_baseline
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.traces.queries import Dataset
from stepsight.training.evaluate.evaluation import GoldView, Row, evaluate
from stepsight.training.evaluate.judging import with_thresholds


@dataclass(frozen=True)
class BaselineCheck:
    """The comparison of an evaluator with the best trivial baseline, on the traces that the evaluator has judged.

    `figure` names the figure compared, and `value` is the evaluator's value of it. `baseline` names the best
    baseline, and `difference` is the evaluator's paired difference from that baseline.
    """

    evaluator: str
    mode: Mode
    errors: Errors
    figure: str
    value: float
    baseline: str
    difference: Value

    @property
    def baseline_reads(self) -> str:
        """The property that the best baseline reads, in words."""
        return find_baseline(self.baseline).reads

    @property
    def clears(self) -> bool:
        """True if the interval of the difference lies above 0."""
        return self.difference.low > 0


def check_row(row: Row) -> BaselineCheck | None:
    """Return the baseline check of a row of an evaluation. Returns None if the row is a baseline's own, if there is
    no baseline to compare with, or if there are too few labels."""
    if row.above_baselines is None:
        return None
    value = row.measured[row.beats_in].number
    return BaselineCheck(row.evaluator, row.mode, row.errors, row.beats_in, value, row.rival, row.beats)


def check_baselines(
    store: Store, dataset: Dataset, evaluator: StoredEvaluator, mode: Mode, draws: int = DRAWS
) -> BaselineCheck | None:
    """Return the baseline check of an evaluator in one mode. If traces stop at their first error, the mode is
    online.

    Returns None in the same cases as `check_row`, and if the evaluator has not judged any trace in that mode.
    """
    measured = with_thresholds(store, dataset, evaluator, force=True)
    rows = evaluate(store, GoldView(dataset), [measured], [mode], draws).rows
    row = next((row for row in rows if not row.is_baseline), None)
    return None if row is None else check_row(row)
