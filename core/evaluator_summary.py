"""The description of an evaluator, available without its weights. Needs no PyTorch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from stepsight.core.scores import Outputs, Thresholds

SERVED = "served"
"""The `dtype` of an evaluator behind a server, whose weights cannot be seen."""


@dataclass(frozen=True)
class EvaluatorSummary:
    """An evaluator's fields that need no weights, from when it was last loaded, which took `seconds`."""

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
        """The inverse of `as_json`. Raises `TypeError`, `ValueError` or `KeyError` on anything else."""
        return cls(
            **dict(values)
            | {"outputs": Outputs(values["outputs"]), "thresholds": Thresholds(**values["thresholds"])}
        )
