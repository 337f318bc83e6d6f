"""The labels that several people gave to the steps of many traces, stored as codes, and their agreement:
Krippendorff's alpha for several people, Cohen's kappa for two.

Alpha is one minus the ratio of the disagreement within units to the disagreement expected by chance. It is 1 for
perfect agreement, 0 at chance level, and negative for worse than chance. The formulas are those of "Computing
Krippendorff's Alpha-Reliability" (Krippendorff, 2011); on all resamples together they are a single matrix product.
The values equal those of the `krippendorff` library.

Kappa (Cohen, "A Coefficient of Agreement for Nominal Scales", 1960) is the agreement above chance as a share of the
greatest possible agreement above chance. The gold labels can take the place of one of the two raters; the share of
agreement is then an accuracy. Kappa and its values on the resamples equal scikit-learn's results on the same units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.metrics.bootstrap import Value, Weights, mean, statistic, weighted_sums
from stepsight.core.trace import LABEL_NAMES, Label

UNSURE, UNLABELLED = 3, -1
RATING_NAMES = (*LABEL_NAMES, "unsure")
"""The ratings that a person can give a step; the index is the code."""

NO_ERROR = -1
"""Stands for a first error if every step is valid."""


@dataclass(frozen=True, eq=False)
class Ratings:
    """The labels that several people gave to the steps of many traces.

    `codes` has the shape (people, steps) and holds indices into `RATING_NAMES`, or `UNLABELLED`. `trace` and
    `position` have the shape (steps,) and give the trace of each step and the step's 0-based position in it. The
    steps of a trace are adjacent and in order, and each of the `traces` traces has at least one step.
    """

    people: tuple[str, ...]
    codes: NDArray[np.int8]
    trace: Ints
    position: Ints
    traces: int

    @cached_property
    def labels(self) -> Floats64:
        """The labels neg, neu and pos as 0, 1 and 2, or NaN if a person was unsure or gave no label."""
        labelled = (self.codes != UNSURE) & (self.codes != UNLABELLED)
        return np.where(labelled, self.codes, np.nan).astype(np.float64)

    @cached_property
    def validity(self) -> Floats64:
        """The validity of each label: 0 for neg, 1 for neu and pos, and NaN where `labels` is NaN."""
        return valid_of(self.labels)

    @cached_property
    def first_errors(self) -> Floats64:
        """The first step that each person calls neg in each trace, 0-based, or `NO_ERROR`. The shape is (people,
        traces).

        It is NaN if it cannot be determined: a step before the first neg is unsure or unlabelled, or no step is neg
        and at least one is unsure or unlabelled.
        """
        if not self.traces:
            return np.empty((len(self.people), 0))
        starts = np.searchsorted(self.trace, np.arange(self.traces))
        wrong = np.minimum.reduceat(np.where(self.labels == Label.NEG, self.position, np.inf), starts, axis=1)
        silent = np.minimum.reduceat(np.where(np.isnan(self.labels), self.position, np.inf), starts, axis=1)
        return np.where(wrong < silent, wrong, np.where(np.isinf(silent), NO_ERROR, np.nan))

    @cached_property
    def counts(self) -> Ints:
        """The number of people who gave each step each rating in `RATING_NAMES`, with shape (steps, 4)."""
        return np.stack([(self.codes == code).sum(axis=0) for code in range(len(RATING_NAMES))], axis=1)

    @cached_property
    def answers(self) -> Bools:
        """An array of shape (people, traces) that is True where a person rated at least one step of a trace."""
        answers = np.zeros((len(self.people), self.traces), np.bool_)
        for person, codes in enumerate(self.codes):
            answers[person, self.trace[codes != UNLABELLED]] = True
        return answers

    @cached_property
    def majority(self) -> Floats64:
        """The most frequent label of each step, with shape (steps,). It is NaN in a tie or without labels."""
        votes = self.counts[:, : len(LABEL_NAMES)]
        if not len(votes):
            return np.empty(0)
        is_unique = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
        return np.where(is_unique, votes.argmax(axis=1), np.nan).astype(np.float64)

    def of_traces(self, chosen: Sequence[int]) -> "Ratings":
        """Return the ratings of the chosen traces, in the order given."""
        starts = np.searchsorted(self.trace, np.arange(self.traces + 1))
        parts = [np.arange(starts[trace], starts[trace + 1]) for trace in chosen]
        steps = np.concatenate([np.empty(0, np.int64), *parts])
        place = np.repeat(np.arange(len(parts)), [len(part) for part in parts]).astype(np.int64)
        return Ratings(self.people, self.codes[:, steps], place, self.position[steps], len(parts))


def valid_of(labels: Floats64) -> Floats64:
    """Return the validity of labels: 0 for neg, 1 for neu and pos, and NaN where there is no label."""
    return np.where(np.isnan(labels), np.nan, labels != Label.NEG).astype(np.float64)


NO_LABEL = "nobody has labelled anything"
ONE_ANNOTATOR = "only one person has labelled"
NO_OVERLAP = "nothing was labelled by two people"
NOTHING_SHARED = "there is nothing that both labelled"
ONE_LABEL = "both give one and the same label only, so chance would agree as well"
ALL_SAME = "all labels are the same, so chance would agree as well"


class Scale(StrEnum):
    """The scale of ratings, which determines the distance between two ratings.

    On a nominal scale all unequal ratings are equally far apart. On an ordinal scale the distance depends on how
    many ratings lie between them.
    """

    NOMINAL = "nominal"
    ORDINAL = "ordinal"


@dataclass(frozen=True)
class Agreement:
    """The agreement among several people.

    `alpha` is Krippendorff's alpha. `agreeing` is the share of equal pairs among all pairs of ratings of the same
    unit. `n_units` counts the units with at least two ratings, and `n_pairs` the pairs within them.
    """

    alpha: Value
    agreeing: Value
    n_units: int
    n_pairs: int


def alpha(
    ratings: Floats64, scale: Scale = Scale.NOMINAL, trace: Ints | None = None, weights: Weights | None = None
) -> Agreement:
    """Measure the agreement among several people.

    `ratings` has the shape (annotators, units), with NaN for missing ratings. Only the order of the numbers
    matters.

    `trace` has the shape (units,) and gives the index of each unit's trace, and `weights` are the resamples of
    traces. If both are given, both values get 95 % intervals, unless all units belong to one trace. Alpha is
    undefined, and states the reason, if fewer than two people rated, no unit has two ratings, or all ratings of
    such units are equal.
    """
    rated = ~np.isnan(ratings)
    people = rated.any(axis=1).sum()
    trace = np.zeros(ratings.shape[1], np.int64) if trace is None else trace
    counts = _value_counts(ratings)
    total = counts.sum(axis=1)
    paired = total > 1
    problem = ""
    if people < 2:
        problem = ONE_ANNOTATOR if people else NO_LABEL
    elif not paired.any():
        problem = NO_OVERLAP
    elif (counts[paired].sum(axis=0) > 0).sum() == 1:
        problem = ALL_SAME
    units = _RatedUnits(counts[paired], trace[paired], problem)
    value = (_nominal_alpha if scale is Scale.NOMINAL else _ordinal_alpha)(units, weights)
    hits, pairs = (counts * (counts - 1)).sum(axis=1) / 2, total * (total - 1) / 2
    agreeing = mean(hits, trace, weights, problem, counts=pairs)
    return Agreement(value, agreeing, len(units.trace), int(pairs.sum()))


def agreeing_with_others(ratings: Floats64, person: int, trace: Ints, weights: Weights | None = None) -> Value:
    """Return how often one person agrees with the others.

    This is the share of equal pairs among all pairs of this person's rating and another person's rating of the same
    unit.
    """
    own, others = ratings[person], np.delete(ratings, person, axis=0)
    is_shared = ~(np.isnan(own) | np.isnan(others))
    return mean(((others == own) & is_shared).sum(axis=0), trace, weights, NO_OVERLAP, counts=is_shared.sum(axis=0))


@dataclass(frozen=True, eq=False)
class RaterPair:
    """Two people's ratings of the units that both of them rated.

    All three arrays have the shape (n,). Ratings are integers, and `trace` holds the index of each unit's trace.
    """

    first: Ints
    second: Ints
    trace: Ints

    @classmethod
    def of(cls, first: Floats64, second: Floats64, trace: Ints) -> "RaterPair":
        """Build a pair from two people's ratings of all units, arrays of shape (units,) with NaN for missing
        ratings."""
        is_shared = ~(np.isnan(first) | np.isnan(second))
        return cls(first[is_shared].astype(np.int64), second[is_shared].astype(np.int64), trace[is_shared])

    def __len__(self) -> int:
        return len(self.first)

    @property
    def hit(self) -> Bools:
        return np.equal(self.first, self.second)

    @property
    def traces(self) -> int:
        return len(np.unique(self.trace))

    @property
    def values(self) -> Ints:
        return np.unique(np.concatenate([self.first, self.second]))


def _kappa_problem(pair: RaterPair) -> str:
    if not len(pair):
        return NOTHING_SHARED
    return ONE_LABEL if len(pair.values) == 1 else ""


@statistic(_kappa_problem)
def kappa(pair: RaterPair, weights: Weights) -> Floats64:
    """Cohen's unweighted kappa, from -1 to 1.

    It is undefined if the two people share no unit, or if both give one and the same label to every unit, in the
    sample or in a resample.
    """
    traces, place = np.unique(pair.trace, return_inverse=True)
    sides = [side == value for side in (pair.first, pair.second) for value in pair.values]
    hits, *marginals = weighted_sums([pair.hit, *sides], place, weights[:, traces])
    firsts, seconds = np.split(np.array(marginals), 2)
    total = firsts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed, expected = hits / total, (firsts * seconds).sum(axis=0) / total**2
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)


def agreeing(pair: RaterPair, weights: Weights | None = None) -> Value:
    """Return the share of units that both people rate the same."""
    return mean(pair.hit, pair.trace, weights, NOTHING_SHARED)


def _value_counts(ratings: Floats64) -> Floats64:
    """Count how often each unit got each rating. The result has the shape (units, ratings), with ratings in
    ascending order."""
    rated = ~np.isnan(ratings)
    values, codes = np.unique(ratings[rated], return_inverse=True)
    cells = np.nonzero(rated)[1] * len(values) + codes
    counted = np.bincount(cells, minlength=ratings.shape[1] * len(values))
    return counted.reshape(ratings.shape[1], len(values)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _RatedUnits:
    """The `n` units with several ratings: how often each got each rating, with shape (n, ratings), and its trace.
    `problem` says why alpha is undefined, or is ""."""

    counts: Floats64
    trace: Ints
    problem: str


@statistic(attrgetter("problem"))
def _nominal_alpha(units: _RatedUnits, weights: Weights) -> Floats64:
    """Nominal alpha. Counting the equal pairs is enough, since all unequal pairs are equally far apart."""
    counts = units.counts
    equal = (counts * (counts - 1)).sum(axis=1) / (counts.sum(axis=1) - 1)
    same, *ratings = weighted_sums([equal, *counts.T], units.trace, weights)
    marginals = np.array(ratings)
    total = marginals.sum(axis=0)
    expected = total**2 - (marginals**2).sum(axis=0)
    return 1 - (total - 1) * (total - same) / np.where(expected > 0, expected, np.nan)


@statistic(attrgetter("problem"))
def _ordinal_alpha(units: _RatedUnits, weights: Weights) -> Floats64:
    """Ordinal alpha. It needs a count for every pair of unequal ratings, because the distance between two ratings
    depends on the resample."""
    counts = units.counts
    couples = list(combinations(range(counts.shape[1]), 2))
    others = counts.sum(axis=1) - 1
    pairs = [counts[:, low] * counts[:, high] / others for low, high in couples]
    sums = weighted_sums([*pairs, *counts.T], units.trace, weights)
    marginals = sums[len(couples) :]
    below = np.cumsum(marginals, axis=0)
    observed, expected = np.zeros((2, len(weights)))
    for place, (low, high) in enumerate(couples):
        between = below[high] - below[low] + (marginals[low] - marginals[high]) / 2
        observed += sums[place] * between**2
        expected += marginals[low] * marginals[high] * between**2
    return 1 - (marginals.sum(axis=0) - 1) * observed / np.where(expected > 0, expected, np.nan)
