"""The standing of an evaluator on a dataset: whether it tells more there than the best trivial baseline.

It is told by the figure that every table of an evaluation holds against the baselines, step AUC where there is one:
for invalid errors where the gold has such, else for redundant ones. An evaluator *clears* the baselines where the
95 % interval of its paired difference to the best of them, over resamples of the traces, lies above 0. Nothing is
told where there are fewer than `FEWEST` steps with an error, or without one: hardly any evaluator would clear them.
"""

import math
from dataclasses import dataclass

from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import DRAWS, Value, Weights, resamples
from stepsight.core.metrics.figures import protocol
from stepsight.core.metrics.measurement import Subject
from stepsight.core.metrics.reasoneval import Errors, Level, kinds_of_error
from stepsight.core.metrics.table import StepTable
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.judgments.metric_columns import read_gold, read_table
from stepsight.storage.traces.queries import Dataset
from stepsight.training.evaluate.evaluation import (
    RIVALRY,
    MeasuredEvaluator,
    Row,
    against_baselines,
    baseline_tables,
    with_thresholds,
)

FEWEST = 20
"""Of steps (or solutions, of an evaluator that says nothing of steps) with an error, and of those without."""


@dataclass(frozen=True)
class Standing:
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
        """Whether it is above the baseline by more than the interval of the difference."""
        return self.difference.low > 0


def standing_of(row: Row) -> Standing | None:
    """The standing of a row of an evaluation; None where it is a baseline, cannot be held against one, or there are
    too few labels to tell."""
    if row.is_baseline or not row.beats.exists or math.isnan(row.beats.low) or not _has_enough(row, row.beats_in):
        return None
    value = row.measured[row.beats_in].value.number
    return Standing(row.evaluator, row.mode, row.errors, row.beats_in, value, row.rival, row.beats)


def measure_standing(
    store: Store, dataset: Dataset, evaluator: StoredEvaluator, mode: Mode, draws: int = DRAWS
) -> Standing | None:
    """The standing of an evaluator in a mode, by the same resamples as an evaluation, of which it is a small part.
    Where traces stop at their first error it is the online one. None also where it has judged no trace so."""
    gold = read_gold(store, dataset)
    mode = Mode.ONLINE if gold.ends_at_first_error() else mode
    table = read_table(store, gold, evaluator.id, mode)
    if not len(table):
        return None
    weights = resamples(len(gold.ids), draws)
    errors = kinds_of_error(table)[0]
    measured = with_thresholds(store, dataset, evaluator, force=True)
    rows = (_row(measured, mode, errors, table, weights, name) for name in RIVALRY)
    row = next((row for row in rows if row.figure.exists), None)
    if row is None or not _has_enough(row.row, row.name):
        return None
    rivals = [
        _row(MeasuredEvaluator(one.name, one.outputs), mode, errors, baseline, weights, row.name).row
        for one, baseline in baseline_tables(store, gold, [mode])[mode]
    ]
    return standing_of(against_baselines(row.row, rivals, weights))


@dataclass(frozen=True, eq=False)
class _OneFigure:
    """A row of an evaluation with a single figure."""

    row: Row
    name: str

    @property
    def figure(self) -> Value:
        return self.row.measured[self.name].value


def _row(
    evaluator: MeasuredEvaluator, mode: Mode, errors: Errors, table: StepTable, weights: Weights, name: str
) -> _OneFigure:
    subject = Subject(table, evaluator.outputs, evaluator.thresholds)
    measured = protocol(subject, errors, weights, (name,))
    solutions, steps = (len(subject.items(errors, level)) for level in (Level.SOLUTION, Level.STEP))
    traces = int(table.present.sum())
    return _OneFigure(Row(evaluator.name, mode, errors, subject, measured, traces, solutions, steps), name)


def _has_enough(row: Row, figure: str) -> bool:
    """Whether there are enough steps, or solutions, of either kind to tell by a figure."""
    level = Level.STEP if figure.startswith("step") else Level.SOLUTION
    gold = row.subject.items(row.errors, level).gold
    return min(int(gold.sum()), int((~gold).sum())) >= FEWEST
