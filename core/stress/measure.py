"""Measures of a stress test: how often verdicts moved as a transform demands, what moved instead, and inflation.

The measures are our own; that a reward rises without a reason is called inflation after EST-PRM. Intervals are
bootstrap intervals over traces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.metrics.bootstrap import Value, interval, resamples, share, weighted_totals
from stepsight.core.scores import StepScores
from stepsight.core.stress.variant import Demand, Transform, Variant


@dataclass(frozen=True, eq=False)
class StressedTrace:
    """A variant with the scores of the original solution, `before`, and its own, `after`. `number` is the number of
    the original among the traces of the test."""

    number: int
    transform: Transform
    variant: Variant
    before: StepScores
    after: StepScores

    @cached_property
    def kept(self) -> tuple[Ints, Ints]:
        """The places of the steps that are no targets and stand in both: those in the variant, and those in the
        original."""
        pairs = [
            (place, origin)
            for place, origin in enumerate(self.variant.origins)
            if origin is not None and place not in self.variant.targets
        ]
        both = np.array(pairs, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    @property
    def rise(self) -> float:
        """The mean rise in validity of the steps that are no targets and stand in both, or NaN without any."""
        now, was = self.kept
        if not len(now):
            return float("nan")
        return float(np.mean(self.after.validity[now] - self.before.validity[was], dtype=np.float64))

    def moved(self, threshold: float) -> list[int]:
        """Return the places in the variant whose verdict differs from the original's, without the targets."""
        now, was = self.kept
        limit = np.float32(threshold)
        changed: Bools = (self.after.validity[now] >= limit) != (self.before.validity[was] >= limit)
        return [int(place) for place in now[changed]]

    def turned(self, threshold: float) -> list[tuple[int, bool]]:
        """Return the targets that were valid before, or were not there, each with True if it is not valid now."""
        limit = np.float32(threshold)
        origins = [(place, self.variant.origins[place]) for place in self.variant.targets]
        return [
            (place, bool(self.after.validity[place] < limit))
            for place, origin in origins
            if origin is None or self.before.validity[origin] >= limit
        ]

    @property
    def fall(self) -> float:
        """The mean fall in validity of the targets that stood in the original, or NaN without any."""
        falls = [
            float(self.before.validity[origin]) - float(self.after.validity[place])
            for place in self.variant.targets
            if (origin := self.variant.origins[place]) is not None
        ]
        return float(np.mean(falls)) if falls else float("nan")


@dataclass(frozen=True)
class StressFigures:
    """The measures of one transform on one evaluator.

    `as_demanded` is the share of steps that moved as they must. If a verdict must change, these are the targets
    that were valid before, or were not there, and are not valid now; otherwise all steps whose verdict stayed.
    `fall` is the mean fall in validity of the targets that stood in the original. `elsewhere` is the share of
    variants in which the verdict on another step moved, and `inflation` the mean rise in validity of the other
    steps. `variants` counts the variants, `steps` the steps of `as_demanded`, and `unchanged` the traces in which
    the transform found nothing to change.
    """

    transform: Transform
    as_demanded: Value
    fall: Value
    elsewhere: Value
    inflation: Value
    variants: int
    steps: int
    unchanged: int


def measure(
    transform: Transform, stressed: Sequence[StressedTrace], traces: int, threshold: float
) -> StressFigures:
    """Measure one transform. `stressed` holds its variants, and `traces` is the number of traces it was tried on. A
    step is valid if its validity reaches `threshold`."""
    numbers = np.array([one.number for one in stressed], np.int64)
    place = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    weights = resamples(len(set(numbers.tolist())))
    hits: list[bool] = []
    owners: list[int] = []
    moved: list[bool] = []
    for owner, one in zip(place.tolist(), stressed, strict=True):
        elsewhere = set(one.moved(threshold))
        found = (
            [hit for _, hit in one.turned(threshold)]
            if transform.demand == Demand.CHANGE
            else [spot not in elsewhere for spot in one.kept[0].tolist()]
        )
        hits += found
        owners += [owner] * len(found)
        moved.append(bool(elsewhere))
    lacking = "No target was valid before." if transform.demand == Demand.CHANGE else "There is nothing to compare."
    return StressFigures(
        transform,
        share(np.array(hits, np.bool_), np.array(owners, np.int64), weights, lacking),
        _mean(np.array([one.fall for one in stressed], np.float64), weights),
        share(np.array(moved, np.bool_), place, weights, "There is no variant."),
        _mean(np.array([one.rise for one in stressed], np.float64), weights),
        len(stressed),
        len(hits),
        traces - len(stressed),
    )


def _mean(values: Floats64, weights: Any) -> Value:
    """Return the mean over the variants of a transform, one a trace, that is not NaN, with its interval."""
    known = ~np.isnan(values)
    if not known.any():
        return Value.none("No step to compare.")
    value = Value(float(values[known].mean()))
    if len(values) < 2:
        return value
    columns = np.stack([np.where(known, values, 0.0), known.astype(np.float64)], axis=1)
    totals = weighted_totals(columns, weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        return interval(value, totals[:, 0] / totals[:, 1])
