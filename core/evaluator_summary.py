"""A description of an evaluator that can be read without loading its weights or importing PyTorch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from stepsight.core.scores import Outputs, Thresholds

SERVED = "served"
"""The `dtype` of an evaluator behind a server, whose weights cannot be seen."""
CAUSAL = "causal"
"""The `attention` of an evaluator that reads from left to right, once."""


def sees_later_steps(attention: str) -> bool:
    """True if a later step can change the judgment of an earlier step, or if the evaluator's `attention` is
    unknown."""
    return attention != CAUSAL


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

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "EvaluatorSummary":
        """Rebuild a summary from the output of `as_json`. Raises `TypeError`, `ValueError` or `KeyError` if
        `values` has a different form."""
        return cls(
            **dict(values)
            | {"outputs": Outputs(values["outputs"]), "thresholds": Thresholds(**values["thresholds"])}
        )
