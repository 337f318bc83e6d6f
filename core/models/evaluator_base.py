"""An evaluator: what turns traces into judgments, whatever it does that by."""

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
    """`format` is the kind of evaluator, for models that of the checkpoint; `provenance` is how it was trained,
    `outputs` what it gives.
    """

    name: str
    format: str
    thresholds: Thresholds = field(default_factory=Thresholds)
    provenance: dict[str, Any] = field(default_factory=dict)
    outputs: Outputs = Outputs.THREE_WAY

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """What stands in every stored judgment: two of the same fingerprint say the same."""

    @property
    @abstractmethod
    def attention(self) -> str:
        """`bidirectional` or `causal`: whether steps are judged with later ones in view."""

    @property
    @abstractmethod
    def context(self) -> int | None:
        """The longest input in tokens, None where there are no tokens."""

    @property
    @abstractmethod
    def dtype(self) -> str:
        """The type of the weights, such as float32."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """The number of weights, 0 where there are none here."""

    @property
    @abstractmethod
    def described(self) -> str:
        """What it is, in a line."""

    def description(self, seconds: float = 0.0) -> EvaluatorSummary:
        """What is to be known of it when it is no longer in memory; it took so many `seconds` to load."""
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
        """Token ids of the whole trace, none where there are no tokens. Raises `UserError` where it is too long."""


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
        """What it says of a trace."""


class ServedEvaluator(Evaluator):
    """An evaluator that a server runs. It is asked about many traces at once, and its weights cannot be seen."""

    @property
    def dtype(self) -> str:
        """The server's own affair."""
        return SERVED

    @property
    def parameters(self) -> int:
        return 0

    @abstractmethod
    def tokens(self, trace: Trace, encoded: Encoded, mode: Mode) -> int:
        """About how many tokens the server computes for a trace."""

    @abstractmethod
    def judge_all(
        self, encoded: Iterable[tuple[Trace, Encoded]], mode: Mode, check: Callable[[], None]
    ) -> Iterator[Judgment]:
        """A judgment for each trace, in their order, a bounded number of them at a time. What `check` raises ends
        the work: it is called while answers are waited for.

        Raises `UserError` where the server fails; what was yielded before holds.
        """
