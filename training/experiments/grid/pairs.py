"""Matching the runs of a grid in pairs, and summarising the differences within the pairs.

A pair consists of a bidirectional and a causal run of the same size, data and seed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from stepsight.core.arrays import Floats64
from stepsight.core.metrics.bootstrap import Value, interval
from stepsight.training.experiments.grid.results import GridResults, Key

MASKS = {"bidirectional": "Bidir", "causal": "Causal"}
PLACE = ["size", "data", "seed"]

_DRAWS = 10_000


@dataclass(frozen=True)
class Contrast:
    """The comparison of bidirectional and causal runs in one figure.

    `wins` counts the pairs in which the bidirectional run is better, `ties` the pairs that are equal, and `pairs`
    all pairs. `mean` is the mean of bidirectional minus causal, with a 95 % bootstrap interval over the pairs.
    """

    wins: int
    ties: int
    pairs: int
    mean: Value


def pair_values(results: GridResults, key: Key, metric: str, part: str = "") -> pd.DataFrame:
    """Return the figure `metric` of both runs of each matched pair. Pairs with an unfinished run are left out.

    The columns `bidirectional` and `causal` hold fractions, or NaN if undefined. There is a row for each size,
    amount of data and seed, in the order of the design. If `part` names a third of the solutions or a class, the
    figure covers only that part, and runs without figures for it are left out. By default, the figure covers all
    steps.
    """
    rows = [
        (run.size, run.data, run.seed, run.mask, figures.of(part)[metric])
        for run, figures in results.figures(key)
        if figures.of(part)
    ]
    runs = pd.DataFrame(rows, columns=[*PLACE, "mask", metric]).set_index(PLACE)
    sides = [runs.loc[runs["mask"] == mask, metric].astype(float) for mask in MASKS]
    return pd.concat(sides, axis=1, join="inner", keys=list(MASKS))


def by_size_and_data(pairs: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield (data, size, pairs) for each combination of an amount of data and a size, in order."""
    groups = dict(iter(pairs.groupby(level=["data", "size"], sort=False)))
    for data in pairs.index.unique("data"):
        for size in pairs.index.unique("size"):
            if (data, size) in groups:
                yield data, size, groups[data, size]


def gains(pairs: pd.DataFrame) -> pd.Series:
    """Return the bidirectional figure minus the causal one for each pair."""
    return pairs["bidirectional"] - pairs["causal"]


def contrast(gains: ArrayLike) -> Contrast:
    """Summarise the differences of the pairs as wins, ties and a mean. Undefined differences are left out.
    Differences below one billionth count as ties, so that rounded figures that look equal are treated as equal."""
    kept = _numbers(gains)
    value = mean(kept)
    return Contrast(
        wins=int((kept > 1e-9).sum()),
        ties=int((np.abs(kept) <= 1e-9).sum()),
        pairs=len(kept),
        mean=interval(value, resampled_means(kept)) if len(kept) > 1 else value,
    )


def resampled_means(values: Floats64) -> Floats64:
    """Return the means of bootstrap resamples, as an array of shape (draws,). Arrays of equal length are resampled
    alike."""
    draws = np.random.default_rng(0).integers(0, len(values), (_DRAWS, len(values)))
    means: Floats64 = values[draws].mean(axis=1)
    return means


def mean(values: ArrayLike) -> Value:
    """Return the mean of the values that are not NaN."""
    kept = _numbers(values)
    return Value(float(kept.mean())) if len(kept) else Value.none("no pair has a value")


def _numbers(values: ArrayLike) -> Floats64:
    numbers = np.asarray(values, np.float64)
    return numbers[~np.isnan(numbers)]
