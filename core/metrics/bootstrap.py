"""The value of a metric with its interval, and the bootstrap over traces that intervals come from: resamples as
counts per trace, and the sums and shares computed from them."""

import math
import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import AnyInts, Bools, Floats64

DRAWS = 1000
# The arrays of a chunk of resamples stay within this many numbers.
_CHUNK = 4_000_000
# Resamples of more bytes lie in a file, of which only the chunk in use is in memory.
_IN_MEMORY = 20_000_000
Weights = NDArray[np.uint8]


@dataclass(frozen=True)
class Value:
    """`number` is NaN only with a `reason`; beside a number, `reason` says what the number leaves out. `low` and
    `high` are the 95 % interval, NaN if there is none."""

    number: float
    reason: str = ""
    low: float = math.nan
    high: float = math.nan

    @classmethod
    def none(cls, reason: str) -> "Value":
        return cls(math.nan, reason)

    @property
    def exists(self) -> bool:
        return not math.isnan(self.number)

    def within(self, low: float, high: float) -> "Value":
        """The same value with its interval."""
        return Value(self.number, self.reason, low, high)

    def as_json(self) -> dict[str, float | str | None]:
        """`value`, `low` and `high` as fractions, null for NaN, and the reason if there is one."""
        shown = {"value": self.number, "low": self.low, "high": self.high}
        numbers: dict[str, float | str | None] = {k: None if math.isnan(v) else v for k, v in shown.items()}
        return numbers | ({"reason": self.reason} if self.reason else {})


def resamples(traces: int, draws: int = DRAWS, seed: int = 0) -> Weights:
    """The number of times each trace is drawn, shape (draws, traces). Every evaluator gets the same resamples, so
    that differences between evaluators are paired."""
    rng = np.random.default_rng(seed)
    if not traces:
        return np.zeros((draws, 0), np.uint8)
    # No trace is ever drawn as often as 255 times.
    counts = _room(draws, traces)
    for part in chunks(counts, traces):
        for row in part:
            row[:] = np.bincount(rng.integers(0, traces, traces), minlength=traces)
    return counts


def _room(draws: int, traces: int) -> Weights:
    """Memory for resamples; a large amount is an unnamed file, if the disk has room."""
    if draws * traces <= _IN_MEMORY or not hasattr(os, "posix_fallocate"):
        return np.empty((draws, traces), np.uint8)
    with tempfile.TemporaryFile() as file:
        try:
            # A disk that is full must show now, since it cannot once the file is written through memory.
            os.posix_fallocate(file.fileno(), 0, draws * traces)
        except OSError:
            return np.empty((draws, traces), np.uint8)
        return np.memmap(file, np.uint8, "r+", shape=(draws, traces))


def weighted_sums(hits: Sequence[Bools], trace: AnyInts, weights: Weights) -> Floats64:
    """The number of hits in each resample, shape (hits, draws); each of `hits` has shape (items,)."""
    per_trace = np.stack([np.bincount(trace[hit], minlength=weights.shape[1]) for hit in hits]).astype(np.float32)
    return weighted_totals(per_trace.T, weights).T.astype(np.float64)


def weighted_totals(per_trace: NDArray[Any], weights: Weights) -> NDArray[Any]:
    """Sums over the traces of each resample, shape (draws, columns), of numbers per trace, shape (traces, columns),
    computed and returned in the type of those numbers."""
    drawn = [chunk.astype(per_trace.dtype) @ per_trace for chunk in chunks(weights, weights.shape[1])]
    return np.concatenate(drawn)


def chunks(weights: Weights, numbers: int) -> Iterator[Weights]:
    """The resamples in parts, each small enough for `numbers` values per resample to stay within bounds."""
    size = max(1, _CHUNK // max(1, numbers))
    for start in range(0, len(weights), size):
        yield weights[start : start + size]
        if isinstance(weights.base, mmap.mmap):
            # The file still has them.
            weights.base.madvise(mmap.MADV_DONTNEED)


def share(hit: Bools, trace: AnyInts, weights: Weights | None, lacking: str) -> Value:
    """The share of hits among items, with its interval if there are `weights` and the items are of several traces;
    `lacking` is the reason given if there are no items."""
    if not len(hit):
        return Value.none(lacking)
    value = Value(float(hit.mean()))
    if weights is None:
        return value
    # Pairs of people share few of many traces.
    kept, place = np.unique(trace, return_inverse=True)
    if len(kept) == 1:
        return value
    hits, total = weighted_sums([hit, np.ones_like(hit)], place, weights[:, kept])
    with np.errstate(invalid="ignore"):
        return interval(value, hits / total)


def interval(value: Value, draws: Floats64) -> Value:
    """`value` with the 2.5th and 97.5th percentiles of its resamples, or without an interval if most resamples are
    undefined."""
    if not value.exists or np.isnan(draws).mean() > 0.5:
        return value
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return value.within(float(low), float(high))


def difference(first: Value, second: Value, first_draws: Floats64, second_draws: Floats64) -> Value:
    """First minus second, with the interval of the paired resamples: both sets of draws are of the same traces."""
    for value in (first, second):
        if not value.exists:
            return Value.none(value.reason)
    draws = first_draws - second_draws
    low, high = (np.nan, np.nan) if np.isnan(draws).mean() > 0.5 else np.nanpercentile(draws, [2.5, 97.5])
    return Value(first.number - second.number).within(float(low), float(high))
