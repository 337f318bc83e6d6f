"""Figures of an evaluator against soft labels: the shares of a benchmark, compared with the validity of its steps.

A step counts if it has a share. If it has several sub-steps, their least validity counts. The Brier score measures
how far validity is from the share, and Spearman's correlation whether validity orders the steps of all traces as
their shares do. The order within traces measures the same for each trace separately, so that the difficulty of
problems does not matter.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import AnyInts, Floats64
from stepsight.core.metrics.bootstrap import Value, Weights, interval, weighted_totals
from stepsight.core.metrics.measurement import Measurement, Subject, without_interval
from stepsight.core.metrics.shortcuts import correlate_ranks
from stepsight.core.metrics.table import NO_ITEMS, NO_SCORES

_SAME = "all scores or all shares are the same"


@dataclass(frozen=True, eq=False)
class ShareItems:
    """The `n` steps that have a share. Each array has the shape (n,): `validity`, or NaN if the evaluator gives no
    score; `share`, from 0 to 1; and `trace`, the index of the trace."""

    validity: Floats64
    share: Floats64
    trace: AnyInts

    def __len__(self) -> int:
        return len(self.share)

    @property
    def problem(self) -> str:
        """The reason why figures are undefined, or "" if they are defined."""
        if not len(self):
            return NO_ITEMS
        return NO_SCORES if np.isnan(self.validity).any() else ""


def share_items(subject: Subject) -> ShareItems:
    """Return the steps with a share. An evaluator of verdicts has no scores, and its validities are NaN."""
    table = subject.table
    if table.share is None:
        return ShareItems(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
    kept = ~np.isnan(table.share)
    # Rounding can lift the sum of two probabilities above 1.
    validity = np.clip(table.validity[kept].astype(np.float64), 0.0, 1.0)
    if not subject.outputs.has_scores:
        validity[:] = np.nan
    return ShareItems(validity, table.share[kept], table.trace[kept])


def brier_of_shares(subject: Subject, weights: Weights) -> Measurement:
    """Measure the mean squared difference between validity and share, from 0 to 1; lower is better."""
    items = share_items(subject)
    if items.problem:
        return without_interval(Value.none(items.problem), weights)
    errors = np.bincount(items.trace, (items.validity - items.share) ** 2, weights.shape[1])
    return _ratio(errors, np.bincount(items.trace, minlength=weights.shape[1]), weights)


def spearman_of_shares(subject: Subject, weights: Weights) -> Measurement:
    """Measure Spearman's rank correlation of validity and share over all steps, from -1 to 1.

    It is undefined if either does not vary. Every resample has the ranks of the whole sample.
    """
    items = share_items(subject)
    if items.problem:
        return without_interval(Value.none(items.problem), weights)
    one_group = np.zeros(len(items), np.int64)
    number, draws = correlate_ranks(items.validity, items.share, one_group, items.trace, weights)
    if np.isnan(number):
        return without_interval(Value.none(_SAME), weights)
    return Measurement(interval(Value(number), draws), draws)


def order_within_traces(subject: Subject, weights: Weights) -> Measurement:
    """Measure in how many pairs of steps of one trace the step with the larger share has the larger validity.

    Pairs with equal shares do not count. Equal validities count one half, so that a constant has 0.5.
    """
    items = share_items(subject)
    if items.problem:
        return without_interval(Value.none(items.problem), weights)
    won, pairs = np.zeros((2, weights.shape[1]))
    order = np.argsort(items.trace, kind="stable")
    traces, starts = np.unique(items.trace[order], return_index=True)
    for trace, own in zip(traces, np.split(order, starts[1:]), strict=True):
        share, validity = items.share[own], items.validity[own]
        larger = share[:, None] > share
        above = (validity[:, None] - validity)[larger]
        won[trace], pairs[trace] = (above > 0).sum() + (above == 0).sum() / 2, len(above)
    if not pairs.any():
        return without_interval(Value.none("no trace has steps with different shares"), weights)
    return _ratio(won, pairs, weights)


def _ratio(parts: NDArray[Any], wholes: NDArray[Any], weights: Weights) -> Measurement:
    """Return the measurement of a ratio of sums, given the terms of both for each trace."""
    sums = weighted_totals(np.stack([parts, wholes], axis=1), weights).T
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = sums[0] / sums[1]
    return Measurement(interval(Value(float(parts.sum() / wholes.sum())), draws), draws)
