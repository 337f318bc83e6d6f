"""The value of a metric with its interval, and the bootstrap over traces.

A resample is stored as the number of times that each trace is drawn. Sums and shares over the resample are computed
from these counts.
"""

import math
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import AnyInts, Floats64

DRAWS = 1000
# The arrays of a chunk of resamples hold at most this many numbers.
_CHUNK = 4_000_000
# Resamples with more bytes are kept in a file, of which only the chunk in use is in memory.
_IN_MEMORY = 20_000_000
Weights = NDArray[np.uint8]


@dataclass(frozen=True)
class Value:
    """The value of a metric and its 95 % interval.

    An undefined `number` is NaN, and `reason` says why. If `number` is defined, `reason` says what the metric
    leaves out, or is "". `low` and `high` are the bounds of the interval, or NaN if there is none. `draws` holds
    the values on the resamples, with shape (draws,), or is None if the metric has not been computed on them.
    """

    number: float
    reason: str = ""
    low: float = math.nan
    high: float = math.nan
    draws: Floats64 | None = field(default=None, repr=False, compare=False)

    @classmethod
    def none(cls, reason: str) -> "Value":
        return cls(math.nan, reason)

    @property
    def exists(self) -> bool:
        return not math.isnan(self.number)

    def within(self, low: float, high: float) -> "Value":
        """Return a copy with the interval from `low` to `high`."""
        return replace(self, low=low, high=high)

    def as_json(self) -> dict[str, float | str | None]:
        """Return `value`, `low` and `high` as fractions, with null for NaN, and `reason` if there is one."""
        shown = {"value": self.number, "low": self.low, "high": self.high}
        numbers: dict[str, float | str | None] = {k: None if math.isnan(v) else v for k, v in shown.items()}
        return numbers | ({"reason": self.reason} if self.reason else {})


def resamples(traces: int, draws: int = DRAWS) -> Weights:
    """Return how often each trace is drawn in each resample, as an array of shape (draws, traces). Evaluators
    compared on the same traces get the same resamples, so that differences between them are paired."""
    rng = np.random.default_rng(0)
    if not traces:
        return np.zeros((draws, 0), np.uint8)
    # No trace is ever drawn as often as 255 times.
    counts = _allocate(draws, traces)
    for part in chunks(counts, traces):
        for row in part:
            row[:] = np.bincount(rng.integers(0, traces, traces), minlength=traces)
    return counts


def _allocate(draws: int, traces: int) -> Weights:
    """Allocate memory for resamples. A large array is backed by an unnamed temporary file if the disk has room."""
    if draws * traces <= _IN_MEMORY or not hasattr(os, "posix_fallocate"):
        return np.empty((draws, traces), np.uint8)
    with tempfile.TemporaryFile() as file:
        try:
            # A full disk must be noticed now, since it cannot be reported once the file is written through memory.
            os.posix_fallocate(file.fileno(), 0, draws * traces)
        except OSError:
            return np.empty((draws, traces), np.uint8)
        return np.memmap(file, np.uint8, "r+", shape=(draws, traces))


def weighted_sums(columns: Sequence[NDArray[Any]], trace: AnyInts, weights: Weights) -> Floats64:
    """Sum numbers over the items of each resample, or count flags. Each of the columns has the shape (items,), and
    the result the shape (columns, draws)."""
    per_trace = np.stack([np.bincount(trace, column, weights.shape[1]) for column in columns], axis=1)
    # Counts below 16 million are exact in single precision, which takes half the time.
    exact = all(column.dtype == np.bool_ for column in columns)
    return weighted_totals(per_trace.astype(np.float32) if exact else per_trace, weights).T.astype(np.float64)


