"""All metrics that a table of results can show for an evaluator, and their values on the resamples.

Figures against soft labels compare the shares of a benchmark with the validity of its steps. A step counts if it
has a share. If it has several sub-steps, their least validity counts. The Brier score measures how far validity is
from the share, and Spearman's correlation whether validity orders the steps of all traces as their shares do. The
order within traces measures the same for each trace separately, so that the difficulty of problems does not matter.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np

from stepsight.core.arrays import AnyInts, Floats64
from stepsight.core.metrics import ternary
from stepsight.core.metrics.binary import auc, brier, expected_calibration_error, macro_f1
from stepsight.core.metrics.bootstrap import Value, Weights, interval, ratio, statistic, weighted_totals
from stepsight.core.metrics.first_error import (
    FirstErrors,
    accuracy_on_wrong,
    first_errors,
    matthews,
    process_bench_f1,
    redundant_solutions,
)
from stepsight.core.metrics.reasoneval import CATEGORIES, Errors, Level, items, prm_items
from stepsight.core.metrics.table import NO_ITEMS, NO_SCORES, Items, StepTable
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.trace import Label


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
    def steps(self) -> Items:
        """The steps with their validity."""
        return self.items(Errors.INVALID, Level.STEP)

    @cached_property
    def shares(self) -> "ShareItems":
        """The steps that have a share, which is NaN for the others."""
        table, share = self.table, self.table.share
        assert share is not None
        has_share = ~np.isnan(share)
        # Rounding can lift the sum of two probabilities above 1.
        validity = np.clip(table.validity[has_share].astype(np.float64), 0.0, 1.0)
        # An evaluator that gives only verdicts has no scores.
        if not self.outputs.has_scores:
            validity[:] = np.nan
        return ShareItems(validity, share[has_share], table.trace[has_share])

    @cached_property
    def redundant_solutions(self) -> FirstErrors:
        return redundant_solutions(self.table, self.outputs, self.thresholds)


@dataclass(frozen=True, eq=False)
class ShareItems:
    """The `n` steps that have a share. Each array has the shape (n,): `validity`, or NaN if the evaluator gives no
    score; `share`, from 0 to 1; and `trace`, the index of the trace."""

    validity: Floats64
    share: Floats64
    trace: AnyInts

    def __len__(self) -> int:
        return len(self.share)

    @property
    def problem(self) -> str:
        """The reason why figures are undefined, or "" if they are defined."""
        if not len(self):
            return NO_ITEMS
        return NO_SCORES if np.isnan(self.validity).any() else ""


@statistic(attrgetter("problem"))
def share_brier(items: ShareItems, weights: Weights) -> Floats64:
    """The mean squared difference between validity and share, from 0 to 1; lower is better."""
    return ratio((items.validity - items.share) ** 2, np.ones(len(items)), items.trace, weights)


def spearman(items: ShareItems, weights: Weights) -> Value:
    """Return Spearman's rank correlation of validity and share over all steps, from -1 to 1.

    It is undefined if either does not vary. All resamples use the ranks of the whole sample.
    """
    if items.problem:
        return Value.none(items.problem)
    x, y = (_ranks(numbers) - (len(items) + 1) / 2 for numbers in (items.validity, items.share))
    sums = np.zeros((weights.shape[1], 6))
    np.add.at(sums, items.trace, np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1))
    totals = (weighted_totals(sums, counts) for counts in (np.ones_like(weights[:1]), weights))
    (number,), draws = map(_correlation, totals)
    if np.isnan(number):
        return Value.none("all scores or all shares are the same")
    value = Value(float(number), draws=draws)
    return interval(value, draws) if np.ptp(items.trace) else value


def _ranks(numbers: Floats64) -> Floats64:
    """Return the rank of each number, from 1; equal numbers share the mean of their ranks.

    SciPy's `rankdata` does the same, but its import takes longer than most measurements.
    """
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    means: Floats64 = counts.cumsum() - (counts - 1) / 2
    return means[place]


def _correlation(sums: Floats64) -> Floats64:
    """Return the correlation of each row, given the sums of 1, x, y, x², y² and xy, with shape (rows, 6)."""
    count, x, y, xx, yy, xy = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        squares, others, products = (
            total - left * right / count for total, left, right in ((xx, x, x), (yy, y, y), (xy, x, y))
        )
        return np.where((squares > 1e-6) & (others > 1e-6), products / np.sqrt(squares * others), np.nan)


def _order_problem(items: ShareItems) -> str:
    several = np.unique(np.stack([items.trace, items.share]), axis=1).shape[1] > len(np.unique(items.trace))
    return items.problem or ("" if several else "no trace has steps with different shares")


@statistic(_order_problem)
def order_within_traces(items: ShareItems, weights: Weights) -> Floats64:
    """The share of pairs of steps of a trace in which the step with the larger share has the larger validity.

    Pairs with equal shares do not count. Equal validities count one half, so that a constant gets 0.5.
    """
    wins, pairs = np.zeros((2, weights.shape[1]))
    order = np.argsort(items.trace, kind="stable")
    present, starts = np.unique(items.trace[order], return_index=True)
    for place, own in zip(present, np.split(order, starts[1:]), strict=True):
        share, validity = items.share[own], items.validity[own]
        above = (validity[:, None] - validity)[share[:, None] > share]
        wins[place], pairs[place] = (above > 0).sum() + (above == 0).sum() / 2, len(above)
    return ratio(wins, pairs, np.arange(len(wins)), weights)


@dataclass(frozen=True)
class Metric:
    """A metric in tables: its title, the function that computes it of each evaluator, whether it is a plain number
    rather than a share in percent, and whether lower is better.

    `compute` is None if a function below computes the metric together with others.
    """

    title: str
    compute: Callable[[Subject, Weights], Value] | None = None
    is_number: bool = False
    less_is_better: bool = False


Metrics = dict[str, Metric]
"""Metrics by their names in JSON and CSV."""

PROTOCOL = {
    "sol_f1": Metric("Sol-F1"),
    "sol_auc": Metric("Sol-AUC"),
    "step_f1": Metric("Step-F1"),
    "step_auc": Metric("Step-AUC"),
}
THREE_WAY = {
    "accuracy": Metric("Accuracy", lambda of, w: ternary.accuracy(ternary.classify(of.table), w)),
    "macro_f1": Metric("Macro-F1", lambda of, w: ternary.macro_f1(ternary.classify(of.table), w)),
    "macro_auc": Metric("Macro-AUC"),
    **{f"{label.text}_auc": Metric(f"{label.text} AUC") for label in Label},
}
# No interval is shown for MR-Score (`mr_mcc`, and the accuracy of first errors) or for calibration.
FIRST_ERRORS = {
    "first_error_accuracy": Metric("First-error accuracy", lambda of, _: accuracy_on_wrong(of.first_errors)),
    "processbench_f1": Metric("ProcessBench F1", lambda of, weights: process_bench_f1(of.first_errors, weights)),
    "mr_mcc": Metric("MR-Score, solutions (MCC)", lambda of, _: matthews(of.first_errors)),
}
CALIBRATION = {
    "ece": Metric("ECE", lambda of, _: expected_calibration_error(of.steps), is_number=True, less_is_better=True),
    "brier": Metric("Brier", lambda of, _: brier(of.steps), is_number=True, less_is_better=True),
}
SHARES = {
    "share_spearman": Metric("Spearman to shares", lambda of, w: spearman(of.shares, w), is_number=True),
    "share_order": Metric("Order within traces", lambda of, w: order_within_traces(of.shares, w), is_number=True),
    "share_brier": Metric(
        "Brier to shares", lambda of, w: share_brier(of.shares, w), is_number=True, less_is_better=True
    ),
}
METRICS = PROTOCOL | FIRST_ERRORS | THREE_WAY | CALIBRATION | SHARES
PRMSCORE = "prmscore"
"""The metric of PRMBench, and the beginning of the names of its parts by category and class."""


def less_is_better(metrics: Metrics) -> str:
    """Return a note that names the metrics for which lower is better, or "" if there are none."""
    lower = [metric.title for metric in metrics.values() if metric.less_is_better]
    return f"Of {' and '.join(lower)}, less is better." if lower else ""


def as_json(measured: Mapping[str, Value]) -> dict[str, object]:
    """Return a JSON object that maps the name of each metric to a fraction or null. Two more keys, `intervals` and
    `reasons`, map names of metrics to intervals and to reasons."""
    values = {name: value.as_json() for name, value in measured.items()}
    shown: dict[str, object] = {name: value["value"] for name, value in values.items()}
    shown["intervals"] = {name: [value["low"], value["high"]] for name, value in values.items()}
    shown["reasons"] = {name: value["reason"] for name, value in values.items() if "reason" in value}
    return shown


def protocol(
    subject: Subject, errors: Errors, weights: Weights, only: Collection[str] = PROTOCOL
) -> dict[str, Value]:
    """Compute the metrics of ReasonEval's protocol for one kind of error. These are `sol_f1`, `sol_auc`, `step_f1`
    and `step_auc`, or only the ones named in `only`."""
    figures: dict[str, Value] = {}
    for level, short in ((Level.SOLUTION, "sol"), (Level.STEP, "step")):
        if level == Level.STEP and not subject.outputs.has_steps:
            none = Value.none("the evaluator gives no verdicts on steps")
            figures |= {name: none for name in ("step_f1", "step_auc") if name in only}
            continue
        chosen = subject.items(errors, level)
        if f"{short}_f1" in only:
            figures[f"{short}_f1"] = _with_stricter(macro_f1(chosen, weights), subject, errors, level)
        if f"{short}_auc" in only:
            figures[f"{short}_auc"] = auc(chosen, weights)
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
    return replace(value, reason=f"{reason}; counted as wrong, it is {100 * strict:.1f} %")


def three_way(subject: Subject, weights: Weights) -> dict[str, Value]:
    """Compute the metrics of `THREE_WAY`. An evaluator without three classes gets only `neg_auc`, computed from its
    validity. The result is empty if the evaluator gives verdicts instead of scores, or if all gold labels are the
    same."""
    steps, has_classes = ternary.classify(subject.table), subject.outputs == Outputs.THREE_WAY
    if len(np.unique(steps.gold)) < 2 or not subject.outputs.has_scores:
        return {}
    labels = Label if has_classes else (Label.NEG,)
    aucs = {f"{label.text}_auc": auc(steps.against_rest(label), weights) for label in labels}
    if not has_classes:
        return aucs
    # Drawing the classes' curves again would take most of the time of an evaluation.
    draws = np.mean([value.draws for value in aucs.values() if value.draws is not None], axis=0)
    macro_auc = interval(replace(ternary.macro_auc(steps), draws=draws), draws)
    return _compute(THREE_WAY, subject, weights) | {"macro_auc": macro_auc} | aucs


def prm_scores(subject: Subject, weights: Weights) -> dict[str, Value]:
    """Compute `prmscore` over all steps and, if the table's groups are PRMBench's classes, also for each category
    and class."""
    groups = set(subject.table.groups)
    chosen: dict[str, tuple[str, ...]] = {PRMSCORE: ()}
    for category, classes in CATEGORIES.items():
        chosen |= {f"{PRMSCORE}_{category}": classes} | {f"{PRMSCORE}_{name}": (name,) for name in classes}
    return {
        name: macro_f1(prm_items(subject.table, subject.thresholds, classes, subject.outputs), weights)
        for name, classes in chosen.items()
        if not classes or groups & set(classes)
    }


def common(subject: Subject, weights: Weights) -> dict[str, Value]:
    """Compute the metrics that do not depend on the kind of error: of first errors, of calibration and, if a step
    has a share, of shares. The result is empty if the evaluator does not judge steps."""
    if not subject.outputs.has_steps:
        return {}
    of_shares = SHARES if subject.table.share is not None else {}
    return _compute(FIRST_ERRORS | CALIBRATION | of_shares, subject, weights)


def _compute(metrics: Metrics, subject: Subject, weights: Weights) -> dict[str, Value]:
    return {name: metric.compute(subject, weights) for name, metric in metrics.items() if metric.compute}


def figures(subject: Subject, errors: Errors, weights: Weights, names: Collection[str]) -> dict[str, Value]:
    """Compute the metrics `names` for one kind of error. Those that the labels do not allow are undefined."""
    computed = protocol(subject, errors, weights, names)
    for compute in (three_way, common, prm_scores):
        if any(name not in computed for name in names):
            computed |= compute(subject, weights)
    none = Value.none("these traces have no labels for it")
    return {name: computed.get(name, none) for name in names}
