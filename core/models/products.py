"""Matrix products on weights as they lie, each followed by one more operation where asked.

Through oneDNN where PyTorch has it: it runs the operation that follows in the same pass, and on AMD processors it
takes a faster path than PyTorch's own float32 product. The weights, of shape (outputs, inputs), are neither copied
nor packed: with some hundreds of rows the product is as fast, and a large model has no room for two copies.
"""

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x W' + b` for `x` of shape (rows, inputs)."""
    return _run(x, weight, bias, "none") if _is_usable(x.dtype) else functional.linear(x, weight, bias)


def product_swish(x: Tensor, weight: Tensor) -> Tensor:
    """`silu(x W')`."""
    if _is_usable(x.dtype):
        return _run(x, weight, None, "swish")
    return functional.silu(functional.linear(x, weight), inplace=True)


def product_times(x: Tensor, weight: Tensor, other: Tensor) -> Tensor:
    """`x W' * other`."""
    return _join(x, weight, other, "mul") if _is_usable(x.dtype) else functional.linear(x, weight).mul_(other)


def product_plus(x: Tensor, weight: Tensor, other: Tensor) -> Tensor:
    """`x W' + other`."""
    return _join(x, weight, other, "add") if _is_usable(x.dtype) else functional.linear(x, weight).add_(other)


def _run(x: Tensor, weight: Tensor, bias: Tensor | None, operation: str) -> Tensor:
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, operation, [], "")
    return result


def _join(x: Tensor, weight: Tensor, other: Tensor, operation: str) -> Tensor:
    result: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, other, weight, None, operation)
    return result


@cache
@torch.inference_mode()
def _is_usable(dtype: torch.dtype) -> bool:
    """Whether these operations, which `torch.compile` emits and which are no public interface, are there and give
    what they should."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    x = torch.linspace(-1, 1, 2 * 64).view(2, -1).to(dtype)
    weight = torch.linspace(-1, 1, 96 * 64).view(96, -1).cos().to(dtype)
    bias = torch.linspace(-1, 1, 96).to(dtype)
    expected = functional.linear(x.float(), weight.float())
    try:
        found = {
            "bias": (_run(x, weight, bias, "none"), expected + bias.float()),
            "swish": (_run(x, weight, None, "swish"), functional.silu(expected)),
            "mul": (_join(x, weight, expected.to(dtype), "mul"), expected * expected),
            "add": (_join(x, weight, expected.to(dtype), "add"), 2 * expected),
        }
    except (RuntimeError, AttributeError):
        return False
    within = 1e-4 if dtype == torch.float32 else 3e-2
    return all(bool((one - right).abs().max() <= within * right.abs().max()) for one, right in found.values())
