"""A description of an evaluator that can be read without loading its weights or importing PyTorch."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict
from pydantic.dataclasses import dataclass

from stepsight.core.errors import UserError
from stepsight.core.reading import CAUSAL, Rereading, causal_attention, reading_note, sees_later_steps
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.validation import STRICT, Record, invalid

SERVED = "served"
"""The `dtype` of an evaluator behind a server, whose weights cannot be seen."""


def _thresholds(values: Any) -> Any:
    try:
        return Thresholds.from_dict(values) if isinstance(values, dict) else values
    except UserError as error:
        raise invalid(error.message, error.hint) from None


@dataclass(frozen=True, config=STRICT)
class EvaluatorSummary(Record):
    """The properties of an evaluator, recorded when it was last loaded so that they are known without its weights.
    `seconds` is the time that loading took."""

    name: str
    fingerprint: str
    format: str
    attention: str
    dtype: str
    outputs: Annotated[Outputs, Strict(False)]
    parameters: Annotated[int, Field(ge=0, lt=2**63)]
    context: Annotated[int, Field(gt=0, lt=2**63)] | None
    thresholds: Annotated[Thresholds, BeforeValidator(_thresholds)]
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0

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
