"""Where an evaluator's weights go, and in which type."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import torch
from torch.nn import functional
from transformers import PretrainedConfig, PreTrainedModel

from stepsight.core.errors import UserError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""The types that weights can be given, by name; scores are float32 in any case."""

SPREADS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Accelerate's ways of spreading layers."""

_DISK = "disk"


@dataclass(frozen=True)
class Placement:
    """`device` is cpu, cuda, cuda:N, or auto: a GPU where there is one.

    `device_map` is Accelerate's and wins over `device`: one of `SPREADS`, which share the layers out over the GPUs
    there are, and over memory and disk where those do not hold them; a device; or a device for each module.
    """

    device: str = "cpu"
    dtype: torch.dtype = torch.float32
    device_map: str | dict[str, Any] | None = None

    def checked(self) -> "Placement":
        """The same with `auto` as a device. Raises `UserError` where a device is not there, cannot compute in the
        type, or Accelerate is missing: no weight has been read then."""
        place = replace(self, device=_found() if self.device == "auto" else self.device)
        if place.device_map is not None and find_spec("accelerate") is None:
            raise UserError(
                "a device map needs Accelerate, which is not installed.", "Install it, or give one device."
            )
        for device in place._devices():
            _check_device(device, place.dtype)
        return place

    def check_split(self, kind: Any, config: PretrainedConfig) -> None:
        """Raises `UserError` where the network that `kind`, one of Transformers' Auto classes, has for the config
        cannot be taken apart as `device_map` asks for. No weight is read."""
        if self.device_map is None or (isinstance(self.device_map, str) and self.device_map not in SPREADS):
            return
        with torch.device("meta"):
            model: PreTrainedModel = kind.from_config(config)
        if isinstance(self.device_map, str) and not model._no_split_modules:
            # Accelerate would cut through the middle of layers.
            raise UserError(
                f"a backbone of type {config.model_type!r} cannot be spread over several devices: Transformers "
                "does not say which of its parts belong together.",
                "Give one device.",
            )
        if isinstance(self.device_map, dict):
            from accelerate.utils import check_device_map

            try:
                check_device_map(model, self.device_map)
            except ValueError as error:
                raise UserError(f"the device map does not fit: {' '.join(str(error).split())}") from None

    def _devices(self) -> Iterator[str]:
        """Those that are named; of the ones that Accelerate chooses from, one."""
        if self.device_map is None:
            yield self.device
        elif not isinstance(self.device_map, dict):
            yield _found() if self.device_map in SPREADS else self.device_map
        else:
            named = dict.fromkeys(self.device_map.values())
            yield from (f"cuda:{one}" if isinstance(one, int) else str(one) for one in named if one != _DISK)


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def typed_name(name: str, dtype: torch.dtype) -> str:
    """What an evaluator goes by whose weights have that type: its scores are others than those in float32."""
    return name if dtype == torch.float32 else f"{name} ({dtype_name(dtype)})"


def _found() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _check_device(name: str, dtype: torch.dtype) -> None:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"there is no kind of device {name!r:.40}.", "Give cpu, cuda, cuda:N or auto.") from None
    if device.type == "cuda":
        _check_gpu(device)
    if not _computes(device, dtype):
        raise UserError(
            f"the device {name!r} cannot compute in {dtype_name(dtype)}.", f"Choose one of: {', '.join(DTYPES)}."
        )


def _check_gpu(device: torch.device) -> None:
    count = torch.cuda.device_count()
    if not torch.cuda.is_available() or not count:
        built = "was built without CUDA" if torch.version.cuda is None else "finds no GPU"
        raise UserError(f"the device '{device}' is not there: PyTorch {built}.", "Choose another device: cpu.")
    if device.index is not None and device.index >= count:
        there = "one, cuda:0" if count == 1 else f"{count}, cuda:0 to cuda:{count - 1}"
        raise UserError(f"the device '{device}' is not there: of GPUs there is {there}.", "Choose another device.")


@torch.inference_mode()
def _computes(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether a device has what every backbone needs in a type: tried out, since no list says it."""
    try:
        states = torch.ones((1, 1, 2, 8), dtype=dtype, device=device)
        mixed = functional.scaled_dot_product_attention(states, states, states)
        found = functional.softmax(functional.silu(functional.linear(mixed, states[0, 0])), -1)
        return dtype.is_floating_point and bool(found.float().isfinite().all())
    except (RuntimeError, AssertionError):
        return False
