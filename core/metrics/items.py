"""Items: what a two-class metric is computed from, and the metrics of two classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score, roc_curve

from stepsight.core.metrics.value import Value

NO_ITEMS = "there is nothing to measure"
ONE_CLASS = "the gold has one class only"
NO_SCORES = "the evaluator gives no scores to rank by"


@dataclass(frozen=True, eq=False)
class Items:
    """`n` steps or solutions, each of shape (n,): `scores`, higher for the positive class, NaN where the evaluator
    gives none; `golds`; `predicted`; and `trace`, the place of the trace that each belongs to.

    A prediction that could not be read counts as the opposite of the gold (ReasonEval's protocol): whoever
    builds the items puts it in so.
    """

    scores: NDArray[np.float64]
    golds: NDArray[np.bool_]
    predicted: NDArray[np.bool_]
    trace: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.golds)

    @property
    def problem(self) -> str:
        """Why there is no metric of the predictions, or ""."""
        if not len(self):
            return NO_ITEMS
        return ONE_CLASS if self.golds.all() or not self.golds.any() else ""

    @property
    def ranking_problem(self) -> str:
        """Why there is no metric of the scores, or ""."""
        return self.problem or (NO_SCORES if np.isnan(self.scores).any() else "")

    def where(self, chosen: NDArray[np.bool_]) -> "Items":
        """Some of the items."""
        return Items(self.scores[chosen], self.golds[chosen], self.predicted[chosen], self.trace[chosen])


def macro_f1(items: Items) -> Value:
    """Mean of the F1 of both classes, pooled over all items. A class that is never predicted has F1 0; where the
    gold has one class only there is no value."""
    if items.problem:
        return Value.none(items.problem)
    return Value(float(f1_score(items.golds, items.predicted, average="macro", zero_division=0)))


def auc(items: Items) -> Value:
    """Area under the ROC curve of the scores for the positive class; ties count one half."""
    if items.ranking_problem:
        return Value.none(items.ranking_problem)
    return Value(float(roc_auc_score(items.golds, items.scores)))


def precision(items: Items) -> Value:
    """Of what is predicted positive, the share that is; no value where nothing is predicted so."""
    if not items.predicted.any():
        return Value.none("nothing is predicted so")
    return Value(float(precision_score(items.golds, items.predicted)))


def recall(items: Items) -> Value:
    """Of what is positive, the share predicted so; no value where nothing is."""
    if not items.golds.any():
        return Value.none("the gold has no such item")
    return Value(float(recall_score(items.golds, items.predicted)))


def roc(items: Items) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """False positive rate, true positive rate and threshold of each point; empty where there is no curve."""
    if items.ranking_problem:
        empty = np.empty(0)
        return empty, empty, empty
    rates = roc_curve(items.golds, items.scores)
    return rates[0], rates[1], rates[2]
