"""Figures of an evaluator against soft labels: the shares of a benchmark, compared with the validity of its steps.

A step counts if it has a share. If it has several sub-steps, their least validity counts. The Brier score measures
how far validity is from the share, and Spearman's correlation whether validity orders the steps of all traces as
their shares do. The order within traces measures the same for each trace separately, so that the difficulty of
problems does not matter.
"""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from stepsight.core.arrays import AnyInts, Floats64
from stepsight.core.metrics.bootstrap import Weights, ratio, statistic
from stepsight.core.metrics.measurement import Subject
from stepsight.core.metrics.shortcuts import correlate_ranks
from stepsight.core.metrics.table import NO_ITEMS, NO_SCORES


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

    @classmethod
    def of(cls, subject: Subject) -> "ShareItems":
        """Return the steps with a share. An evaluator of verdicts has no scores, and its validities are NaN."""
        table = subject.table
        if table.share is None:
            return cls(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
        kept = ~np.isnan(table.share)
        # Rounding can lift the sum of two probabilities above 1.
        validity = np.clip(table.validity[kept].astype(np.float64), 0.0, 1.0)
        if not subject.outputs.has_scores:
            validity[:] = np.nan
        return cls(validity, table.share[kept], table.trace[kept])


@statistic(attrgetter("problem"))
def brier(items: ShareItems, weights: Weights) -> Floats64:
    """The mean squared difference between validity and share, from 0 to 1; lower is better."""
    errors = np.bincount(items.trace, (items.validity - items.share) ** 2, weights.shape[1])
    return ratio(errors, np.bincount(items.trace, minlength=weights.shape[1]), weights)


def _spearman_problem(items: ShareItems) -> str:
    is_constant = items.problem or np.ptp(items.validity) == 0 or np.ptp(items.share) == 0
    return items.problem or ("all scores or all shares are the same" if is_constant else "")


@statistic(_spearman_problem)
def spearman(items: ShareItems, weights: Weights) -> Floats64:
    """Spearman's rank correlation of validity and share over all steps, from -1 to 1.

    It is undefined if either does not vary. Every resample has the ranks of the whole sample.
    """
    one_group = np.zeros(len(items), np.int64)
    return correlate_ranks(items.validity, items.share, one_group, items.trace, weights)


def _order_problem(items: ShareItems) -> str:
    several = np.unique(np.stack([items.trace, items.share]), axis=1).shape[1] > len(np.unique(items.trace))
    return items.problem or ("" if several else "no trace has steps with different shares")


@statistic(_order_problem)
def order_within_traces(items: ShareItems, weights: Weights) -> Floats64:
    """In how many pairs of steps of one trace the step with the larger share has the larger validity.

    Pairs with equal shares do not count. Equal validities count one half, so that a constant has 0.5.
    """
    won, pairs = np.zeros((2, weights.shape[1]))
    for trace in np.unique(items.trace):
        own = items.trace == trace
        share, validity = items.share[own], items.validity[own]
        above = (validity[:, None] - validity)[share[:, None] > share]
        won[trace], pairs[trace] = (above > 0).sum() + (above == 0).sum() / 2, len(above)
    return ratio(won, pairs, weights)
