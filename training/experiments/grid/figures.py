"""The figures of a run on a test: accuracy, macro-F1 and macro-AUC over all steps, by third and by class."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepsight.core.label import Label
from stepsight.core.metrics.binary import auc
from stepsight.core.metrics.table import StepTable, Third, by_third
from stepsight.core.metrics.ternary import Classified, accuracy, classify, macro_auc, macro_f1
from stepsight.core.metrics.value import Value

ACCURACY, MACRO_F1, MACRO_AUC, LATE_AUC = "accuracy", "macro_f1", "macro_auc", "late_auc"
METRICS = {ACCURACY: "Accuracy", MACRO_F1: "macro-F1", MACRO_AUC: "macro-AUC", LATE_AUC: "Late-AUC"}
"""The columns of the paper's tables; the last is macro-AUC in the last third."""


@dataclass(frozen=True)
class Figures:
    """Fractions; NaN where a figure has no value.

    `whole` by metric. `thirds`: for each third of the solution its `macro_auc`, the `steps` and how many labels of
    each class. `classes`: for each label the `auc` against the rest and the `f1`. Both are empty where they are not
    known.
    """

    whole: Mapping[str, float]
    thirds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    traces: int = 0
    steps: int = 0

    def of(self, part: str = "") -> Mapping[str, float]:
        """The figures of a third or a class by name, of all steps without one; empty where they are not known."""
        return {**self.thirds, **self.classes}.get(part, {}) if part else self.whole

    def as_json(self) -> dict[str, Any]:
        """JSON values, null for NaN."""
        return {
            "traces": self.traces,
            "steps": self.steps,
            **_nulls(self.whole),
            "thirds": {name: _nulls(values) for name, values in self.thirds.items()},
            "classes": {name: _nulls(values) for name, values in self.classes.items()},
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Figures":
        """Raises `KeyError` or `TypeError` where they are not what `as_json` gives."""
        return cls(
            whole={name: _number(values[name]) for name in METRICS},
            thirds={name: _numbers(figures) for name, figures in values["thirds"].items()},
            classes={name: _numbers(figures) for name, figures in values["classes"].items()},
            traces=int(values["traces"]),
            steps=int(values["steps"]),
        )


def figures_of(table: StepTable) -> Figures:
    """What an evaluator reaches on the labelled steps of a table, deciding by argmax.

    A third is the paper's bucket; where the gold lacks a class, macro-AUC is the mean of those that it has. The
    AUCs of an evaluator without three probabilities are those of what it gives.
    """
    steps = classify(table)
    thirds = {third.value: _third(classify(part)) for third, part in by_third(table).items()}
    return Figures(
        whole={
            ACCURACY: accuracy(steps).number,
            MACRO_F1: macro_f1(steps).number,
            MACRO_AUC: macro_auc(steps).number,
            LATE_AUC: thirds[Third.LATE.value][MACRO_AUC],
        },
        thirds=thirds,
        classes={label.text: _class(steps, label) for label in Label},
        traces=table.traces,
        steps=len(steps),
    )


def _third(steps: Classified) -> dict[str, float]:
    counts = {label.text: float((steps.gold == label).sum()) for label in Label}
    return {
        MACRO_AUC: macro_auc(steps).number,
        ACCURACY: accuracy(steps).number,
        "steps": float(len(steps)),
    } | counts


def _class(steps: Classified, label: Label) -> dict[str, float]:
    items = steps.against_rest(label)
    hits, labelled, decided = (
        int(cells.sum()) for cells in (items.gold & items.predicted, items.gold, items.predicted)
    )
    f1 = Value(2 * hits / (labelled + decided)) if labelled + decided else Value.none("it never occurs")
    return {"auc": auc(items).number, "f1": f1.number}


def _nulls(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: _number(value) for name, value in values.items()}


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
