"""A description of an evaluator that can be read without loading its weights or importing PyTorch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from stepsight.core.reading import CAUSAL, Rereading, causal_attention, reading_note, sees_later_steps
from stepsight.core.scores import Outputs, Thresholds

SERVED = "served"
"""The `dtype` of an evaluator behind a server, whose weights cannot be seen."""


@dataclass(frozen=True)
class EvaluatorSummary:
    """The properties of an evaluator, recorded when it was last loaded so that they are known without its weights.
    `seconds` is the time that loading took."""

    name: str
    fingerprint: str
    format: str
    attention: str
    dtype: str
    outputs: Outputs
    parameters: int
    context: int | None
    thresholds: Thresholds
    seconds: float = 0.0

    @property
    def sees_later_steps(self) -> bool:
        """True if a later step can change the judgment of an earlier one."""
        return sees_later_steps(self.attention)

    @property
    def is_causal_model(self) -> bool:
        """True if the evaluator is a causal model, which can also be used with a reading other than its own."""
        return bool(self.parameters) and self.attention.startswith(CAUSAL)

    @property
    def reading_note(self) -> str:
        """A note that the evaluator was not trained for its reading, or "" if the reading is its own."""
        return reading_note(self.name)

    def reread(self, reading: Rereading) -> "EvaluatorSummary":
        """Return the summary of this evaluator with another reading (see `Evaluator.reread`). Raises `UserError` if
        the evaluator cannot have that reading."""
        if not self.parameters:
            raise reading.refused(self.name, "is behind a server" if self.dtype == SERVED else "is no model")
        reading.check(self.name, is_causal=self.is_causal_model, context=self.context)
        attention = self.attention
        if reading.reading is not None and self.is_causal_model:
            attention = causal_attention(reading.reading)
        if attention == self.attention:
            reading = Rereading(window=reading.window)
        if reading == Rereading():
            return self
        name, fingerprint = f"{self.name}{reading}", reading.fingerprint(self.fingerprint)
        return replace(self, name=name, fingerprint=fingerprint, attention=attention)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "EvaluatorSummary":
        """Rebuild a summary from the output of `as_json`. Raises `TypeError`, `ValueError` or `KeyError` if
        `values` has a different form."""
        return cls(
            **dict(values)
            | {
                "outputs": Outputs(values["outputs"]),
                "thresholds": Thresholds(**values["thresholds"]),
            }
        )
