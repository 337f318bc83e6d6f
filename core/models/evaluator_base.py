"""Evaluators: they turn traces into judgments, by a model, by rules or by asking a server."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stepsight.core.evaluator_summary import SERVED, EvaluatorSummary
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.trace import Trace


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluator(ABC):
    """Turns traces into judgments.

    `format` is its kind, for models the format of the checkpoint; `provenance` says how it was trained.
    """

    name: str
    format: str
    thresholds: Thresholds = field(default_factory=Thresholds)
    provenance: dict[str, Any] = field(default_factory=dict)
    outputs: Outputs = Outputs.THREE_WAY

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """The identity stored with every judgment: evaluators with equal fingerprints give equal judgments."""

    @property
    @abstractmethod
    def attention(self) -> str:
        """`bidirectional` if steps are judged with later ones in view, else `causal`."""

    @property
    @abstractmethod
    def context(self) -> int | None:
        """The longest input in tokens, None if there are no tokens."""

    @property
    @abstractmethod
    def dtype(self) -> str:
        """The type of the weights, such as float32."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """The number of weights, 0 if there are none here."""

    @property
    @abstractmethod
    def described(self) -> str:
        """A description in one line."""

    def description(self, seconds: float = 0.0) -> EvaluatorSummary:
        """Its summary, for use when it is no longer in memory; loading it took `seconds`."""
        return EvaluatorSummary(
            name=self.name,
            fingerprint=self.fingerprint,
            format=self.format,
            attention=self.attention,
            dtype=self.dtype,
            outputs=self.outputs,
            parameters=self.parameters,
            context=self.context,
            thresholds=self.thresholds,
            seconds=seconds,
        )

    @abstractmethod
    def encode(self, trace: Trace) -> Encoded:
        """Token ids of the whole trace; empty without a tokenizer. Raises `UserError` if the trace is too long."""


class RuleEvaluator(Evaluator):
    """An evaluator without weights and tokens, which judges a trace by itself."""

    @property
    def context(self) -> int | None:
        return None

    @property
    def dtype(self) -> str:
        return "float32"

    @property
    def parameters(self) -> int:
        return 0

    def encode(self, trace: Trace) -> Encoded:
        nothing = np.zeros(0, np.int64)
        return Encoded(nothing, nothing, nothing)

    @abstractmethod
    def judge(self, trace: Trace, mode: Mode) -> Judgment:
        """The judgment of a trace."""


class ServedEvaluator(Evaluator):
    """An evaluator that a server runs. It judges many traces at once, and its weights cannot be seen."""

    @property
    def dtype(self) -> str:
        """A constant: the type is up to the server."""
        return SERVED

    @property
    def parameters(self) -> int:
        return 0

    @abstractmethod
    def tokens(self, trace: Trace, encoded: Encoded, mode: Mode) -> int:
        """An estimate of the tokens that the server computes for a trace."""

    @abstractmethod
    def judge_all(
        self, encoded: Iterable[tuple[Trace, Encoded]], mode: Mode, check: Callable[[], None]
    ) -> Iterator[Judgment]:
        """A judgment for each trace, in order, with a bounded number in progress. `check` is called while waiting
        for answers; an error that it raises ends the work.

        Raises `UserError` if the server fails; judgments yielded before remain valid.
        """
