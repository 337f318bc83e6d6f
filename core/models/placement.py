"""The placement of an evaluator's weights: on which devices, and in which data type.

By default the weights keep their stored type if the processor computes it well. Commands, pages, jobs and memory
estimates all use this module, so that they agree. It needs PyTorch only if it has to query the processor.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepsight.core.evaluator_summary import Reading, split_reading

DTYPES = ("float32", "bfloat16", "float16")
"""The types that weights can be given; scores are float32 in any case."""

STORED = "stored"
"""Stands for the type in which an evaluator's weights are stored, if the device computes it well."""

SPREADS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Accelerate's ways of spreading layers."""

DTYPE_NAMES = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16"}
"""Our names for the data types in safetensors headers."""


@dataclass(frozen=True)
class Placement:
    """The devices and the data type of an evaluator's weights.

    `device` is cpu, cuda, cuda:N, or auto, which selects a GPU if there is one. `dtype` is one of `DTYPES`, or
    `STORED` to keep the stored type if the device computes it well.

    `device_map` has the same meaning as in Accelerate and overrides `device`. It is one of `SPREADS`, which
    distribute the layers over the GPUs and, if these are too small, over memory and disk; or a single device; or a
    device for each module.
    """

    device: str = "cpu"
    dtype: str = STORED
    device_map: str | dict[str, Any] | None = None

    @property
    def on_processor(self) -> bool:
        """True if the whole evaluator is on the CPU."""
        return self.device == "cpu" and self.device_map is None


def typed_name(spec: str, dtype: str) -> str:
    """Return the name of the evaluator that `spec` names, with the data type of its weights. The type is not added
    if it is float32. It is part of the name because scores in other types differ."""
    name, reading = split_reading(spec)
    return spec if dtype == "float32" else f"{name} ({dtype}){reading}"


def untyped_name(name: str, dtype: str, reading: Reading) -> str:
    """Return the name, which ends with `reading`, without the data type that `typed_name` appended."""
    typed = name.removesuffix(str(reading))
    return f"{typed if dtype == 'float32' else typed.removesuffix(f' ({dtype})')}{reading}"


def computed_dtype(stored: str, place: Placement) -> str:
    """Return the default data type for computing with weights that are stored in the type `stored`. This is
    `stored` itself if it is one of `DTYPES` and the device computes it well, and otherwise float32."""
    if stored not in DTYPES or stored == "float32" or not place.on_processor:
        return stored if stored in DTYPES else "float32"
    # These imports load PyTorch.
    from stepsight.core.models import kernels

    return stored if kernels.is_native(stored) else "float32"


def chosen_dtype(config: Mapping[str, Any], counts: Counter[str]) -> str:
    """Return the data type of weights of which `counts` elements have each type.

    This is the type that the config names if at least one tensor has it. Otherwise it is the type of the largest
    number of elements.
    """
    named = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    return named if named in counts or not counts else counts.most_common(1)[0][0]


def expected_dtype(stored: str, place: Placement) -> str:
    """Return the data type in which weights that are not yet on this machine would be computed.

    `stored` is the type in which the weights are stored. If it is "", bfloat16, the most common type, is assumed.
    """
    return computed_dtype(stored or "bfloat16", place) if place.dtype == STORED else place.dtype
