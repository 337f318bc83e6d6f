"""Running a stress test: draw traces, make the variants, and judge them with evaluators and baselines."""

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.metrics.baselines import BASELINES
from stepsight.core.models.placement import Placement
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.stress.measure import StressedTrace, StressFigures
from stepsight.core.stress.stress import StressTest, scored_by, scored_by_rule
from stepsight.core.stress.variant import Transform
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.importers.plain import read_plain
from stepsight.storage.traces.queries import find_dataset, iterate_named, list_ids

Progress = Callable[[Iterable[Any], int, str], Iterator[Any]]
"""Iterates over items and shows how many of how many are done, in a unit."""

# They do not read the steps, so that their figures are known beforehand.
_RULES = ("baseline:constant", "baseline:length")
_THRESHOLD = 0.5


def draw_from_dataset(store: Store, name: str, most: int, seed: int) -> list[Trace]:
    """Return at most `most` traces of a dataset, drawn at random, in file order."""
    dataset = find_dataset(store, name)
    ids = list_ids(store, dataset.id)
    drawn = random.Random(seed).sample(ids, min(most, len(ids)))
    return list(iterate_named(store, dataset.id, set(drawn)))


def draw_from_file(path: str, most: int, seed: int) -> list[Trace]:
    """Return at most `most` traces of a file, drawn with equal chances while it is read, in file order. `-` is
    standard input."""
    rng = random.Random(seed)
    rest = iter(read_plain(sys.stdin.buffer if path == "-" else path, "standard input" if path == "-" else path))
    kept = dict(enumerate(islice(rest, most)))
    places = list(kept)
    for number, trace in enumerate(rest, start=most):
        slot = rng.randrange(number + 1)
        if slot < most:
            del kept[places[slot]]
            kept[number], places[slot] = trace, number
    return [kept[place] for place in sorted(kept)]


@dataclass
class StressRun:
    """A stress test of several evaluators on the same variants.

    `figures` holds the measures of all transforms by evaluator, and `lines` a row for each variant and evaluator.
    `notes` are sentences on the evaluators.
    """

    test: StressTest
    progress: Progress
    figures: dict[str, list[StressFigures]] = field(default_factory=dict)
    lines: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, transforms: Sequence[Transform], traces: Sequence[Trace], seed: int, progress: Progress
    ) -> "StressRun":
        """Make the variants. Raises `UserError` if there are none."""
        shown = progress(traces, len(traces), "traces changed")
        return cls(StressTest.of(transforms, list(shown), seed), progress)

    def judge(self, spec: str, place: Placement, threshold: float | None = None) -> None:
        """Judge the variants with an evaluator. A step is valid if its validity reaches `threshold`, by default the
        evaluator's own. Raises the same errors as `load_evaluator`."""
        evaluator = load_evaluator(spec, place.device, place.dtype, place.device_map)
        judged = self.test.judge(scored_by(Scorer(evaluator)))
        stressed = list(self.progress(judged, len(self.test), "variants"))
        if evaluator.reading_note:
            self.notes.append(evaluator.reading_note)
        if len(stressed) < len(self.test):
            self.notes.append(f"{len(self.test) - len(stressed):,} variants were too long for {evaluator.name}.")
        self._add(evaluator.name, stressed, evaluator.thresholds.validity if threshold is None else threshold)
        self.lines += [_line(one, evaluator.name) for one in stressed]

    def judge_baselines(self, threshold: float | None = None) -> None:
        """Judge the variants with baselines that do not read the steps."""
        for name in _RULES:
            stressed = list(self.test.judge(scored_by_rule(BASELINES[name])))
            self._add(name, stressed, _THRESHOLD if threshold is None else threshold)

    def _add(self, name: str, stressed: Sequence[StressedTrace], threshold: float) -> None:
        self.figures[name] = self.test.figures(stressed, threshold)


def _line(one: StressedTrace, evaluator: str) -> dict[str, Any]:
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
