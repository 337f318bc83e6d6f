"""Choosing the traces to label first, and unbiased estimates from their labels.

Traces are drawn one after another without replacement, informative ones sooner. The chance with which each was
drawn gives its label a weight that undoes the preference: the estimator R_LURE of Farquhar et al. 2021
(arXiv:2101.11665), used for evaluation by Kossen et al. 2021 (arXiv:2103.05331). The evaluators' predictions for
all traces are known without any label, so only the difference from them has to be estimated: the difference
estimator of Särndal et al. 1992, section 6.3. The measure of information is our own choice.
"""

import math
import random
from collections.abc import Iterator, Sequence

import numpy as np

from stepsight.core.arrays import AnyInts, Floats64
from stepsight.core.metrics.bootstrap import Value

FEWEST = 10
"""The least number of labels that give an estimate."""

# The part of its information that a trace keeps for each earlier trace of the same problem.
_AGAIN = 0.5
# The bounds of a 95 % interval in standard errors.
_WIDTH = 1.959964


def information(validities: Floats64, thresholds: Floats64) -> Floats64:
    """Return how informative the label of each trace is expected to be, from 0 to 1, with shape (n,).

    It is the mean of two terms: the range of the evaluators' validities, and how close the closest of them is to
    its evaluator's threshold. `validities` has the shape (evaluators, n), with NaN for a missing one, and
    `thresholds` the shape (evaluators,). A trace without a validity gets the mean of the others, or 0 if there are
    none.
    """
    far = np.abs(validities - thresholds[:, None]) / np.maximum(thresholds, 1 - thresholds)[:, None]
    known = ~np.isnan(validities).all(axis=0)
    told = np.zeros(validities.shape[1])
    some = validities[:, known]
    if some.size:
        spread = np.nanmax(some, axis=0) - np.nanmin(some, axis=0)
        told[known] = (spread + 1 - np.nanmin(far[:, known], axis=0)) / 2
        told[~known] = told[known].mean()
    return told


def draw(
    information: Sequence[float], problems: Sequence[int], share: float, rng: random.Random
) -> Iterator[tuple[int, float]]:
    """Yield the index of every trace, in the order drawn, with its chance among the traces left at that time.

    A trace is drawn at random with the probability `share`, and otherwise in proportion to its information. The
    information is halved for each trace of the same problem that was drawn before; `problems` numbers the problem
    of each trace.
    """
    weights = _RunningSums(information)
    left = list(range(len(information)))
    place = list(left)
    others: dict[int, list[int]] = {}
    for index, problem in enumerate(problems):
        others.setdefault(problem, []).append(index)
    while left:
        total = weights.total
        at_random = total <= 0 or rng.random() < share
        index = rng.choice(left) if at_random else weights.find(rng.random() * total)
        by_chance = 1 / len(left)
        yield index, (1 - share) * weights[index] / total + share * by_chance if total > 0 else by_chance
        last = left.pop()
        if last != index:
            left[place[index]], place[last] = last, place[index]
        weights[index] = 0.0
        for other in others[problems[index]]:
            weights[other] = weights[other] * _AGAIN


class _RunningSums:
    """Numbers that can be changed, and found by their running sum, in logarithmic time (Fenwick 1994)."""

    def __init__(self, numbers: Sequence[float]) -> None:
        self._numbers = [0.0] * len(numbers)
        self._sums = [0.0] * (len(numbers) + 1)
        for index, number in enumerate(numbers):
            self[index] = number

    def __getitem__(self, index: int) -> float:
        return self._numbers[index]

    def __setitem__(self, index: int, number: float) -> None:
        change, self._numbers[index] = number - self._numbers[index], number
        index += 1
        while index < len(self._sums):
            self._sums[index] += change
            index += index & -index

    @property
    def total(self) -> float:
        """The sum of the numbers, without the rounding errors of earlier changes once all are 0."""
        index, total = len(self._numbers), 0.0
        while index:
            total += self._sums[index]
            index -= index & -index
        return total if total > 1e-9 else 0.0

    def find(self, point: float) -> int:
        """Return the index of the first number at which the running sum exceeds `point`. Numbers of 0 are never
        found."""
        index, step = 0, 1 << len(self._numbers).bit_length()
        while step := step >> 1:
            if index + step <= len(self._numbers) and self._sums[index + step] <= point:
                index += step
                point -= self._sums[index]
        while index >= len(self._numbers) or not self._numbers[index]:
            # Rounding led to a number of 0.
            index -= 1
        return index


def weights_of(chances: Floats64, total: int) -> Floats64:
    """Return the weights of the first traces drawn, given the chance of each and the number of all traces.

    Their mean has the expectation 1. If all traces are drawn, or each with the same chance as the others left, all
    weights are 1.
    """
    drawn = np.arange(1, len(chances) + 1)
    if len(chances) == total:
        return np.ones(total)
    return 1 + (total - len(chances)) / (total - drawn) * (1 / ((total - drawn + 1) * chances) - 1)


def estimate_mean(values: Floats64, places: AnyInts, chances: Floats64, predicted: Floats64) -> Value:
    """Estimate the mean of a value over all `n` traces from those drawn so far.

    `values`, `places` and `chances` have the shape (drawn,): the value of each trace, its index, and the chance
    with which it was drawn. An unknown value is NaN and is left out, as if it were like the others. `predicted` has
    the shape (n,) and holds what is expected of each trace without a label; whatever it is, the estimate is
    unbiased. The interval is the normal approximation with the correction for a finite population. There is no
    value if fewer than `FEWEST` values are known.
    """
    known = ~np.isnan(values)
    count, total = int(known.sum()), len(predicted)
    if count < min(FEWEST, total):
        return Value.none(f"it takes {FEWEST} labelled traces")
    differences = (weights_of(chances, total) * (values - predicted[places]))[known]
    number = float(predicted.mean() + differences.mean())
    spread = float(differences.std(ddof=1)) if count > 1 else 0.0
    error = _WIDTH * spread * math.sqrt((1 - count / total) / count)
    return Value(_share(number)).within(_share(number - error), _share(number + error))


def _share(number: float) -> float:
    return min(max(number, 0.0), 1.0)
