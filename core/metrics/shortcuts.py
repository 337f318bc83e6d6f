"""Shortcuts: how closely the scores of steps follow their length and position, beyond what gold explains.

A long step is wrong more often than a short one, so that a good evaluator's scores fall with length too. Beyond
gold, the correlation is therefore taken within gold's classes: the ranks of scores and of lengths, each minus its
mean in the class, are correlated over all classes together (Spearman's correlation, adjusted for gold). Every
resample has the ranks of the whole sample.
"""

import numpy as np

from stepsight.core.arrays import AnyInts, Floats64
from stepsight.core.metrics.bootstrap import Value, Weights, interval, mean, weighted_totals
from stepsight.core.metrics.table import SILENT, StepTable

_SAME = "all scores or all lengths are the same"


def rank_correlation(first: Floats64, second: Floats64, group: AnyInts, trace: AnyInts, weights: Weights) -> Value:
    """Return the rank correlation of two numbers of steps within groups, from -1 to 1.

    All arrays have the shape (n,): `group` numbers the group of each step, and `trace` its trace. With a single
    group, this is Spearman's correlation. It is undefined if one of the two does not vary within any group.
    """
    number = float(correlate_ranks(first, second, group, trace, np.ones_like(weights[:1]))[0])
    if np.isnan(number):
        return Value.none(_SAME)
    return interval(Value(number), correlate_ranks(first, second, group, trace, weights))


def correlate_ranks(
    first: Floats64, second: Floats64, group: AnyInts, trace: AnyInts, weights: Weights
) -> Floats64:
    """Return the correlation of `rank_correlation` on each resample, with shape (draws,). It is NaN where it is
    undefined."""
    x, y = (_ranks(numbers) - (len(numbers) + 1) / 2 for numbers in (first, second))
    present, place = np.unique(group, return_inverse=True)
    sums = np.zeros((weights.shape[1], len(present), 6))
    np.add.at(sums, (trace, place), np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1))
    drawn = weighted_totals(sums.reshape(len(sums), -1), weights)
    return _within_groups(drawn.reshape(-1, len(present), 6))


def _ranks(numbers: Floats64) -> Floats64:
    """Return the rank of each number, from 1; equal numbers share the mean of their ranks.

    SciPy's `rankdata` does the same, but its import takes longer than most measurements.
    """
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    means: Floats64 = counts.cumsum() - (counts - 1) / 2
    return means[place]


def _within_groups(sums: Floats64) -> Floats64:
    """Return the pooled correlation of each row, given the sums of 1, x, y, x², y² and xy in each group. The shape
    of `sums` is (rows, groups, 6)."""
    count, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares, others, products = (
            np.nansum(total - left * right / count, axis=1)
            for total, left, right in ((xx, x, x), (yy, y, y), (xy, x, y))
        )
        varies = (squares > 1e-6) & (others > 1e-6)
        return np.where(varies, products / np.sqrt(squares * others), np.nan)


def last_is_least(table: StepTable, weights: Weights) -> Value:
    """Return the share of solutions whose last step has the least validity of all. If `k` steps tie, including the
    last one, the solution counts `1 / k`. Solutions of one step, or with a step without a score, do not count."""
    traces, validity = _of_several(table)
    starts = np.searchsorted(traces, np.unique(traces))
    if not len(starts):
        return Value.none("no solution of several steps has a score on each")
    least = np.minimum.reduceat(validity, starts)
    ties = np.add.reduceat(validity == np.repeat(least, np.diff([*starts, len(traces)])), starts)
    is_last = validity[np.append(starts[1:], len(traces)) - 1] == least
    return mean(is_last / ties, traces[starts], weights)


def last_by_chance(table: StepTable, weights: Weights) -> Value:
    """Return the share that `last_is_least` would have if scores were drawn at random."""
    traces, _ = _of_several(table)
    present, counts = np.unique(traces, return_counts=True)
    if not len(present):
        return Value.none("no solution of several steps has a score on each")
    return mean(1 / counts, present, weights)


def error_is_last(table: StepTable, weights: Weights) -> Value:
    """Return the share of solutions whose first error by gold is their last step, among those with an error and
    several steps."""
    first = table.first_errors()
    last = np.bincount(table.trace, minlength=table.traces) - 1
    chosen = np.flatnonzero((first != SILENT) & (last > 0))
    if not len(chosen):
        return Value.none("gold has no error in a solution of several steps")
    return mean((first == last)[chosen].astype(np.float64), chosen, weights)


def _of_several(table: StepTable) -> tuple[AnyInts, Floats64]:
    """Return the trace and the validity of the steps of solutions that have several steps and a score on every
    step."""
    validity = table.validity.astype(np.float64)
    counts = np.bincount(table.trace, minlength=table.traces)
    silent = np.bincount(table.trace, np.isnan(validity), table.traces)
    kept = ((counts > 1) & (silent == 0))[table.trace]
    return table.trace[kept], validity[kept]
