"""An evaluator that has a causal one read the steps forwards and backwards.

A step is judged twice: after the steps that precede it, and in an input that holds the first `j` steps in reverse
order, after the steps that follow it. The two probabilities are averaged, so that later steps count. BiPRM also
scores the reverse order, but its code is not public: this rule is ours. The spread of an ensemble is left out,
because it differs between prefixes. Windows, if there are any, are cut in each order by itself.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stepsight.core.evaluator_summary import IN_BOTH_ORDERS, Reading
from stepsight.core.judgment import Event, Judgment, Mode
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.models.evaluator_base import BatchEvaluator, Evaluator
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.scoring.forward import prefixes
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace


def read_as(scorer: Scorer, reading: Reading) -> Scorer:
    """Return a scorer for the evaluator of `scorer` with another reading (see `Evaluator.read_as`). It uses the
    same forward pass. Raises `UserError` if the evaluator cannot have the reading."""
    in_both = reading.reading and isinstance(scorer.evaluator, ModelEvaluator)
    evaluator = BothOrders.of(scorer, reading) if in_both else scorer.evaluator.read_as(reading)
    return scorer if evaluator is scorer.evaluator else Scorer(evaluator, scorer.forward, scorer.window)


@dataclass(frozen=True, eq=False, kw_only=True)
class BothOrders(BatchEvaluator):
    """An evaluator that averages the scores of a causal model over both orders of the steps. `scorer` scores each
    order, and `identify` computes the fingerprint."""

    scorer: Scorer
    identify: Callable[[], str]

    @classmethod
    def of(cls, scorer: Scorer, reading: Reading) -> "BothOrders":
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
            scorer=read_as(scorer, Reading(window=reading.window)),
            identify=lambda: reading.fingerprint(model.fingerprint),
            reading=reading,
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
        return IN_BOTH_ORDERS

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

    def read_as(self, reading: Reading) -> Evaluator:
        """Like `Evaluator.read_as`. Both orders are read in windows, if there are any."""
        windows = Reading(window=reading.window)
        scorer = read_as(self.scorer, windows)
        if scorer is self.scorer:
            return self
        return replace(
            self,
            name=f"{self.name}{windows}",
            scorer=scorer,
            identify=lambda: windows.fingerprint(self.fingerprint),
            reading=windows,
        )

    def encode(self, trace: Trace) -> Encoded:
        """Return the token ids of the whole trace, forwards. Raises `UserError` if it is too long in either
        order."""
        self._model.encode(_reverse_steps(trace, len(trace.substeps)))
        return self._model.encode(trace)

    def tokens(self, trace: Trace, encoded: Encoded, mode: Mode) -> int:
        orders = (_reverse_steps(trace, stop) for _, stop in prefixes(trace, mode))
        backward = sum(self.scorer.tokens(order, self._model.encode(order)) for order in orders)
        return self.scorer.tokens(trace, encoded) + backward

    def judge_all(self, encoded: Iterable[tuple[Trace, Encoded]], mode: Mode) -> Iterator[Event]:
        waiting: deque[Trace] = deque()

        def orders() -> Iterator[Trace]:
            for trace, _ in encoded:
                waiting.append(trace)
                yield trace
                yield from (_reverse_steps(trace, stop) for _, stop in prefixes(trace, mode))

        orders_of_first: list[StepScores] = []
        for event in self.scorer.stream(orders()):
            if not isinstance(event, Judgment):
                yield None
                continue
            assert event.offline is not None
            orders_of_first.append(event.offline)
            if len(orders_of_first) > len(prefixes(waiting[0], mode)):
                yield _mean(waiting.popleft(), mode, *orders_of_first)
                orders_of_first.clear()


def _mean(trace: Trace, mode: Mode, forward: StepScores, *backward: StepScores) -> Judgment:
    """Average the scores of a trace read forwards, and of each of its prefixes read backwards."""
    rows = [
        ((forward.probs[:stop] + back.probs[::-1]) / np.float32(2))[start:]
        for (start, stop), back in zip(prefixes(trace, mode), backward, strict=True)
    ]
    probs = np.concatenate(rows)
    return Judgment(trace, mode, Hindsight.from_packed(probs) if mode == Mode.HINDSIGHT else StepScores(probs))


def _reverse_steps(trace: Trace, count: int) -> Trace:
    """Return the first `count` sub-steps of a trace in reverse order."""
    return Trace.of(trace.problem, trace.substeps[:count][::-1], id=trace.id)
