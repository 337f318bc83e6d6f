"""All metrics that a table of results can show for an evaluator, and their values on the resamples."""

from collections.abc import Collection

import numpy as np

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
    accuracy_on_wrong,
    matthews,
    process_bench_f1,
    process_bench_f1_draws,
)
from stepsight.core.metrics.measurement import Measurement, Metric, Subject, Topic, measured, without_interval
from stepsight.core.metrics.reasoneval import CATEGORIES, Errors, Level, items, prm_items
from stepsight.core.metrics.shares import brier_of_shares, order_within_traces, spearman_of_shares
from stepsight.core.scores import Outputs

FIGURES = ("sol_f1", "sol_auc", "step_f1", "step_auc")


def protocol(
    subject: Subject, errors: Errors, weights: Weights, only: Collection[str] = FIGURES
) -> dict[str, Measurement]:
    """Compute the metrics of ReasonEval's protocol for one kind of error. These are `sol_f1`, `sol_auc`, `step_f1`
    and `step_auc`, or only the ones named in `only`."""
    figures: dict[str, Measurement] = {}
    for level, short in ((Level.SOLUTION, "sol"), (Level.STEP, "step")):
        if level == Level.STEP and not subject.outputs.has_steps:
            none = without_interval(Value.none("the evaluator says nothing of steps"), weights)
            figures |= {name: none for name in ("step_f1", "step_auc") if name in only}
            continue
        chosen = subject.items(errors, level)
        if f"{short}_f1" in only:
            value = _with_stricter(macro_f1(chosen), subject, errors, level)
            figures[f"{short}_f1"] = measured(value, macro_f1_draws, chosen, weights)
        if f"{short}_auc" in only:
            figures[f"{short}_auc"] = measured(auc(chosen), auc_draws, chosen, weights)
    return figures


def _with_stricter(value: Value, subject: Subject, errors: Errors, level: Level) -> Value:
    """Return a step-level macro F1 whose `reason` states its value under the stricter reading of unreadable
    verdicts, if the two differ. Other values are returned unchanged."""
    if not value.exists or subject.outputs != Outputs.VERDICT or level == Level.SOLUTION:
        return value
    strict = macro_f1(items(subject.table, errors, level, subject.outputs, subject.thresholds, strict=True)).number
    if strict == value.number:
        return value
    reason = "unreadable verdicts that blame no step count as finding no error, as in ReasonEval's script"
    return Value(value.number, f"{reason}; counted as wrong, it is {100 * strict:.1f} %")


def three_way(subject: Subject, weights: Weights) -> dict[str, Measurement]:
    """Compute the three-class metrics.

    These are `accuracy`, `macro_f1` and `macro_auc`, and the AUC of each class against the rest: `neg_auc`,
    `neu_auc` and `pos_auc`. An evaluator without three classes gets only `neg_auc`, computed from its validity. The
    result is empty if the evaluator gives verdicts instead of scores, or if all gold labels are the same.
    """
    steps = ternary.classify(subject.table)
    figures: dict[str, Measurement] = {}
    if len(np.unique(steps.gold)) < 2 or not subject.outputs.has_scores:
        return figures
    for label in Label if subject.outputs == Outputs.THREE_WAY else (Label.NEG,):
        side = steps.against_rest(label)
        figures[f"{label.text}_auc"] = measured(auc(side), auc_draws, side, weights)
    if subject.outputs == Outputs.THREE_WAY:
        # Drawing the classes' curves again would take most of the time of an evaluation.
        of_classes = [one.draws for one in figures.values() if one.value.exists]
        draws = np.mean(of_classes, axis=0)
        figures = {
            "accuracy": measured(ternary.accuracy(steps), ternary.accuracy_draws, steps, weights),
            "macro_f1": measured(ternary.macro_f1(steps), ternary.macro_f1_draws, steps, weights),
            "macro_auc": Measurement(interval(ternary.macro_auc(steps), draws), draws),
        } | figures
    return figures


