"""The interface of scorers, on this machine or on a server."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

from stepsight.core.arrays import Floats32
from stepsight.core.errors import UserError
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.trace import Trace

Skip = Callable[[Trace, UserError], None]


class AbstractScorer(ABC):
    """Scores traces with one evaluator."""

    @abstractmethod
    def score(
        self, traces: Iterable[Trace], mode: Mode | str = Mode.OFFLINE, on_skip: Skip | None = None
    ) -> Iterator[Judgment]:
        """Yield a judgment for each trace, in input order.

        Raises `UserError` at a trace longer than the evaluator's context; with `on_skip` such a trace is left out
        and handed to it with the error.
        """

    @abstractmethod
    def score_next(self, problem: str, steps: Sequence[str | Sequence[str]], candidates: Sequence[str]) -> Floats32:
        """The online scores of each candidate as the step after `steps`, which may be none: probabilities of neg,
        neu and pos, shape (candidates, 3). A step-level beam search asks for them again and again.

        Raises `UserError` if there is no candidate, or one is empty or makes the input too long.
        """

    def score_one(self, trace: Trace, mode: Mode | str = Mode.HINDSIGHT) -> Judgment:
        """The judgment of a single trace."""
        return next(iter(self.score([trace], mode)))

    def leave_one_out(self, trace: Trace) -> LeaveOneOut:
        """The trace scored offline without each of its sub-steps but the first: n - 1 passes for n sub-steps.

        Raises `UserError` if the trace is longer than the evaluator's context.
        """
        texts = trace.substeps
        shortened = (
            Trace.of(trace.problem, [*texts[:place], *texts[place + 1 :]], id=trace.id)
            for place in range(1, len(texts))
        )
        rows = []
        for place, judgment in enumerate(self.score(shortened, Mode.OFFLINE), start=1):
            assert judgment.offline is not None
            rows.append(judgment.offline.probs[:place])
        return LeaveOneOut(tuple(rows))
