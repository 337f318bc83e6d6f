"""The interface of scorers, whether they run on this machine or on a server."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from stepsight.core.arrays import Floats32
from stepsight.core.evidence import LeaveOneOut, shortened
from stepsight.core.judgment import Judgment, Mode, Skip
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace


class AbstractScorer(ABC):
    """The base class of scorers, which score traces with one evaluator."""

    @abstractmethod
    def score(
        self, traces: Iterable[Trace], mode: Mode | str = Mode.OFFLINE, on_skip: Skip | None = None
    ) -> Iterator[Judgment]:
        """Yield a judgment for each trace, in input order.

        Raises `UserError` if a trace is longer than the evaluator's context. If `on_skip` is given, the trace is
        skipped instead, and `on_skip` is called with the trace and the error.
        """

    @abstractmethod
    def score_next(
        self,
        problem: str,
        steps: Sequence[str | Sequence[str]],
        candidates: Sequence[str],
    ) -> Floats32:
        """Score each candidate as the step after `steps`, which may be empty.

        A step-level beam search calls this repeatedly. The results are online scores: probabilities of neg, neu and
        pos, with shape (candidates, 3). Raises `UserError` if there is no candidate, or if a candidate is empty
        or makes the input too long.
        """

    def score_one(self, trace: Trace, mode: Mode | str = Mode.HINDSIGHT) -> Judgment:
        """Judge a single trace, by default in hindsight mode."""
        return next(iter(self.score([trace], mode)))

    def leave_one_out(self, trace: Trace) -> LeaveOneOut:
        """Score a trace offline, both complete and with each of its sub-steps left out in turn: n + 1 passes for n
        sub-steps. Raises `UserError` if the trace is longer than the evaluator's context."""
        scores = []
        for judgment in self.score([trace, *shortened(trace)]):
            assert judgment.offline is not None
            scores.append(judgment.offline)
        return left_out_scores(scores)

    def offline_scores(self, traces: Sequence[Trace]) -> list[StepScores | None]:
        """Return the offline scores of each trace, or None for a trace that cannot be scored, such as one that is
        too long."""
        left_out: set[int] = set()
        judgments = self.score(traces, Mode.OFFLINE, lambda trace, _: left_out.add(id(trace)))
        scores = iter([judgment.offline for judgment in judgments])
        return [None if id(trace) in left_out else next(scores) for trace in traces]


def left_out_scores(scores: Sequence[StepScores]) -> LeaveOneOut:
    """Return the leave-one-out scores of a trace from those of the whole trace and of the trace without each of its
    sub-steps."""
    whole, *others = scores
    return LeaveOneOut.of(whole, {place: other.probs for place, other in enumerate(others)})
