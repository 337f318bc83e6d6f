"""Curves of one class against the rest: the ROC curve, and precision and recall at many thresholds.

Only plots need scikit-learn, which takes a second to import and is therefore imported when a curve is drawn.
"""

from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import Floats64
from stepsight.core.metrics import ternary
from stepsight.core.metrics.table import Items, StepTable
from stepsight.core.trace import Label

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


def sweep(table: StepTable, label: Label = Label.NEU, taus: Floats64 = TAUS) -> Sweep:
    """Return the precision, recall and F1 of one class against the rest at many thresholds.

    The decision rule is the one in the paper's appendix on the neutral class.
    """
    side = ternary.classify(table).against_rest(label)
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
