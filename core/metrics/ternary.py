"""Three-class metrics over steps labelled neg, neu or pos."""

from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import AnyInts, Floats32, Floats64, Ints
from stepsight.core.metrics.binary import auc, f1
from stepsight.core.metrics.bootstrap import Weights, ratio, statistic
from stepsight.core.metrics.table import NO_ITEMS, ONE_CLASS, SILENT, Items, StepTable
from stepsight.core.trace import Label


@dataclass(frozen=True, eq=False)
class Classified:
    """The `n` labelled steps that have scores, and their predicted labels. `probs` has the shape (n, 3); `gold`,
    `predicted` and `trace` have the shape (n,)."""

    probs: Floats32
    gold: AnyInts
    predicted: AnyInts
    trace: AnyInts

    def __len__(self) -> int:
        return len(self.gold)

    def against_rest(self, label: Label) -> Items:
        """Return the items of a two-class metric in which `label` is positive and the other two labels are
        negative."""
        return Items(
            self.probs[:, label].astype(np.float64), self.gold == label, self.predicted == label, self.trace
        )


def classify(table: StepTable, label: Label | None = None, tau: float = 0.5) -> Classified:
    """Predict the most probable label for every labelled step that has scores.

    If `label` is given, it is predicted for steps where its probability is at least `tau`, and the more probable of
    the other two labels is predicted for all other steps.
    """
    selected = (table.label != SILENT) & ~np.isnan(table.validity)
    probs = table.probs[selected]
    predicted = probs.argmax(axis=1).astype(np.int8)
    if label is not None:
        rest = probs.copy()
        rest[:, label] = -1
        predicted = np.where(probs[:, label] >= tau, np.int8(label), rest.argmax(axis=1).astype(np.int8))
    return Classified(probs, table.label[selected], predicted, table.trace[selected])


def _no_steps(steps: Classified) -> str:
    return "" if len(steps) else NO_ITEMS


@statistic(_no_steps)
def accuracy(steps: Classified, weights: Weights) -> Floats64:
    """The share of steps that are classified correctly."""
    hits = steps.gold == steps.predicted
    return ratio(hits, np.ones_like(hits), steps.trace, weights)


@statistic(_no_steps)
def macro_f1(steps: Classified, weights: Weights) -> Floats64:
    """The mean F1 of the classes that occur in the gold labels, or in those of a resample. A class that is never
    predicted has an F1 of 0."""
    stacked = np.array([f1.draws(steps.against_rest(label), weights) for label in Label])
    present = ~np.isnan(stacked)
    with np.errstate(invalid="ignore"):
        mean: Floats64 = np.where(present, stacked, 0).sum(axis=0) / present.sum(axis=0)
    return mean


def _missing_classes(steps: Classified) -> list[str]:
    return [label.text for label in Label if steps.against_rest(label).problem]


def _missing_note(steps: Classified) -> str:
    return f"the gold has no {' or '.join(missing)}" if (missing := _missing_classes(steps)) else ""


def _macro_auc_problem(steps: Classified) -> str:
    return _no_steps(steps) or (ONE_CLASS if len(_missing_classes(steps)) == len(Label) else "")


@statistic(_macro_auc_problem, _missing_note)
def macro_auc(steps: Classified, weights: Weights) -> Floats64:
    """The mean one-against-rest AUC of the classes that occur in the gold labels.

    This is the metric that the paper shows by step position. If a class does not occur, the reason of the value
    says so. It is undefined if only one class occurs, and NaN if a resample lacks one of the classes.
    """
    sides = (steps.against_rest(label) for label in Label)
    draws = [auc.draws(items, weights) for items in sides if not items.problem]
    return np.mean(draws, axis=0) if draws else np.full(len(weights), np.nan)


def confusion(steps: Classified) -> Ints:
    """Return the confusion matrix, with shape (3, 3). Rows are gold labels and columns predicted labels."""
    counts = np.zeros((3, 3), np.int64)
    np.add.at(counts, (steps.gold, steps.predicted), 1)
    return counts
