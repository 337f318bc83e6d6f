"""Diagnostics that supplement the tables of figures: by position, class and effect of later steps, and curves.

They correspond to the paper's appendices on neutral-class diagnostics, on class-wise diagnostics and on the
positional decomposition. Curves are of one class against the rest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import AnyInts, Floats64
from stepsight.core.metrics import ternary
from stepsight.core.metrics.binary import auc, f1, precision, recall
from stepsight.core.metrics.bootstrap import Value, Weights
from stepsight.core.metrics.figures import Subject
from stepsight.core.metrics.reasoneval import Errors, Level
from stepsight.core.metrics.table import SILENT, Items, StepTable, by_change, by_third, retroactive
from stepsight.core.scores import Outputs
from stepsight.core.trace import Label
from stepsight.training.evaluate.evaluation import Row


def is_three_way(subject: Subject) -> bool:
    """True if the evaluator gives three probabilities and the gold labels have at least two classes to compare."""
    labels = subject.table.label
    return subject.outputs == Outputs.THREE_WAY and len(np.unique(labels[labels != SILENT])) > 1


def lacking(labels: AnyInts) -> list[Label]:
    """Return the classes that are absent from the labels."""
    return [label for label in Label if not (labels == label).any()]


def shares(labels: AnyInts) -> Floats64:
    """Return the share of each class among the labels, as an array of shape (3,). It is all NaN if there are no
    labels."""
    counts = np.bincount(labels, minlength=len(Label))
    with np.errstate(invalid="ignore"):
        fractions: Floats64 = counts / counts.sum()
    return fractions


@dataclass(frozen=True)
class RuleFigures:
    """The figures of one rule for predicting a class. `rule` is the name of the rule, and `predicted` is the
    fraction of steps for which it predicts the class."""

    rule: str
    predicted: float
    precision: Value
    recall: Value
    f1: Value


def decide(table: StepTable, label: Label, tau: float | None = None) -> RuleFigures:
    """Return the figures of one rule for predicting a class. If `tau` is None, the rule predicts the class where it
    is the most probable one. Otherwise the rule predicts it where its probability is at least `tau`."""
    # Probabilities are in single precision, so the threshold has to be too.
    steps = ternary.classify(table) if tau is None else ternary.classify(table, label, float(np.float32(tau)))
    side = steps.against_rest(label)
    rule = "argmax" if tau is None else f"p ≥ {tau:g}"
    share = float(side.predicted.mean()) if len(side) else np.nan
    return RuleFigures(rule, share, precision(side), recall(side), f1(side))


def by_class(table: StepTable, weights: Weights | None = None) -> dict[str, Value]:
    """Return the figures of each class against the rest, by names such as `neg_auc`: the AUC of its probability,
    and its F1 by argmax. They have intervals if `weights` (the resamples) are given."""
    steps = ternary.classify(table)
    sides = {label.text: steps.against_rest(label) for label in Label}
    aucs = {f"{name}_auc": auc(side, weights) for name, side in sides.items()}
    return aucs | {f"{name}_f1": f1(side, weights) for name, side in sides.items()}


def counted(table: StepTable, errors: Errors) -> NDArray[np.bool_]:
    """Return a mask of shape (n,) that selects the steps that the protocol counts.

    For invalid errors, the steps after a trace's first error do not count. To analyse part of a table, compute the
    mask on the whole table first, since the part may not contain the first error.
    """
    if errors == Errors.REDUNDANT:
        return np.ones(len(table), np.bool_)
    first = table.first_errors()[table.trace]
    upto: NDArray[np.bool_] = (first == SILENT) | (table.position <= first)
    return upto


def thirds(row: Row, weights: Weights) -> dict[str, Value]:
    """Return the positional decomposition of a row: its figures within each third of the solutions, by names such
    as `early_step_auc`.

    The figures are `step_auc` and, if the row has it, `macro_auc`. If a class is absent from a third, the macro-AUC
    covers only the remaining classes, and its `reason` says so.
    """
    subject, table = row.subject, row.subject.table
    figures = {
        f"{third}_step_auc": auc(replace(subject, table=part).items(row.errors, Level.STEP), weights)
        for third, part in by_third(table, counted(table, row.errors)).items()
    }
    if "macro_auc" in row.measured:
        for third, part in by_third(table).items():
            figures[f"{third}_macro_auc"] = ternary.macro_auc(ternary.classify(part), weights)
    return figures


def pairs(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield (online row, offline row) for each evaluator and kind of error that has both rows."""
    offline = {(row.evaluator, row.errors): row for row in rows if row.mode == "offline"}
    for row in rows:
        if row.mode == "online" and (row.evaluator, row.errors) in offline:
            yield row, offline[row.evaluator, row.errors]


