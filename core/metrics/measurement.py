"""What is measured of an evaluator, and the declaration of metrics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from stepsight.core.metrics.bootstrap import Measurement, Weights
from stepsight.core.metrics.first_error import FirstErrors, first_errors, redundant_solutions
from stepsight.core.metrics.reasoneval import Errors, Level, items
from stepsight.core.metrics.table import Items, StepTable
from stepsight.core.scores import Outputs, Thresholds


@dataclass(frozen=True)
class Subject:
    """The evaluator to be measured: its step table in one mode, the kind of its outputs, and its thresholds."""

    table: StepTable
    outputs: Outputs
    thresholds: Thresholds

    def items(self, errors: Errors, level: Level) -> Items:
        return items(self.table, errors, level, self.outputs, self.thresholds)

    @cached_property
    def first_errors(self) -> FirstErrors:
        return first_errors(self.table, self.thresholds.validity, self.outputs)

    @cached_property
    def redundant_solutions(self) -> FirstErrors:
        return redundant_solutions(self.table, self.outputs, self.thresholds)


class Topic(StrEnum):
    """The section of a report in which a metric appears."""

    FIRST_ERRORS = "first errors"
    CALIBRATION = "calibration"
    SHARES = "soft labels"


@dataclass(frozen=True)
class Metric:
    """A metric of evaluators that judge steps.

    `name` is used in JSON and CSV, and `title` is shown to people. `measure` computes the metric and its values on
    the given resamples. `core.metrics.figures.METRICS` lists all metrics.
    """

    name: str
    title: str
    topic: Topic
    measure: Callable[[Subject, Weights], Measurement]


def as_json(measured: Mapping[str, Measurement]) -> dict[str, object]:
    """Return a JSON object that maps the name of each metric to a fraction or null. Two more keys, `intervals` and
    `reasons`, map names of metrics to intervals and to reasons."""
    values = {name: figure.value.as_json() for name, figure in measured.items()}
    shown: dict[str, object] = {name: value["value"] for name, value in values.items()}
    shown["intervals"] = {name: [value["low"], value["high"]] for name, value in values.items()}
    shown["reasons"] = {name: value["reason"] for name, value in values.items() if "reason" in value}
    return shown
