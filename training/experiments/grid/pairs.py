"""Pairs: the bidirectional and the causal run that share size, data and seed, and what they differ by."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import Floats64
from stepsight.core.metrics.value import Value
from stepsight.training.experiments.grid.figures import Figures
from stepsight.training.experiments.grid.results import Key, Results, RunResult

_DRAWS = 10_000
_NONE = "no pair has a value"


@dataclass(frozen=True)
class Pair:
    """Two matched runs."""

    bidirectional: RunResult
    causal: RunResult

    @property
    def size(self) -> str:
        return self.bidirectional.cell.size

    @property
    def data(self) -> str:
        return self.bidirectional.cell.data

    def figures(self, key: Key) -> tuple[Figures, Figures]:
        """Bidirectional and causal."""
        return self.bidirectional.figures[key], self.causal.figures[key]


@dataclass(frozen=True)
class Contrast:
    """Bidirectional minus causal of one figure over `pairs`: how often it is more (`wins`) and `ties`, and the mean
    with the 95 % interval of a bootstrap over the pairs."""

    wins: int
    ties: int
    pairs: int
    mean: Value


def pairs_of(results: Results) -> list[Pair]:
    """The matched runs of which both are done, in order."""
    by_cell = {run.cell: run for run in results.runs}
    found = []
    for cell, run in by_cell.items():
        if cell.mask == "bidirectional":
            other = by_cell.get(type(cell)(cell.size, cell.data, "causal", cell.seed))
            found += [Pair(run, other)] if other else []
    return found


def differences(pairs: Iterable[Pair], key: Key, metric: str) -> Floats64:
    """Bidirectional minus causal of each pair, shape (pairs,); fractions, NaN where one has no value."""
    both = [pair.figures(key) for pair in pairs]
    return np.array([one.whole[metric] - other.whole[metric] for one, other in both], np.float64)


def contrast(found: Floats64) -> Contrast:
    """Wins and mean of differences, shape (pairs,); those without a value are left out.

    Figures that are printed with a digit less than they were computed with are as equal as they look: a difference
    under one billionth is a tie.
    """
    kept = found[~np.isnan(found)]
    if not len(kept):
        return Contrast(0, 0, 0, Value.none(_NONE))
    low, high = interval(kept)
    return Contrast(
        wins=int((kept > 1e-9).sum()),
        ties=int((np.abs(kept) <= 1e-9).sum()),
        pairs=len(kept),
        mean=Value(float(kept.mean())).within(low, high),
    )


def interval(values: Floats64) -> tuple[float, float]:
    """The middle 95 % of the means of resamples, or NaN where there is one value only."""
    if len(values) < 2:
        return float("nan"), float("nan")
    low, high = np.percentile(resampled_means(values), [2.5, 97.5])
    return float(low), float(high)


def resampled_means(values: Floats64) -> Floats64:
    """The means of resamples, shape (draws,), the same ones for every array of that length."""
    draws = np.random.default_rng(0).integers(0, len(values), (_DRAWS, len(values)))
    means: Floats64 = values[draws].mean(axis=1)
    return means


def mean(values: Sequence[float]) -> Value:
    """The mean of those that are a number."""
    kept = [value for value in values if not np.isnan(value)]
    return Value(float(np.mean(kept))) if kept else Value.none(_NONE)
