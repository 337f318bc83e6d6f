"""Metrics of step scores against gold."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from core.scores import StepScores
from core.trace import Trace


def step_validity(pairs: Iterable[tuple[Trace, StepScores]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Validity scores and gold validity of every step that has one, pooled over traces.

    A step's score is the least validity of its sub-steps; steps whose gold says nothing are left out (ReasonEval's
    protocol for invalid errors, paper §4.1).
    """
    scores: list[float] = []
    golds: list[bool] = []
    for trace, result in pairs:
        for step, score in zip(trace.steps, result.by_step(trace.owners).validity, strict=True):
            if step.valid is not None:
                scores.append(float(score))
                golds.append(step.valid)
    return np.asarray(scores, np.float64), np.asarray(golds, np.bool_)


def auc(scores: NDArray[np.float64], golds: NDArray[np.bool_]) -> float:
    """Area under the ROC curve of `scores` for the positive class; NaN where only one class is present."""
    if golds.all() or not golds.any():
        return float("nan")
    return float(roc_auc_score(golds, scores))
