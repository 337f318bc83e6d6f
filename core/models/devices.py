"""Checks that the devices of a placement exist and can compute in its data type."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch.nn import functional

from stepsight.core.errors import UserError
from stepsight.core.models.placement import DTYPES, SPREADS, STORED, Placement

_DISK = "disk"


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a data type, such as float32."""
    return str(dtype).removeprefix("torch.")


def torch_dtype(name: str) -> torch.dtype:
    """Return the PyTorch data type called `name`, which is one of `DTYPES`."""
    return getattr(torch, name)


def check_placement(place: Placement) -> Placement:
    """Return the placement with the device `auto` replaced by an actual device.

    Raises `UserError` if a device does not exist or cannot compute in the data type. No weights are read.
    """
    place = replace(place, device=_default_device() if place.device == "auto" else place.device)
    for device in _devices(place):
        _check_device(device, place.dtype)
    return place


def _devices(place: Placement) -> Iterator[str]:
    """Yield the devices that a placement names. If Accelerate may spread the weights over several, yield only the
    default device."""
    if place.device_map is None:
        yield place.device
    elif not isinstance(place.device_map, dict):
        yield _default_device() if place.device_map in SPREADS else place.device_map
    else:
        names = dict.fromkeys(place.device_map.values())
        yield from (f"cuda:{name}" if isinstance(name, int) else str(name) for name in names if name != _DISK)


def _default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _check_device(name: str, dtype: str) -> None:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"{name!r:.40} is not a device.", "Give cpu, cuda, cuda:N or auto.") from None
    if device.type == "cuda":
        _check_gpu(device)
    if dtype == STORED:
        return
    if dtype not in DTYPES or not _can_compute(device, torch_dtype(dtype)):
        raise UserError(f"the device {name!r} cannot compute in {dtype}.", f"Choose one of: {', '.join(DTYPES)}.")


def _check_gpu(device: torch.device) -> None:
    count = torch.cuda.device_count()
    if not torch.cuda.is_available() or not count:
        problem = "was built without CUDA" if torch.version.cuda is None else "finds no GPU"
        raise UserError(
            f"the device '{device}' is not available: PyTorch {problem}.", "Choose another device: cpu."
        )
    if device.index is not None and device.index >= count:
        gpus = "one GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
        raise UserError(
            f"the device '{device}' is not available: this machine has {gpus}.", "Choose another device."
        )


@torch.inference_mode()
def _can_compute(device: torch.device, dtype: torch.dtype) -> bool:
    """True if a device can run every backbone's operations in this data type. This is tested, since there is no
    list of supported operations."""
    try:
        states = torch.ones((1, 1, 2, 8), dtype=dtype, device=device)
        mixed = functional.scaled_dot_product_attention(states, states, states)
        probs = functional.softmax(functional.silu(functional.linear(mixed, states[0, 0])), -1)
        return bool(probs.float().isfinite().all())
    except (RuntimeError, AssertionError):
        return False
