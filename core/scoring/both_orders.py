"""Reading in both orders: an evaluator that has a causal one read the steps forwards and backwards.

A step is judged twice: after the steps that precede it, and in an input that holds the first `j` steps in reverse
order, after the steps that follow it. The two probabilities are averaged, so that later steps count. BiPRM also
scores the reverse order, but its code is not public: this rule is ours. The spread of an ensemble is left out,
because it differs between prefixes. Windows, if there are any, are cut in each order by itself.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from stepsight.core.errors import Check
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.models.evaluator_base import BatchEvaluator, Evaluator
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.reading import Reading, Rereading, causal_attention
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.scoring.forward import prefixes
from stepsight.core.trace import Trace


class OrderScorer(Protocol):
    """What `core.scoring.scorer.Scorer` does for each of the orders."""

    @property
    def evaluator(self) -> Evaluator: ...

    def reread(self, reading: Rereading) -> "OrderScorer": ...

    def tokens(self, trace: Trace, encoded: Encoded) -> int: ...

    def score(self, traces: Iterable[Trace], *, check: Check) -> Iterator[Judgment]: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class BothOrders(BatchEvaluator):
    """An evaluator that averages the scores of a causal model over both orders of the steps. `scorer` scores each
    order, and `identify` computes the fingerprint."""

    scorer: OrderScorer
    identify: Callable[[], str]

    @classmethod
    def of(cls, scorer: OrderScorer, reading: Rereading) -> "BothOrders":
        """Return the evaluator of `scorer`, which is a causal model, with this reading. Raises `UserError` if it
        cannot have it."""
        model = scorer.evaluator
        assert isinstance(model, ModelEvaluator)
        reading.check(model.name, is_causal=model.is_causal, context=model.context)
        return cls(
            name=f"{model.name}{reading}",
            format=model.format,
            thresholds=model.thresholds,
            provenance=model.provenance,
            outputs=model.outputs,
            scorer=scorer.reread(Rereading(window=reading.window)),
            identify=lambda: reading.fingerprint(model.fingerprint),
        )

    @property
    def _model(self) -> ModelEvaluator:
        assert isinstance(self.scorer.evaluator, ModelEvaluator)
        return self.scorer.evaluator

    @cached_property
    def fingerprint(self) -> str:
        return self.identify()

    @property
    def attention(self) -> str:
        return causal_attention(Reading.BOTH_ORDERS)

    @property
    def context(self) -> int | None:
        return self._model.context

    @property
    def dtype(self) -> str:
        return self._model.dtype

    @property
    def parameters(self) -> int:
        return self._model.parameters

    @property
    def described(self) -> str:
        return f"{self.name}: the mean of both orders of the steps. {self._model.described}"

    def reread(self, reading: Rereading) -> Evaluator:
        """Like `Evaluator.reread`. Both orders are read in windows, if there are any."""
        if reading.reading == Reading.ONCE:
            return self._model.reread(reading)
        windows = Rereading(window=reading.window)
        scorer = self.scorer.reread(windows)
        if scorer is self.scorer:
            return self
        return replace(
            self,
            name=f"{self.name}{windows}",
            scorer=scorer,
            identify=lambda: windows.fingerprint(self.fingerprint),
        )

    def encode(self, trace: Trace) -> Encoded:
        """Return the token ids of the whole trace, forwards. Raises `UserError` if it is too long in either
        order."""
        self._model.encode(_reversed(trace, len(trace.substeps)))
        return self._model.encode(trace)

    def tokens(self, trace: Trace, encoded: Encoded, mode: Mode) -> int:
        orders = (_reversed(trace, stop) for _, stop in prefixes(trace, mode))
        backward = sum(self.scorer.tokens(order, self._model.encode(order)) for order in orders)
        return self.scorer.tokens(trace, encoded) + backward

    def judge_all(self, encoded: Iterable[tuple[Trace, Encoded]], mode: Mode, check: Check) -> Iterator[Judgment]:
        begun: deque[Trace] = deque()

        def orders() -> Iterator[Trace]:
            for trace, _ in encoded:
                begun.append(trace)
                yield trace
                yield from (_reversed(trace, stop) for _, stop in prefixes(trace, mode))

        scores = (judgment.offline for judgment in self.scorer.score(orders(), check=check))
        for forward in scores:
            trace, rows = begun.popleft(), []
            assert forward is not None
            for start, stop in prefixes(trace, mode):
                backward = next(scores)
                assert backward is not None
                rows.append(((forward.probs[:stop] + backward.probs[::-1]) / np.float32(2))[start:])
            together = np.concatenate(rows)
            yield Judgment(
                trace, mode, Hindsight.from_packed(together) if mode == Mode.HINDSIGHT else StepScores(together)
            )


def _reversed(trace: Trace, count: int) -> Trace:
    """Return the first `count` sub-steps of a trace in reverse order."""
    return Trace.of(trace.problem, trace.substeps[:count][::-1], id=trace.id)
