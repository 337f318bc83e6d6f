"""CPU kernels for matrix products, each optionally fused with a second operation such as a sum.

They use oneDNN if PyTorch includes it. oneDNN runs the second operation in the same pass, and on AMD processors it
is faster than PyTorch's own float32 product (2.3 times on Zen 5, with the same rounding). Its operations are
emitted by `torch.compile` and are not a public interface, so only this module uses them. They are tested before
use. If they are missing or give wrong numbers, PyTorch's own operations are used instead.

Weights have the shape (outputs, inputs). They are multiplied without repacking: with hundreds of rows this is as
fast as with a packed copy, and there is no room for two copies of a large model. `packed` copies a weight into
oneDNN's layout.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

# The number of rows for which packed weights are laid out.
_ROWS = 512
# oneDNN's query, and the instruction sets of which the processor must have at least one, because oneDNN also
# emulates bfloat16 in float32.
_NATIVE = {
    "bfloat16": ("_is_mkldnn_bf16_supported", ("avx512_bf16", "amx_bf16", "avx10_2", "bf16")),
    "float16": ("_is_mkldnn_fp16_supported", ("avx512_fp16", "amx_fp16", "avx10_2", "fp16")),
}


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `x W' + b`. `x` has the shape (rows, inputs)."""
    return _run(x, weight, bias, "none") if _is_usable(x.dtype) else functional.linear(x, weight, bias)


def product_swish(x: Tensor, weight: Tensor) -> Tensor:
    """Return `silu(x W')`."""
    if _is_usable(x.dtype):
        return _run(x, weight, None, "swish")
    return functional.silu(functional.linear(x, weight), inplace=True)


def product_times(x: Tensor, weight: Tensor, other: Tensor) -> Tensor:
    """Return `x W' * other`."""
    return _join(x, weight, other, "mul") if _is_usable(x.dtype) else functional.linear(x, weight).mul_(other)


def product_plus(x: Tensor, weight: Tensor, other: Tensor) -> Tensor:
    """Return `x W' + other`."""
    return _join(x, weight, other, "add") if _is_usable(x.dtype) else functional.linear(x, weight).add_(other)


def packed(weight: Tensor) -> Tensor:
    """Return a copy of a float32 weight in oneDNN's layout, which only the functions above accept. If oneDNN cannot
    be used, return the weight itself."""
    return _pack(weight) if _is_usable(weight.dtype) else weight


@cache
def is_native(dtype: str) -> bool:
    """True if PyTorch and oneDNN report that the processor has instructions for products in this data type."""
    if dtype == "float32":
        return True
    query, instructions = _NATIVE[dtype]
    try:
        is_computed = bool(getattr(_onednn(), query)())
        capabilities = torch.cpu.get_capabilities()
    except (AttributeError, RuntimeError):
        return False
    return is_computed and any(bool(capabilities.get(name)) for name in instructions)


def _onednn() -> Any:
    return torch.ops.mkldnn


def _pack(weight: Tensor) -> Tensor:
    return _onednn()._reorder_linear_weight(weight.detach().contiguous(), _ROWS)


def _run(x: Tensor, weight: Tensor, bias: Tensor | None, operation: str) -> Tensor:
    return _onednn()._linear_pointwise(x, weight, bias, operation, [], "")


def _join(x: Tensor, weight: Tensor, other: Tensor, operation: str) -> Tensor:
    return _onednn()._linear_pointwise.binary(x, other, weight, None, operation)


@cache
@torch.inference_mode()
def _is_usable(dtype: torch.dtype) -> bool:
    """True if oneDNN's operations exist and give correct results in this data type."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    x = torch.linspace(-1, 1, 2 * 64).view(2, -1).to(dtype)
    weight = torch.linspace(-1, 1, 96 * 64).view(96, -1).cos().to(dtype)
    bias = torch.linspace(-1, 1, 96).to(dtype)
    expected = functional.linear(x.float(), weight.float())
    try:
        results = {
            "bias": (_run(x, weight, bias, "none"), expected + bias.float()),
            "swish": (_run(x, weight, None, "swish"), functional.silu(expected)),
            "mul": (_join(x, weight, expected.to(dtype), "mul"), expected * expected),
            "add": (_join(x, weight, expected.to(dtype), "add"), 2 * expected),
        }
        # Only small models are packed, and computed in float32.
        if dtype == torch.float32:
            results["packed"] = _join(x, _pack(weight), expected, "add"), 2 * expected
    except (RuntimeError, AttributeError):
        return False
    tolerance = 1e-4 if dtype == torch.float32 else 3e-2
    return all(
        bool((left - right).abs().max() <= tolerance * right.abs().max()) for left, right in results.values()
    )
