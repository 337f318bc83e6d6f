"""What is known of a solution that is still being judged: failing equations, and the online scores from the first
step on."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from stepsight.app.scoring.batcher import PendingScore
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import TraceJudgments, conclusion_html, failing_steps
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Outputs, StepScores, Thresholds
from stepsight.core.trace import Trace

# The flagged steps that are shown with their texts.
_MOST_FLAGGED = 12


@dataclass(frozen=True)
class EvaluatorScoring:
    """An evaluator that is judging a solution: the kind of its outputs, and the future of its judgment."""

    outputs: Outputs
    judgment: PendingScore[Judgment]

    @property
    def known(self) -> StepScores | None:
        """The online scores of the first sub-steps, as far as they are known, or None if there are none."""
        if self.judgment.done():
            failed = self.judgment.cancelled() or self.judgment.exception() is not None
            return None if failed else self.judgment.result().online
        # Copied once, since the scorer adds to it.
        steps = dict(self.judgment.steps)
        count = next(i for i in range(len(steps) + 1) if i not in steps)
        return StepScores(np.array([steps[i] for i in range(count)], np.float32)) if count else None


@dataclass(frozen=True)
class RunningScores:
    """A solution that is being judged, by each of several evaluators, since `start` on the monotonic clock."""

    trace: Trace
    thresholds: Thresholds
    evaluators: Mapping[str, EvaluatorScoring]
    thinking: int = 0
    start: float = field(default_factory=time.monotonic)

    def html(self) -> Markup:
        """Render the sentence on failing equations, the progress of each evaluator, the verdicts so far, and the
        first steps that are not valid. Returns "" until an equation fails or there is a verdict."""
        failing = failing_steps(self.trace)
        scores_so_far = {name: scoring.known for name, scoring in self.evaluators.items()}
        judged = {
            name: TraceJudgments(
                name,
                self.evaluators[name].outputs,
                self.thresholds,
                {Mode.ONLINE: Judgment(self.trace, Mode.ONLINE, scores)},
            )
            for name, scores in scores_so_far.items()
            if scores is not None
        }
        if not judged and not failing:
            return Markup()
        words = {
            name: [own.verdict(mode, i) for mode, scores in own.modes.items() for i in range(len(scores))]
            for name, own in judged.items()
        }
        count = max(map(len, words.values()), default=0)
        marks = [[own[i] if i < len(own) else "" for own in words.values()] for i in range(count)]
        flagged = [i for i, of_step in enumerate(marks) if "not valid" in of_step]
        # The seconds until the last sub-step is judged: a prefix takes as long as it has sub-steps.
        total, spent = len(self.trace.substeps), time.monotonic() - self.start
        left = {name: spent * ((total / len(own)) ** 2 - 1) for name, own in words.items()}
        return render(
            "score/running.html",
            conclusion=conclusion_html(self.trace, (), self.thinking) if failing else "",
            trace=self.trace,
            total=total,
            left=left,
            evaluators={name: words.get(name, []) for name in scores_so_far},
            names=list(words),
            marks=marks,
            flagged=flagged[:_MOST_FLAGGED],
            more=len(flagged[_MOST_FLAGGED:]),
        )


class RunningResults:
    """The solutions that are being judged, by the keys that their pages have chosen."""

    def __init__(self) -> None:
        self._by_key: dict[str, RunningScores] = {}

    @contextmanager
    def under(self, key: str) -> Iterator[Callable[[RunningScores], None]]:
        """Keep a solution under a key while the block runs, once the yielded function is called with it."""

        def begin(running: RunningScores) -> None:
            if key:
                self._by_key[key] = running

        try:
            yield begin
        finally:
            self._by_key.pop(key, None)

    def html(self, key: str) -> Markup:
        """Render the scores under a key, or "" if there are none yet or no longer."""
        running = self._by_key.get(key)
        return running.html() if running is not None else Markup()
