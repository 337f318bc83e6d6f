"""Measuring how well falls in validity tell needed steps from other steps: the AUC, with an interval over problems.

The fall of a step is the largest fall in the validity of a later step when the step is left out
(`core.left_out.Dependence.largest_falls`). The measure is our own. A benchmark's gold labels say which steps are
needed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from stepsight.core.metrics.binary import auc
from stepsight.core.metrics.bootstrap import Value, interval, resamples
from stepsight.core.metrics.table import Items


@dataclass(frozen=True)
class LabelledFall:
    """The fall in validity when a step of a solution to `problem` is left out. `needed` is True if the gold label
    calls the step needed."""

    problem: str
    fall: float
    needed: bool


@dataclass(frozen=True)
class NeededSteps:
    """The AUC with which falls in validity tell needed steps from other steps, with the number of needed steps, of
    other steps and of problems."""

    auc: Value
    needed: int
    others: int
    problems: int


def measure_falls(falls: Iterable[LabelledFall]) -> NeededSteps:
    """Measure how well labelled falls tell needed steps from other steps. A tie counts one half.

    The 95 % interval comes from resamples of problems, since the steps of one problem are alike. The AUC is
    undefined if all steps are needed or no step is.
    """
    known = list(falls)
    # In an order that does not depend on that of the file.
    problems = {problem: place for place, problem in enumerate(sorted({one.problem for one in known}))}
    needed = np.array([one.needed for one in known], np.bool_)
    scores = np.array([one.fall for one in known], np.float64)
    items = Items(scores, needed, needed, np.array([problems[one.problem] for one in known], np.int64))
    value = auc(items)
    if value.exists and len(problems) > 1:
        value = interval(value, auc.draws(items, resamples(len(problems))))
    return NeededSteps(value, int(needed.sum()), int((~needed).sum()), len(problems))
