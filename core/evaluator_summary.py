"""What is known of an evaluator while its weights are not in memory. Needs no PyTorch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from stepsight.core.scores import Outputs, Thresholds

SERVED = "served"
"""Stands for the type of weights that a server has."""


@dataclass(frozen=True)
class EvaluatorSummary:
    """The fields of an evaluator that need no weights, as they were when it was last loaded, which took this many
    `seconds`."""

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