def prm_scores(subject: Subject, weights: Weights) -> dict[str, Measurement]:
    """Compute `prmscore` over all steps and, if the table's groups are PRMBench's classes, also for each category
    and class."""
    groups = set(subject.table.groups)
    chosen: dict[str, tuple[str, ...]] = {"prmscore": ()}
    for category, classes in CATEGORIES.items():
        chosen |= {f"prmscore_{category}": classes} | {f"prmscore_{name}": (name,) for name in classes}
    scores = {}
    for name, classes in chosen.items():
        if classes and not groups & set(classes):
            continue
        side = prm_items(subject.table, subject.thresholds, classes, subject.outputs)
        scores[name] = measured(macro_f1(side), macro_f1_draws, side, weights)
    return scores


def _first_error_accuracy(subject: Subject, weights: Weights) -> Measurement:
    """Compute the first-error accuracy, the part of MR-Score that concerns steps."""
    return without_interval(accuracy_on_wrong(subject.first_errors), weights)


def _processbench_f1(subject: Subject, weights: Weights) -> Measurement:
    draws = process_bench_f1_draws(subject.first_errors, weights)
    return Measurement(interval(process_bench_f1(subject.first_errors), draws), draws)


def _mr_mcc(subject: Subject, weights: Weights) -> Measurement:
    """Compute Matthews' correlation, the part of MR-Score that concerns solutions."""
    return without_interval(matthews(subject.first_errors), weights)


def _ece(subject: Subject, weights: Weights) -> Measurement:
    return without_interval(expected_calibration_error(subject.items(Errors.INVALID, Level.STEP)), weights)


def _brier(subject: Subject, weights: Weights) -> Measurement:
    return without_interval(brier(subject.items(Errors.INVALID, Level.STEP)), weights)


METRICS: tuple[Metric, ...] = (
    Metric("first_error_accuracy", "First-error accuracy", Topic.FIRST_ERRORS, _first_error_accuracy),
    Metric("processbench_f1", "ProcessBench F1", Topic.FIRST_ERRORS, _processbench_f1),
    Metric("mr_mcc", "MR-Score, solutions (MCC)", Topic.FIRST_ERRORS, _mr_mcc),
    Metric("ece", "ECE", Topic.CALIBRATION, _ece),
    Metric("brier", "Brier", Topic.CALIBRATION, _brier),
    Metric("share_spearman", "Spearman to shares", Topic.SHARES, spearman_of_shares),
    Metric("share_order", "Order within traces", Topic.SHARES, order_within_traces),
    Metric("share_brier", "Brier to shares", Topic.SHARES, brier_of_shares),
)
"""The metrics that belong to no kind of error. A new one is a module of this package and its line here."""


def others(subject: Subject, weights: Weights, topics: Collection[Topic] = tuple(Topic)) -> dict[str, Measurement]:
    """Compute the metrics in `METRICS` on these topics, by name. Metrics of shares are computed only if a step has
    a share. The result is empty if the evaluator does not judge steps."""
    if not subject.outputs.has_steps:
        return {}
    left_out = Topic.SHARES if subject.table.share is None else None
    wanted = (one for one in METRICS if one.topic in topics and one.topic != left_out)
    return {one.name: one.measure(subject, weights) for one in wanted}


def figures(subject: Subject, errors: Errors, weights: Weights, names: Collection[str]) -> dict[str, Measurement]:
    """Compute the metrics `names` for one kind of error. Those that the labels do not allow are undefined."""
    computed = protocol(subject, errors, weights, names)
    for compute in (three_way, others, prm_scores):
        if any(name not in computed for name in names):
            computed |= compute(subject, weights)
    none = without_interval(Value.none("these traces have no labels for it"), weights)
    return {name: computed.get(name, none) for name in names}


def _titles(topic: Topic) -> dict[str, str]:
    return {one.name: one.title for one in METRICS if one.topic == topic}


# The titles of metrics by name, as tables have them.
FIRST_ERRORS = _titles(Topic.FIRST_ERRORS)
CALIBRATION = _titles(Topic.CALIBRATION)
SHARES = _titles(Topic.SHARES)
