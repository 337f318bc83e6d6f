"""The stress test: apply transforms to solutions, judge the variants, and measure each evaluator.

It measures how often verdicts moved as a transform demands, which others moved, and inflation. The figures are
our own; an unjustified rise in reward is called inflation, as in EST-PRM. Intervals are bootstrap intervals over
traces.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from sqlalchemy import select

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import open_input
from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import Value, Weights, mean, resamples
from stepsight.core.metrics.shortcuts import BASELINES
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import StoredTrace, find_dataset, trace_batches
from stepsight.training.report.html import Part, Section
from stepsight.training.report.tables import CellKind, Column, Table, slug, table_of
from stepsight.training.stress.variant import Demand, Transform, Variant, by_substep


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


def stress_record(stressed: StressedTrace, evaluator: str) -> dict[str, Any]:
    """Return a variant with its scores as an object for JSON."""
    return {
        "id": stressed.variant.trace.id,
        "transform": stressed.transform.name,
        "demand": stressed.transform.demand.value,
        "said": stressed.variant.said,
        "problem": stressed.variant.trace.problem,
        "steps": list(stressed.variant.trace.substeps),
        "origins": list(stressed.variant.origins),
        "targets": list(stressed.variant.targets),
        "evaluator": evaluator,
        "before": [round(float(value), 6) for value in stressed.before.validity],
        "after": [round(float(value), 6) for value in stressed.after.validity],
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
    """The figures of one transform on one evaluator.

    `as_demanded` is the share of steps that moved as they must. If a verdict must change, these are the targets
    that were valid or absent before and are not valid now; otherwise, the steps whose verdict stayed. `fall` is the
    mean fall in validity of the targets that are in the original. `elsewhere` is the share of variants in which the
    verdict on another step moved, and `inflation` the mean rise in validity of the other steps. `variants` counts
    the variants, and `steps` the steps of `as_demanded`.
    """

    transform: str
    demand: Demand
    evaluator: str
    as_demanded: Value
    fall: Value
    elsewhere: Value
    inflation: Value
    steps: int
    variants: int

    def as_json(self) -> dict[str, Any]:
        return {
            name: figure.as_json() if isinstance(figure, Value) else figure for name, figure in vars(self).items()
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "StressFigures":
        """Return the figures that `as_json` wrote. Raises `KeyError`, `TypeError` or `ValueError` for anything
        else."""

        def read(item: Any) -> Any:
            if not isinstance(item, Mapping):
                return item
            ends = (math.nan if item[key] is None else float(item[key]) for key in ("value", "low", "high"))
            number, low, high = ends
            return Value(number, item.get("reason", ""), low, high)

        return cls(**{name: read(item) for name, item in row.items()} | {"demand": Demand(row["demand"])})


def measure(
    transform: Transform, evaluator: str, stressed: Sequence[StressedTrace], threshold: float
) -> StressFigures:
    """Measure an evaluator on the variants of one transform. A step is valid if its validity reaches
    `threshold`."""
    place = np.unique([variant.number for variant in stressed], return_inverse=True)[1].astype(np.int64)
    weights = resamples(len(np.unique(place)))
    hits: list[bool] = []
    owners: list[int] = []
    moved: list[bool] = []
    for owner, variant in zip(place.tolist(), stressed, strict=True):
        elsewhere = set(variant.moved(threshold))
        as_demanded = (
            [turned for _, turned in variant.turned(threshold)]
            if transform.demand == Demand.CHANGE
            else [spot not in elsewhere for spot in variant.kept[0].tolist()]
        )
        hits += as_demanded
        owners += [owner] * len(as_demanded)
        moved.append(bool(elsewhere))
    lacking = "No target was valid before." if transform.demand == Demand.CHANGE else "There is nothing to compare."
    return StressFigures(
        transform.name,
        transform.demand,
        evaluator,
        mean(np.array(hits, np.bool_), np.array(owners, np.int64), weights, lacking),
        _mean(np.array([variant.fall for variant in stressed], np.float64), place, weights),
        mean(np.array(moved, np.bool_), place, weights, "There is no variant."),
        _mean(np.array([variant.rise for variant in stressed], np.float64), place, weights),
        len(hits),
        len(stressed),
    )


def _mean(values: Floats64, place: Ints, weights: Weights) -> Value:
    defined = ~np.isnan(values)
    return mean(values[defined], place[defined], weights, "No step to compare.")


_CAPTIONS = {
    Demand.CHANGE: ("turned", "a step was made wrong: the share whose verdict turned"),
    Demand.STAY: ("stayed", "nothing was made wrong: the share of steps whose verdict stayed"),
}


def stress_tables(figures: Sequence[StressFigures], traces: int) -> list[Table]:
    """Return a table for each demand, with a row for each transform and evaluator. All figures are of the same
    `traces`. A transform that changed nothing is left out."""
    tables = []
    for demand, (title, caption) in _CAPTIONS.items():
        columns = [
            Column("transform", "transform", CellKind.TEXT),
            Column("evaluator", "evaluator", CellKind.TEXT),
            Column("as_demanded", title),
            *([Column("fall", "fall", CellKind.POINTS)] if demand == Demand.CHANGE else []),
            Column("elsewhere", "moved elsewhere"),
            Column("inflation", "inflation", CellKind.POINTS),
            Column("steps", "steps", CellKind.COUNT),
            Column("variants", "variants", CellKind.COUNT),
        ]
        names = list(dict.fromkeys(row.transform for row in figures if row.demand == demand))
        of = {name: [row for row in figures if row.transform == name and row.variants] for name in names}
        shown = [row for name in names for row in of[name]]
        notes = [f"Of {traces:,} traces. Intervals are 95 % bootstrap intervals over traces."]
        if empty := [name for name in names if not of[name]]:
            notes.append(f"Nothing to change for {', '.join(empty)}.")
        starts = [place for place, row in enumerate(shown) if place and row.transform != shown[place - 1].transform]
        rows = [{column: getattr(row, column.key) for column in columns} for row in shown]
        name = f"stress-{demand.name.lower()}"
        tables += [table_of(name, caption, rows, notes, starts)] if rows else []
    return tables


def result_lines(source: str, traces: int, figures: Sequence[StressFigures], variants: Iterable[Any]) -> list[str]:
    """Return the lines of a result file: an object with the figures, then one for each variant (`stress_record`).
    `source` names the dataset or file of the traces."""
    head = {"source": source, "traces": traces, "figures": [of_transform.as_json() for of_transform in figures]}
    return [json.dumps(row, ensure_ascii=False) + "\n" for row in (head, *variants)]


def read_result(path: str) -> Part:
    """Return the figures of a result file as a part of a report. Raises `UserError` if it is none."""
    with open_input(path) as file:
        line = file.readline()
    try:
        head = json.loads(line)
        source, traces = str(head["source"]), int(head["traces"])
        tables = stress_tables([StressFigures.from_json(row) for row in head["figures"]], traces)
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{path}: is no result of a stress test.", "Write one: stepsight stress --dataset NAME --output FILE."
        ) from None
    named = [
        replace(table, name=f"{slug(source)}-{table.name}", caption=f"{source}: {table.caption}")
        for table in tables
    ]
    lead = "Solutions changed by rule: how often verdicts moved as they must, and which others moved."
    return Part(f"Stress test on {source}", lead, [Section("Verdicts after a change", named)])


_RULES = ("baseline:constant", "baseline:length")
# The number of traces from which steps are taken.
_DONORS = 50

ScoreAll = Callable[[Sequence[Trace]], Iterable[StepScores | None]]
"""Returns the offline scores of traces in their order, or None for a trace that cannot be scored."""


@dataclass(frozen=True)
class StressTest:
    """Solutions with their variants.

    `traces` are the originals, with a step for each sub-step. `variants` holds, for each original, the variant by
    each transform, or None if that found nothing to change.
    """

    transforms: tuple[Transform, ...]
    traces: tuple[Trace, ...]
    variants: tuple[tuple[tuple[Transform, Variant | None], ...], ...]

    @classmethod
    def of(
        cls,
        transforms: Sequence[Transform],
        traces: Sequence[Trace],
        seed: int = 0,
        donors: Sequence[Trace] = (),
    ) -> "StressTest":
        """Build the variants of some traces. Inserted steps are taken from `donors`, by default the first of the
        traces. Raises `UserError` if there is no trace or no transform finds anything to change."""
        if not traces:
            raise UserError("there is no trace to change.", "Give at least one.")
        donors = donors or traces[:_DONORS]
        variants = tuple(
            tuple((transform, transform.variant(trace, seed, donors)) for transform in transforms)
            for trace in traces
        )
        test = cls(tuple(transforms), tuple(map(by_substep, traces)), variants)
        if not len(test):
            raise UserError(
                "no transform finds anything to change in these traces.",
                "Most of them want an equation that holds, such as 2 + 3 = 5.",
            )
        return test

    def __len__(self) -> int:
        """Return the number of variants."""
        return sum(variant is not None for tried in self.variants for _, variant in tried)

    def judge(self, score: ScoreAll) -> Iterator[StressedTrace]:
        """Yield every variant with its own scores and its original's. Variants that cannot be scored are
        skipped."""
        for number, (trace, tried) in enumerate(zip(self.traces, self.variants, strict=True)):
            variants = [(transform, variant) for transform, variant in tried if variant is not None]
            if not variants:
                continue
            before, *after = score([trace, *(variant.trace for _, variant in variants)])
            for (transform, variant), scores in zip(variants, after, strict=True):
                if before is not None and scores is not None:
                    yield StressedTrace(number, transform, variant, before, scores)

    def baseline_figures(self, threshold: float = 0.5) -> list[StressFigures]:
        """Return the figures of the baselines. Baselines do not read the steps, so their figures are known
        beforehand."""
        return [
            figures
            for name in _RULES
            for figures in self.figures(name, self.judge(scored_by_rule(name)), threshold)
        ]

    def figures(self, evaluator: str, stressed: Iterable[StressedTrace], threshold: float) -> list[StressFigures]:
        """Return the figures of an evaluator on every transform, in order."""
        of: dict[str, list[StressedTrace]] = {transform.name: [] for transform in self.transforms}
        for variant in stressed:
            of[variant.transform.name].append(variant)
        return [measure(transform, evaluator, of[transform.name], threshold) for transform in self.transforms]


def scored_by_rule(name: str) -> ScoreAll:
    """Return a function that scores traces offline with a baseline."""
    return lambda traces: [BASELINES[name].score(trace, Mode.OFFLINE) for trace in traces]


def draw_traces(store: Store, dataset: str, most: int, seed: int) -> tuple[list[StoredTrace], list[StoredTrace]]:
    """Return at most `most` traces of a dataset, drawn at random with `seed`, and those from which steps are taken,
    both in file order. With the same seed, more traces include those of fewer, also once traces were added."""
    dataset_id = find_dataset(store, dataset).id
    with store.read() as session:
        ids = session.execute(
            select(TraceRow.id, TraceRow.external_id).where(TraceRow.dataset_id == dataset_id)
        ).all()
    place = {row.id: blake2b(f"{seed} {row.external_id}".encode(), digest_size=16).digest() for row in ids}
    drawn = sorted(place, key=place.__getitem__)
    traces, donors = (
        sorted(
            (trace for batch in trace_batches(store, drawn[:count]) for trace in batch),
            key=lambda trace: trace.position,
        )
        for count in (most, _DONORS)
    )
    return traces, donors
