"""The stress test: apply transforms to solutions, judge the variants, and measure each evaluator.

It measures how often verdicts moved as a transform demands, which others moved, and inflation. The figures are
our own; an unjustified rise in reward is called inflation, as in EST-PRM. Intervals are bootstrap intervals over
traces.

A result is a list of records, one for each variant and evaluator, from which all figures are measured. A result
file has an object with the source in its first line, and a record in each of the others:

    {"transform": "number-replaced", "evaluator": "mini-bidir", "threshold": 0.5, "trace": 0, "id": "7",
     "said": "Step 1: “2 + 3 = 5” became “2 + 3 = 6”.", "problem": "Add.", "steps": ["2 + 3 = 6.", "So 5."],
     "origins": [0, 1], "targets": [0], "before": [0.9, 0.8], "after": [0.3, 0.8]}

`before` has the validity of each step of the original, and `after` that of each step of the variant. Both are null
where the evaluator gives no scores. Such a step is not called wrong: it counts as valid at any threshold, and has
no validity that could rise or fall.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import select

from stepsight.core.errors import UserError, counted
from stepsight.core.files.jsonl import open_input
from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import Value, mean, resamples
from stepsight.core.metrics.shortcuts import BASELINES
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import StoredTrace, find_dataset, trace_batches
from stepsight.training.report.html import Part, Section
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug, table_of
from stepsight.training.stress.transforms import Demand, Transform, Variant, by_substep, find_transform

StressRecord = Mapping[str, Any]
"""A variant judged by an evaluator, as a line of a result file."""

# The baselines shown beside an evaluator, which do not read what the steps say.
_RULES = ("baseline:constant", "baseline:length")

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
    def of(cls, transforms: Sequence[Transform], traces: Sequence[Trace], seed: int = 0) -> "StressTest":
        """Build the variants of some traces. Raises `UserError` if there is no trace or no transform finds anything
        to change."""
        if not traces:
            raise UserError("there is no trace to change.", "Give at least one.")
        variants = tuple(
            tuple((transform, transform.variant(trace, seed)) for transform in transforms) for trace in traces
        )
        test = cls(tuple(transforms), tuple(map(by_substep, traces)), variants)
        if not len(test):
            raise UserError(
                "no transform finds anything to change in these traces.",
                "Most of them need an equation that holds, such as 2 + 3 = 5.",
            )
        return test

    def __len__(self) -> int:
        """Return the number of variants."""
        return sum(variant is not None for tried in self.variants for _, variant in tried)

    def judge(self, evaluator: str, score: ScoreAll, threshold: float) -> Iterator[dict[str, Any]]:
        """Yield the record of every variant. Variants that cannot be scored are skipped."""
        for number, (trace, tried) in enumerate(zip(self.traces, self.variants, strict=True)):
            variants = [(transform, variant) for transform, variant in tried if variant is not None]
            if not variants:
                continue
            before, *after = score([trace, *(variant.trace for _, variant in variants)])
            for (transform, variant), scores in zip(variants, after, strict=True):
                if before is not None and scores is not None:
                    yield {
                        "transform": transform.name,
                        "evaluator": evaluator,
                        "threshold": threshold,
                        "trace": number,
                        "id": variant.trace.id,
                        "said": variant.said,
                        "problem": variant.trace.problem,
                        "steps": list(variant.trace.substeps),
                        "origins": list(variant.origins),
                        "targets": list(variant.targets),
                        "before": _validities(before),
                        "after": _validities(scores),
                    }

    def baselines(self, threshold: float = 0.5) -> list[dict[str, Any]]:
        """Return the records of the baselines."""

        def scored(name: str) -> ScoreAll:
            return lambda traces: [BASELINES[name].score(trace, Mode.OFFLINE) for trace in traces]

        return [record for name in _RULES for record in self.judge(name, scored(name), threshold)]


def _validities(scores: StepScores) -> list[float | None]:
    """Return the validity of each step to its last digit, or None for a step without scores."""
    judged = scores.probs.max(axis=1) > 0
    return [float(str(value)) if given else None for value, given in zip(scores.validity, judged, strict=True)]


def measure(records: Sequence[StressRecord], demand: Demand) -> dict[Column, Cell]:
    """Measure one evaluator on the variants of one transform. A step is valid if its validity reaches the
    threshold.

    - `as_demanded`: the share of steps that moved as they must. If a verdict must change, these are the targets
      that were valid or absent before and are not valid now; otherwise, the steps whose verdict stayed.
    - `fall`, if a verdict must change: the mean fall in validity of the targets that are in the original
    - `elsewhere`: the share of variants in which the verdict on another step moved
    - `inflation`: the mean rise in validity of the other steps
    - `steps`: the number of steps of `as_demanded`, and `variants`: the number of variants
    """
    rows = [
        (number, place in record["targets"], record["before"][origin] if origin is not None else None, origin, now)
        for number, record in enumerate(records)
        for place, (origin, now) in enumerate(zip(record["origins"], record["after"], strict=True))
    ]
    steps = pd.DataFrame(rows, columns=["variant", "is_target", "was", "origin", "now"])
    # In single precision, like scores.
    steps = steps.astype({"was": "float32", "now": "float32"})
    cut = np.float32(records[0]["threshold"])
    was_wrong, is_wrong = steps["was"] < cut, steps["now"] < cut
    rise = (steps["now"] - steps["was"]).astype(float)
    targets, moved = steps["is_target"], was_wrong != is_wrong
    others = ~targets & steps["origin"].notna()
    if demand == Demand.CHANGE:
        counted, hits, lacking = targets & ~was_wrong, is_wrong, "No target was valid before."
    else:
        counted, hits, lacking = others, ~moved, "There is nothing to compare."
    # The traces that have a variant, numbered from 0.
    trace = np.unique([record["trace"] for record in records], return_inverse=True)[1].astype(np.int64)
    weights = resamples(int(trace.max()) + 1)

    def share_or_mean(values: pd.Series, lacking: str) -> Value:
        """Return the mean of values that are indexed by the number of their variant, without undefined ones."""
        defined = values.dropna()
        return mean(defined.to_numpy(), trace[defined.index.to_numpy(np.int64)], weights, lacking)

    def of_variants(values: pd.Series) -> Value:
        return share_or_mean(values.groupby(steps["variant"]).mean(), "No step to compare.")

    title = "turned" if demand == Demand.CHANGE else "stayed"
    fall = {Column("fall", "fall", CellKind.POINTS): of_variants(-rise.where(targets))}
    return {
        Column("as_demanded", title): share_or_mean(hits.set_axis(steps["variant"])[counted.to_numpy()], lacking),
        **(fall if demand == Demand.CHANGE else {}),
        Column("elsewhere", "moved elsewhere"): share_or_mean((moved & others).groupby(steps["variant"]).any(), ""),
        Column("inflation", "inflation", CellKind.POINTS): of_variants(rise.where(others)),
        Column("steps", "steps", CellKind.COUNT): int(counted.sum()),
        Column("variants", "variants", CellKind.COUNT): len(records),
    }


_CAPTIONS = {
    Demand.CHANGE: "a step was made wrong: the share whose verdict turned",
    Demand.STAY: "nothing was made wrong: the share of steps whose verdict stayed",
}


def stress_tables(records: Sequence[StressRecord], transforms: Sequence[Transform], traces: int) -> list[Table]:
    """Return a table for each demand, with a row for each transform and evaluator. All figures are of the same
    `traces`. A transform that changed nothing is left out."""
    judged: dict[tuple[str, str], list[StressRecord]] = {}
    for record in records:
        judged.setdefault((record["transform"], record["evaluator"]), []).append(record)
    tables = []
    for demand, caption in _CAPTIONS.items():
        rows: list[dict[Column, Cell]] = []
        starts, empty = [], []
        for transform in (transform for transform in transforms if transform.demand == demand):
            results = {evaluator: own for (name, evaluator), own in judged.items() if name == transform.name}
            starts += [len(rows)] if results and rows else []
            empty += [] if results else [transform.name]
            for evaluator, own in results.items():
                named = {"transform": transform.name, "evaluator": evaluator}
                head: dict[Column, Cell] = {Column(key, key, CellKind.TEXT): name for key, name in named.items()}
                rows.append(head | measure(own, demand))
        notes = [f"Of {counted(traces, 'trace')}. Intervals are 95 % bootstrap intervals over traces."]
        notes += [f"Nothing to change for {', '.join(empty)}."] if empty else []
        tables += [table_of(f"stress-{demand.name.lower()}", caption, rows, notes, starts)] if rows else []
    return tables


def result_lines(source: str, test: StressTest, records: Iterable[StressRecord]) -> list[str]:
    """Return the lines of a result file. `source` names the dataset or file of the traces."""
    head = {"source": source, "traces": len(test.traces), "transforms": [each.name for each in test.transforms]}
    return [json.dumps(row, ensure_ascii=False) + "\n" for row in (head, *records)]


def read_result(path: str) -> Part:
    """Return the figures of a result file as a part of a report. Raises `UserError` if it is none."""
    with open_input(path) as file:
        lines = list(file)
    try:
        head, *records = map(json.loads, lines)
        transforms = [find_transform(name) for name in head["transforms"]]
        source, traces = str(head["source"]), int(head["traces"])
        tables = stress_tables(records, transforms, traces)
    except (IndexError, KeyError, TypeError, ValueError):
        raise UserError(
            f"{path}: not a stress test's result.", "Write one: stepsight stress --dataset NAME --output FILE."
        ) from None
    named = [
        replace(table, name=f"{slug(source)}-{table.name}", caption=f"{source}: {table.caption}")
        for table in tables
    ]
    lead = "Solutions changed by rule: how often verdicts moved as they must, and which others moved."
    return Part(f"Stress test on {source}", lead, [Section("Verdicts after a change", named)])


def draw_traces(store: Store, dataset: str, most: int, seed: int) -> list[StoredTrace]:
    """Return at most `most` traces of a dataset, drawn at random with `seed`, in file order. With the same seed,
    more traces include those of fewer, also once traces were added."""
    columns = select(TraceRow.id, TraceRow.external_id).where(
        TraceRow.dataset_id == find_dataset(store, dataset).id
    )
    with store.read() as session:
        ids = session.execute(columns).all()
    place = {row.id: blake2b(f"{seed} {row.external_id}".encode(), digest_size=16).digest() for row in ids}
    drawn = sorted(place, key=place.__getitem__)[:most]
    return sorted(chain.from_iterable(trace_batches(store, drawn)), key=lambda trace: trace.position)
