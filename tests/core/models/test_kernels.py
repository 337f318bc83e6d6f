"""Products through oneDNN's private operations, and through PyTorch's public ones if those are hidden."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models import kernels
from stepsight.core.models.kernels import (
    packed,
    product,
    product_plus,
    product_swish,
    product_times,
)
from stepsight.core.scoring.scorer import Scorer
from tests.checkpoints import write_evaluator, write_token_classifier
from tests.core.formats.by_hand import TRACES

OUTPUTS, INPUTS = 48, 32


def hide(monkeypatch):
    """A PyTorch without any of oneDNN's private operations."""
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace())
    kernels._is_usable.cache_clear()
    assert not kernels._is_usable(torch.float32)


@pytest.fixture(autouse=True)
def tried_again():
    yield
    kernels._is_usable.cache_clear()


@pytest.fixture(params=["oneDNN", "oneDNN, packed", "hidden"])
def laid(request, monkeypatch):
    """A weight as it is prepared for multiplication."""
    if request.param == "hidden":
        hide(monkeypatch)
    elif not kernels._is_usable(torch.float32):
        pytest.skip("this PyTorch has no oneDNN")
    return (lambda weight: weight) if request.param == "oneDNN" else packed


@pytest.fixture
def weight():
    return torch.randn(OUTPUTS, INPUTS, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("rows", [1, 7, 192])
def test_products_agree_with_double_precision(laid, weight, rows):
    draw = torch.Generator().manual_seed(rows)
    x, other = torch.randn(rows, INPUTS, generator=draw), torch.randn(rows, OUTPUTS, generator=draw)
    before, other_before = x.clone(), other.clone()
    one, bias = laid(weight), torch.linspace(-1, 1, OUTPUTS)
    exact = x.double() @ weight.double().T
    expected = {
        "product": (product(x, one), exact),
        "bias": (product(x, one, bias), exact + bias.double()),
        "swish": (product_swish(x, one), exact * torch.sigmoid(exact)),
        "times": (product_times(x, one, other), exact * other.double()),
        "plus": (product_plus(x, one, other), exact + other.double()),
    }
    for name, (found, wanted) in expected.items():
        # Sums of 32 products of about 1 each: float32 keeps some 1e-6 of them.
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5, msg=name)
    assert torch.equal(x, before)
    assert torch.equal(other, other_before)


def test_a_packed_weight_is_a_copy_without_gradients(weight):
    parameter = torch.nn.Parameter(weight.clone())
    result = product(torch.ones(4, INPUTS), packed(parameter * 2))
    assert not result.requires_grad
    torch.testing.assert_close(result, 2 * weight.sum(1).expand(4, -1), rtol=1e-5, atol=1e-5)
    assert torch.equal(parameter, weight)


def test_operations_that_give_something_else_are_not_trusted(monkeypatch, weight):
    if not kernels._is_usable(torch.float32):
        pytest.skip("this PyTorch has no oneDNN")
    # As if a later PyTorch packed a weight in another way.
    broken, pack = 1.01, torch.ops.mkldnn._reorder_linear_weight
    monkeypatch.setattr(
        torch.ops.mkldnn, "_reorder_linear_weight", lambda weight, rows: pack(weight * broken, rows)
    )
    kernels._is_usable.cache_clear()
    x = torch.ones(3, INPUTS)
    torch.testing.assert_close(product(x, packed(weight)), torch.nn.functional.linear(x, weight))


@pytest.mark.parametrize("network", ["small", "decoder", "bfloat16"])
def test_without_private_operations_the_scores_are_the_same(tmp_path, monkeypatch, network):
    if network == "small":
        write_evaluator(tmp_path / "it")
    else:
        write_token_classifier(tmp_path / "it", "qwen2")

    def scores():
        evaluator = load_evaluator(tmp_path / "it", dtype="bfloat16" if network == "bfloat16" else "float32")
        return np.concatenate([one.hindsight.packed for one in Scorer(evaluator).score(TRACES, "hindsight")])

    with_them = scores()
    hide(monkeypatch)
    # Each rounding of bfloat16 is off by 2 ** -9 of a number, and some tens of them add up.
    np.testing.assert_allclose(scores(), with_them, atol=0.1 if network == "bfloat16" else 1e-5)


def test_a_processor_is_asked_for_the_types_of_its_products(monkeypatch):
    is_native = kernels.is_native
    is_native.cache_clear()
    answers = {"avx512_bf16": True, "amx_bf16": False}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: answers)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True, raising=False)
    assert is_native("bfloat16")
    # oneDNN computes in it by way of float32, too.
    is_native.cache_clear()
    answers["avx512_bf16"] = False
    assert not is_native("bfloat16")
    is_native.cache_clear()
    answers["avx512_bf16"] = True
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False, raising=False)
    assert not is_native("bfloat16")
    assert is_native("float32")
    is_native.cache_clear()
