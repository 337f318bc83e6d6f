"""The placement of an evaluator's weights: on which devices, and in which type. Needs no PyTorch."""

from dataclasses import dataclass
from typing import Any

DTYPES = ("float32", "bfloat16", "float16")
"""The types that weights can be given; scores are float32 in any case."""

STORED = "stored"
"""Stands for the type that an evaluator's weights are stored in, where the device computes it well (see
`core.models.dtypes`)."""

SPREADS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Accelerate's ways of spreading layers."""


@dataclass(frozen=True)
class Placement:
    """`device` is cpu, cuda, cuda:N, or auto: a GPU where there is one. `dtype` is one of `DTYPES`, or `STORED`.

    `device_map` is Accelerate's and wins over `device`: one of `SPREADS`, which share the layers out over the GPUs
    there are, and over memory and disk where those do not hold them; a device; or a device for each module.
    """

    device: str = "cpu"
    dtype: str = STORED
    device_map: str | dict[str, Any] | None = None

    @property
    def on_processor(self) -> bool:
        """Whether the whole evaluator is on the processor."""
        return self.device == "cpu" and self.device_map is None


def typed_name(name: str, dtype: str) -> str:
    """The name of an evaluator with its weights in that type: its scores differ from those in float32."""
    return name if dtype == "float32" else f"{name} ({dtype})"