def ratio(parts: NDArray[Any], wholes: NDArray[Any], trace: AnyInts, weights: Weights) -> Floats64:
    """Return a ratio of sums over the items of each resample, with shape (draws,), given both terms of each item.
    It is NaN where nothing is drawn."""
    part, whole = weighted_sums([parts, wholes], trace, weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        quotients: Floats64 = part / whole
    return quotients


def weighted_totals(per_trace: NDArray[Any], weights: Weights) -> NDArray[Any]:
    """Sum numbers over the traces of each resample. `per_trace` has the shape (traces, columns).

    The sums have the shape (draws, columns). They are computed and returned in the data type of `per_trace`.
    """
    sums = [chunk.astype(per_trace.dtype) @ per_trace for chunk in chunks(weights, weights.shape[1])]
    return np.concatenate(sums)


def chunks(weights: Weights, numbers: int) -> Iterator[Weights]:
    """Yield the resamples in chunks. They are small enough for memory if processing one resample needs `numbers`
    values."""
    size = max(1, _CHUNK // max(1, numbers))
    for start in range(0, len(weights), size):
        yield weights[start : start + size]
        if isinstance(weights.base, mmap.mmap):
            # The file still holds them.
            weights.base.madvise(mmap.MADV_DONTNEED)


def mean(
    numbers: NDArray[Any],
    trace: AnyInts,
    weights: Weights | None,
    reason: str = "",
    counts: NDArray[Any] | None = None,
) -> Value:
    """Return the mean of numbers, or the share of True among flags. If `counts` are given, each number is the sum
    over that many items.

    `trace` is the index of the trace of each number. The mean has an interval over traces if `weights` (the
    resamples) are given and there are items of several traces. If there are no items, it is undefined, for the
    given `reason`.
    """
    counts = np.ones(len(numbers)) if counts is None else counts
    if not counts.any():
        return Value.none(reason)
    value = Value(float(numbers.sum() / counts.sum()))
    # Pairs of people have few of the many traces in common.
    present, place = np.unique(trace[counts > 0], return_inverse=True)
    if weights is None or len(present) == 1:
        return value
    return interval(value, ratio(numbers[counts > 0], counts[counts > 0], place, weights[:, present]))


def interval(value: Value, draws: Floats64) -> Value:
    """Return `value` with the interval from the 2.5th to the 97.5th percentile of its values on the resamples.
    There is no interval if most resamples are undefined."""
    if not value.exists or np.isnan(draws).mean() > 0.5:
        return value
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return value.within(float(low), float(high))


def difference(first: Value, second: Value) -> Value:
    """Return the first value minus the second. The draws of both must come from the same resamples: they are
    paired, and give the interval. Without draws, there is no interval."""
    for value in (first, second):
        if not value.exists:
            return Value.none(value.reason)
    minus = Value(first.number - second.number)
    if first.draws is None or second.draws is None:
        return minus
    return interval(minus, first.draws - second.draws)


class OfTraces(Protocol):
    """A sample whose `trace` holds the index of the trace of each of its items, with shape (n,)."""

    @property
    def trace(self) -> AnyInts: ...


Sample = TypeVar("Sample", bound=OfTraces)


@dataclass(frozen=True)
class Statistic(Generic[Sample]):
    """A metric of a sample: one function `draws` of the sample and of how often each trace is drawn.

    `draws(sample, weights)` returns the metric on each resample, with shape (draws,), and NaN where it is
    undefined. Its value is the metric where each trace is drawn once. `problem(sample)` is the reason why the value
    is undefined, or "", and `note(sample)` what a defined value leaves out.
    """

    draws: Callable[[Sample, Weights], Floats64]
    problem: Callable[[Sample], str]
    note: Callable[[Sample], str] = lambda sample: ""

    def __call__(self, sample: Sample, weights: Weights | None = None) -> Value:
        """Return the value of the metric. If `weights` (the resamples) are given, it has draws and, if the sample
        has several traces, an interval."""
        if reason := self.problem(sample):
            return Value.none(reason)
        ones = np.ones((1, int(sample.trace.max()) + 1), np.uint8)
        draws = None if weights is None else self.draws(sample, weights)
        value = Value(float(self.draws(sample, ones)[0]), self.note(sample), draws=draws)
        return value if draws is None or not np.ptp(sample.trace) else interval(value, draws)


def statistic(
    problem: Callable[[Sample], str], note: Callable[[Sample], str] = lambda sample: ""
) -> Callable[[Callable[[Sample, Weights], Floats64]], Statistic[Sample]]:
    """Return a decorator that makes a metric of its draws (see `Statistic`)."""

    def decorate(draws: Callable[[Sample, Weights], Floats64]) -> Statistic[Sample]:
        metric = Statistic(draws, problem, note)
        object.__setattr__(metric, "__doc__", draws.__doc__)
        return metric

    return decorate
