"""The measures: every figure of an evaluator that a table can show, with its resamples."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stepsight.core.label import Label
from stepsight.core.metrics import ternary
from stepsight.core.metrics.binary import (
    auc,
    auc_draws,
    brier,
    expected_calibration_error,
    macro_f1,
    macro_f1_draws,
)
from stepsight.core.metrics.bootstrap import Value, Weights, interval
from stepsight.core.metrics.first_error import (
    FirstErrors,
    accuracy_on_wrong,
    first_errors,
    matthews,
    process_bench_f1,
)
from stepsight.core.metrics.first_error import process_bench_f1_draws as process_bench_draws
from stepsight.core.metrics.reasoneval import CATEGORIES, Errors, Level, items, prm_items
from stepsight.core.metrics.table import Items, StepTable
from stepsight.core.scores import Outputs, Thresholds

Draws = NDArray[np.float64]
Sample = TypeVar("Sample")


@dataclass(frozen=True, eq=False)
class Measurement:
    """A figure with its 95 % interval, and its value on each resample, shape (draws,)."""

    value: Value
    draws: Draws


@dataclass(frozen=True)
class Subject:
    """The subject of a measurement: an evaluator's table in a mode, the kind of its outputs, and its thresholds."""

    table: StepTable
    outputs: Outputs
    thresholds: Thresholds

    def items(self, errors: Errors, level: Level) -> Items:
        return items(self.table, errors, level, self.outputs, self.thresholds)

    @cached_property
    def first_errors(self) -> FirstErrors:
        return first_errors(self.table, self.thresholds.validity, self.outputs)


FIGURES = ("sol_f1", "sol_auc", "step_f1", "step_auc")


def protocol(
    subject: Subject, errors: Errors, weights: Weights, only: Collection[str] = FIGURES
) -> dict[str, Measurement]:
    """`sol_f1`, `sol_auc`, `step_f1`, `step_auc` for one kind of error: ReasonEval's protocol; or `only` some of
    them."""
    figures: dict[str, Measurement] = {}
    for level, short in ((Level.SOLUTION, "sol"), (Level.STEP, "step")):
        if level == Level.STEP and not subject.outputs.has_steps:
            none = Measurement(Value.none("the evaluator says nothing of steps"), np.full(len(weights), np.nan))
            figures |= {name: none for name in ("step_f1", "step_auc") if name in only}
            continue
        chosen = subject.items(errors, level)
        if f"{short}_f1" in only:
            figures[f"{short}_f1"] = _measured(macro_f1(chosen), macro_f1_draws, chosen, weights)
        if f"{short}_auc" in only:
            figures[f"{short}_auc"] = _measured(auc(chosen), auc_draws, chosen, weights)
    return figures


def three_way(subject: Subject, weights: Weights) -> dict[str, Measurement]:
    """`accuracy`, `macro_f1` and `macro_auc` of the three classes, and `neg_auc`, `neu_auc`, `pos_auc` against the
    rest. For an evaluator without three classes only `neg_auc`, from its validity; for one with verdicts none. None
    if the gold labels a single class, since it is then a gold of validity."""
    steps = ternary.classify(subject.table)
    figures: dict[str, Measurement] = {}
    if len(np.unique(steps.gold)) < 2 or not subject.outputs.has_scores:
        return figures
    for label in Label if subject.outputs == Outputs.THREE_WAY else (Label.NEG,):
        side = steps.against_rest(label)
        figures[f"{label.text}_auc"] = _measured(auc(side), auc_draws, side, weights)
    if subject.outputs == Outputs.THREE_WAY:
        # Drawing the classes' curves again would take most of the time of an evaluation.
        of_classes = [one.draws for one in figures.values() if one.value.exists]
        draws = np.mean(of_classes, axis=0)
        figures = {
            "accuracy": _measured(ternary.accuracy(steps), ternary.accuracy_draws, steps, weights),
            "macro_f1": _measured(ternary.macro_f1(steps), ternary.macro_f1_draws, steps, weights),
            "macro_auc": Measurement(interval(ternary.macro_auc(steps), draws), draws),
        } | figures
    return figures


def others(subject: Subject, weights: Weights) -> Iterator[tuple[str, Measurement]]:
    """`first_error_accuracy` (MR-Score's part on steps), `processbench_f1`, `mr_mcc` (its part on solutions), `ece`
    and `brier` of step validity."""
    if not subject.outputs.has_steps:
        return
    errors = subject.first_errors
    none = np.full(len(weights), np.nan)
    yield "first_error_accuracy", Measurement(accuracy_on_wrong(errors), none)
    draws = process_bench_draws(errors, weights)
    yield "processbench_f1", Measurement(interval(process_bench_f1(errors), draws), draws)
    yield "mr_mcc", Measurement(matthews(errors), none)
    steps = subject.items(Errors.INVALID, Level.STEP)
    yield "ece", Measurement(expected_calibration_error(steps), none)
    yield "brier", Measurement(brier(steps), none)


def prm_scores(subject: Subject, weights: Weights) -> dict[str, Measurement]:
    """`prmscore` over all classes, and by category and class if the table's groups are PRMBench's."""
    groups = set(subject.table.groups)
    chosen: dict[str, tuple[str, ...]] = {"prmscore": ()}
    for category, classes in CATEGORIES.items():
        chosen |= {f"prmscore_{category}": classes} | {f"prmscore_{name}": (name,) for name in classes}
    scores = {}
    for name, classes in chosen.items():
        if classes and not groups & set(classes):
            continue
        side = prm_items(subject.table, subject.thresholds, classes, subject.outputs)
        scores[name] = _measured(macro_f1(side), macro_f1_draws, side, weights)
    return scores


def _measured(
    value: Value, draw: Callable[[Sample, Weights], Draws], sample: Sample, weights: Weights
) -> Measurement:
    """A measurement; resamples are drawn only if the value is defined."""
    if not value.exists:
        return Measurement(value, np.full(len(weights), np.nan))
    draws = draw(sample, weights)
    return Measurement(interval(value, draws), draws)


def kinds_of_error(table: StepTable) -> list[Errors]:
    """The kinds of error in the gold: redundant if a step is neu, invalid if one is wrong; invalid if neither is,
    provided the gold says anything."""
    kinds = []
    if (table.valid == 0).any() or not (table.label == Label.NEU).any():
        kinds.append(Errors.INVALID)
    if (table.label == Label.NEU).any():
        kinds.append(Errors.REDUNDANT)
    return kinds


def as_json(measured: Mapping[str, Measurement]) -> dict[str, object]:
    """Each figure as a fraction or null, with `intervals` and `reasons` by name."""
    values = {name: figure.value.as_json() for name, figure in measured.items()}
    shown: dict[str, object] = {name: value["value"] for name, value in values.items()}
    shown["intervals"] = {name: [value["low"], value["high"]] for name, value in values.items()}
    shown["reasons"] = {name: value["reason"] for name, value in values.items() if "reason" in value}
    return shown