@dataclass(frozen=True)
class Changed:
    """The steps whose validity fell, or rose, or stayed, once the evaluator could see later steps.

    `steps` is the number of these steps, and `wrong` is the number of them that have an error. `online` and
    `offline` are the fractions judged correctly in each mode.
    """

    steps: int
    wrong: int
    online: Value
    offline: Value

    @property
    def share_wrong(self) -> Value:
        return Value(self.wrong / self.steps) if self.steps else Value.none("there is no such step")


def by_retroactive_change(online: Row, offline: Row) -> dict[str, Changed]:
    """Group the steps by whether their validity `fell`, `rose` or `stayed` once later steps were visible.

    Only steps that the protocol counts and that were judged in both modes are included. A step counts as `stayed`
    if its validity changed by less than 0.1.
    """
    both = online.subject.table.present & offline.subject.table.present
    tables = [row.subject.table.where(both[row.subject.table.trace]) for row in (online, offline)]
    change = retroactive(*tables)
    kept = counted(tables[0], online.errors) & ~np.isnan(change)
    parts = [by_change(table.where(kept), change[kept], _LEAST_CHANGE) for table in tables]
    groups = {}
    for kind in parts[0]:
        sides = [
            replace(row.subject, table=part[kind]).items(online.errors, Level.STEP)
            for row, part in zip((online, offline), parts, strict=True)
        ]
        right = [
            Value(float((side.gold == side.predicted).mean())) if len(side) else Value.none("there is no such step")
            for side in sides
        ]
        groups[kind] = Changed(len(sides[0]), int((~sides[0].gold).sum()), *right)
    return groups


# The smallest change of validity that counts as a change.
_LEAST_CHANGE = 0.1
TAUS = np.round(np.arange(0, 1.01, 0.01), 2)


@dataclass(frozen=True, eq=False)
class Sweep:
    """The precision, recall and F1 of a class at the thresholds `taus`, in arrays of shape (len(taus),).

    The class is predicted if its probability is at least the threshold. Precision is NaN where nothing is
    predicted. If the figures cannot be computed, `reason` says why, and all of them are NaN.
    """

    taus: Floats64
    precision: Floats64
    recall: Floats64
    f1: Floats64
    reason: str = ""


def sweep(table: StepTable) -> Sweep:
    """Return the precision, recall and F1 of the neutral class against the rest at many thresholds.

    The decision rule is the one in the paper's appendix on the neutral class.
    """
    side, taus = ternary.classify(table).against_rest(Label.NEU), TAUS
    if side.ranking_problem:
        none = np.full(len(taus), np.nan)
        return Sweep(taus, none, none, none, side.ranking_problem)
    from sklearn.metrics import precision_recall_curve

    precisions, recalls, cuts = precision_recall_curve(side.gold, side.scores)
    # In single precision, as in `decide`.
    place = np.searchsorted(cuts, taus.astype(np.float32).astype(np.float64))
    right, recalled = precisions[place], recalls[place]
    with np.errstate(invalid="ignore"):
        scores = np.where(right + recalled > 0, 2 * right * recalled / (right + recalled), 0.0)
    return Sweep(taus, np.where(place == len(cuts), np.nan, right), recalled, scores)


def roc(items: Items) -> tuple[Floats64, Floats64, Floats64]:
    """Return the false positive rates, true positive rates and thresholds of the ROC curve. The arrays are empty if
    the curve is undefined because the items are all of one class or have no scores."""
    if items.ranking_problem:
        empty = np.empty(0)
        return empty, empty, empty
    from sklearn.metrics import roc_curve

    rates = roc_curve(items.gold, items.scores)
    return rates[0], rates[1], rates[2]
