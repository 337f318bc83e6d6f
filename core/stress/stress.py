"""The stress test: apply transforms to solutions, judge what comes out, and measure each evaluator."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from stepsight.core.errors import Check, UserError, never_cancel
from stepsight.core.judgment import Mode
from stepsight.core.metrics.baselines import Baseline
from stepsight.core.scores import StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.stress.measure import StressedTrace, StressFigures, measure
from stepsight.core.stress.variant import Transform, Variant, by_substep
from stepsight.core.trace import Trace

ScoreAll = Callable[[Sequence[Trace]], Iterable[StepScores | None]]
"""Returns the offline scores of traces in their order, or None for a trace that cannot be scored."""


@dataclass(frozen=True)
class StressTest:
    """Solutions with their variants.

    `traces` are the originals, with a step for each sub-step. `variants` holds, for each original, a variant by
    each transform that found something to change.
    """

    transforms: tuple[Transform, ...]
    traces: tuple[Trace, ...]
    variants: tuple[tuple[tuple[Transform, Variant], ...], ...]

    @classmethod
    def of(
        cls,
        transforms: Sequence[Transform],
        traces: Sequence[Trace],
        seed: int = 0,
        donors: int = 50,
        check: Check = never_cancel,
    ) -> "StressTest":
        """Make the variants of some traces. Steps to put in are taken from the first `donors` traces. Raises
        `UserError` if there is no trace or no transform finds anything to change."""
        if not traces:
            raise UserError("there is no trace to change.", "Give at least one.")
        made = []
        for trace in traces:
            check()
            found = ((one, one.variant(trace, seed, traces[:donors])) for one in transforms)
            made.append(tuple((one, variant) for one, variant in found if variant is not None))
        if not any(made):
            raise UserError(
                "no transform finds anything to change in these traces.",
                "Most of them want an equation that holds, such as 2 + 3 = 5.",
            )
        return cls(tuple(transforms), tuple(map(by_substep, traces)), tuple(made))

    def __len__(self) -> int:
        """Return the number of variants."""
        return sum(map(len, self.variants))

    def judge(self, score: ScoreAll) -> Iterator[StressedTrace]:
        """Yield every variant with its scores and those of its original. What cannot be scored is passed over."""
        for number, (trace, variants) in enumerate(zip(self.traces, self.variants, strict=True)):
            if not variants:
                continue
            before, *after = score([trace, *(variant.trace for _, variant in variants)])
            for (transform, variant), scores in zip(variants, after, strict=True):
                if before is not None and scores is not None:
                    yield StressedTrace(number, transform, variant, before, scores)

    def figures(self, stressed: Iterable[StressedTrace], threshold: float) -> list[StressFigures]:
        """Return the measures of every transform, in order."""
        of: dict[str, list[StressedTrace]] = {one.name: [] for one in self.transforms}
        for one in stressed:
            of[one.transform.name].append(one)
        return [measure(one, of[one.name], len(self.traces), threshold) for one in self.transforms]


def scored_by(scorer: Scorer, check: Check = never_cancel) -> ScoreAll:
    """Return a function that scores traces offline. It gives None for a trace that is too long."""

    def score(traces: Sequence[Trace]) -> list[StepScores | None]:
        skipped: list[Trace] = []
        judged = scorer.score(traces, Mode.OFFLINE, lambda trace, _: skipped.append(trace), check)
        found = iter([judgment.offline for judgment in judged])
        left_out = {id(trace) for trace in skipped}
        return [None if id(trace) in left_out else next(found) for trace in traces]

    return score


def scored_by_rule(baseline: Baseline) -> ScoreAll:
    """Return a function that scores traces offline with a baseline."""
    return lambda traces: [baseline.score(trace, Mode.OFFLINE) for trace in traces]
