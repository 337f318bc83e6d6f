"""Measures of a stress test: how often verdicts moved as a transform demands, which others moved, and inflation.

The measures are our own; an unjustified rise in reward is called inflation, as in EST-PRM. Intervals are bootstrap
intervals over traces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.metrics.bootstrap import Value, mean, resamples, share
from stepsight.core.scores import StepScores
from stepsight.training.stress.variant import Demand, Transform, Variant


@dataclass(frozen=True, eq=False)
class StressedTrace:
    """A variant with the scores of the original solution, `before`, and its own, `after`. `number` is the number of
    the original among the traces of the test.

    A step without scores is not called wrong: it counts as valid at any threshold, and has no validity that could
    rise or fall.
    """

    number: int
    transform: Transform
    variant: Variant
    before: StepScores
    after: StepScores

    @cached_property
    def kept(self) -> tuple[Ints, Ints]:
        """The places of the steps that are in both solutions and are not targets: those in the variant, and those
        in the original."""
        pairs = [
            (place, origin)
            for place, origin in enumerate(self.variant.origins)
            if origin is not None and place not in self.variant.targets
        ]
        both = np.array(pairs, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    @property
    def rise(self) -> float:
        """The mean rise in validity of the steps that are in both solutions and are not targets, or NaN if there
        are none."""
        return _mean_rise(self.before, self.after, *self.kept)

    def moved(self, threshold: float) -> list[int]:
        """Return the places in the variant whose verdict differs from the original's, without the targets."""
        now, was = self.kept
        changed: Bools = wrong_steps(self.after, threshold)[now] != wrong_steps(self.before, threshold)[was]
        return [int(place) for place in now[changed]]

    def turned(self, threshold: float) -> list[tuple[int, bool]]:
        """Return the targets that were valid or absent before the change, each with True if it is not valid now."""
        was, now = wrong_steps(self.before, threshold), wrong_steps(self.after, threshold)
        origins = [(place, self.variant.origins[place]) for place in self.variant.targets]
        return [(place, bool(now[place])) for place, origin in origins if origin is None or not was[origin]]

    @property
    def fall(self) -> float:
        """The mean fall in validity of the targets that are in the original, or NaN if there are none."""
        pairs = [(place, self.variant.origins[place]) for place in self.variant.targets]
        both = np.array([pair for pair in pairs if pair[1] is not None], np.int64).reshape(-1, 2)
        return -_mean_rise(self.before, self.after, both[:, 0], both[:, 1])


def stress_record(one: StressedTrace, evaluator: str) -> dict[str, Any]:
    """Return a variant with its scores as an object for JSON."""
    return {
        "id": one.variant.trace.id,
        "transform": one.transform.name,
        "demand": one.transform.demand.value,
        "said": one.variant.said,
        "problem": one.variant.trace.problem,
        "steps": list(one.variant.trace.substeps),
        "origins": list(one.variant.origins),
        "targets": list(one.variant.targets),
        "evaluator": evaluator,
        "before": [round(float(value), 6) for value in one.before.validity],
        "after": [round(float(value), 6) for value in one.after.validity],
    }


def wrong_steps(scores: StepScores, threshold: float) -> Bools:
    """Return True for each step that is judged and not valid, with shape (n,)."""
    wrong: Bools = judged_steps(scores) & (scores.validity < np.float32(threshold))
    return wrong


def judged_steps(scores: StepScores) -> Bools:
    """Return True for each step that has scores, with shape (n,)."""
    judged: Bools = scores.probs.max(axis=1) > 0
    return judged


def _mean_rise(before: StepScores, after: StepScores, now: Ints, was: Ints) -> float:
    """Return the mean rise in validity over pairs of places that are judged in both, or NaN if there are none."""
    both = judged_steps(after)[now] & judged_steps(before)[was]
    if not both.any():
        return float("nan")
    return float(np.mean((after.validity[now] - before.validity[was])[both], dtype=np.float64))


@dataclass(frozen=True)
class StressFigures:
    """The measures of one transform on one evaluator.

    `as_demanded` is the share of steps that moved as they must. If a verdict must change, these are the targets
    that were valid or absent before and are not valid now; otherwise, the steps whose verdict stayed. `fall` is the
    mean fall in validity of the targets that are in the original. `elsewhere` is the share of variants in which the
    verdict on another step moved, and `inflation` the mean rise in validity of the other steps. `variants` counts
    the variants, `steps` the steps of `as_demanded`, and `unchanged` the traces in which the transform found
    nothing to change.
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
    transform: Transform, stressed: Sequence[StressedTrace], unchanged: int, threshold: float
) -> StressFigures:
    """Measure one transform. `stressed` holds its variants, and `unchanged` is the number of traces in which it
    found nothing to change. A step is valid if its validity reaches `threshold`."""
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
        unchanged,
    )


def _mean(values: Floats64, weights: Any) -> Value:
    """Return the mean of the values that are not NaN, with its interval. There is one value per trace."""
    known = ~np.isnan(values)
    if not known.any():
        return Value.none("No step to compare.")
    return mean(values[known], np.flatnonzero(known), weights)
