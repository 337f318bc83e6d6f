"""Evaluators, which turn traces into judgments with a model, with rules or by querying a server."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stepsight.core.evaluator_summary import OWN_READING, SERVED, EvaluatorSummary, Reading, sees_later_steps
from stepsight.core.judgment import Event, Judgment, Mode
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.trace import Trace


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluator(ABC):
    """The base class of everything that turns traces into judgments.

    `format` is the kind of evaluator; for a model, it is the format of the checkpoint. `provenance` describes how
    the evaluator was trained. `reading` is the evaluator's own, unless it is part of the name.
    """

    name: str
    format: str
    thresholds: Thresholds = field(default_factory=Thresholds)
    provenance: dict[str, Any] = field(default_factory=dict)
    outputs: Outputs = Outputs.THREE_WAY
    reading: Reading = OWN_READING

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """The identity stored with every judgment. Evaluators with equal fingerprints give equal judgments."""

    @property
    @abstractmethod
    def attention(self) -> str:
        """`bidirectional` if a step's judgment takes later steps into account, and otherwise `causal`.

        If a causal model sees later steps by its reading of the solution, this is appended, as in `causal, read in
        both orders`.
        """

    @property
    def sees_later_steps(self) -> bool:
        """True if a later step can change the judgment of an earlier one."""
        return sees_later_steps(self.attention)

    @property
    def reading_note(self) -> str:
        """A note that the evaluator was not trained for its reading, or "" if the reading is its own."""
        return self.reading.note(self.name)

    def read_as(self, reading: Reading) -> "Evaluator":
        """Return this evaluator with another reading. The copy shares its weights.

        The copy's name includes the reading, and its fingerprint differs. If the evaluator already has the reading,
        it is returned unchanged. Raises `UserError` if it is not a model on this machine, or if it is not causal
        and the reading needs a causal model.
        """
        raise reading.refused(self.name, "is behind a server" if self.dtype == SERVED else "is no model")

    @property
    @abstractmethod
    def context(self) -> int | None:
        """The maximum input length in tokens, or None if it is unknown or the evaluator does not use tokens."""

    @property
    @abstractmethod
    def dtype(self) -> str:
        """The data type of the weights, such as float32."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """The number of weights, or 0 if the evaluator has no weights on this machine."""

    @property
    @abstractmethod
    def described(self) -> str:
        """A description of the evaluator in one line."""

    def description(self, seconds: float = 0.0) -> EvaluatorSummary:
        """Return a summary that remains usable when the evaluator is no longer in memory. `seconds` is the time
        that loading took."""
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
            reading=self.reading,
        )

    @abstractmethod
    def encode(self, trace: Trace) -> Encoded:
        """Return the token ids of the whole trace, which are empty if the evaluator has no tokenizer. Raises
        `UserError` if the trace is too long."""


class RuleEvaluator(Evaluator):
    """An evaluator that has no weights and does not use tokens. It judges each trace on its own."""

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
        empty = np.zeros(0, np.int64)
        return Encoded(empty, empty, empty)

    @abstractmethod
    def judge(self, trace: Trace, mode: Mode) -> Judgment:
        """Judge a trace."""


class BatchEvaluator(Evaluator):
    """An evaluator that judges many traces at once, on its own."""

    @abstractmethod
    def tokens(self, trace: Trace, encoded: Encoded, mode: Mode) -> int:
        """Estimate how many tokens are computed for a trace."""

    @abstractmethod
    def judge_all(self, encoded: Iterable[tuple[Trace, Encoded]], mode: Mode) -> Iterator[Event]:
        """Yield a judgment for each trace, in order, with a limited number of traces in progress, and None while
        waiting for answers.

        Raises `UserError` if it fails. Judgments yielded before the error remain valid.
        """


class ServedEvaluator(BatchEvaluator):
    """An evaluator that runs on a server. Its weights are not accessible."""

    @property
    def dtype(self) -> str:
        """The constant `SERVED`, because the server chooses the data type."""
        return SERVED

    @property
    def parameters(self) -> int:
        return 0
