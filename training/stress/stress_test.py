"""The stress test: apply transforms to solutions, judge the variants, and measure each evaluator."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from sqlalchemy import select

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.shortcuts import BASELINES
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.traces.queries import StoredTrace, find_dataset, trace_batches
from stepsight.training.stress.result import StressedTrace, StressFigures, measure
from stepsight.training.stress.variant import Transform, Variant, by_substep

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
        of: dict[str, list[StressedTrace]] = {one.name: [] for one in self.transforms}
        for one in stressed:
            of[one.transform.name].append(one)
        return [measure(one, evaluator, of[one.name], threshold) for one in self.transforms]


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
