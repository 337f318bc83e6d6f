"""Measured metrics of evaluators, with intervals and resamples, and the declaration of metrics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stepsight.core.metrics.bootstrap import Value, Weights, interval
from stepsight.core.metrics.first_error import FirstErrors, first_errors, redundant_solutions
from stepsight.core.metrics.reasoneval import Errors, Level, items
from stepsight.core.metrics.table import Items, StepTable
from stepsight.core.scores import Outputs, Thresholds

Draws = NDArray[np.float64]
Sample = TypeVar("Sample")


@dataclass(frozen=True, eq=False)
class Measurement:
    """A metric's value with its 95 % interval, and its values on the resamples (`draws`, of shape (draws,))."""

    value: Value
    draws: Draws


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


def without_interval(value: Value, weights: Weights) -> Measurement:
    """Return a measurement of `value` that has no interval and NaN for every resample."""
    return Measurement(value, np.full(len(weights), np.nan))


def measured(
    value: Value, draw: Callable[[Sample, Weights], Draws], sample: Sample, weights: Weights
) -> Measurement:
    """Return the measurement of a metric with its interval. `draw` computes the metric on the resamples, and is
    called only if the value is defined."""
    if not value.exists:
        return without_interval(value, weights)
    draws = draw(sample, weights)
    return Measurement(interval(value, draws), draws)


def as_json(measured: Mapping[str, Measurement]) -> dict[str, object]:
    """Return a JSON object that maps the name of each metric to a fraction or null. Two more keys, `intervals` and
    `reasons`, map names of metrics to intervals and to reasons."""
    values = {name: figure.value.as_json() for name, figure in measured.items()}
    shown: dict[str, object] = {name: value["value"] for name, value in values.items()}
    shown["intervals"] = {name: [value["low"], value["high"]] for name, value in values.items()}
    shown["reasons"] = {name: value["reason"] for name, value in values.items() if "reason" in value}
    return shown
