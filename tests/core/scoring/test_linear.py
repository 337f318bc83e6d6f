import pytest
import torch

from stepsight.core.scoring.cpu import FixedLinear
from stepsight.core.scoring.forward import ROWS

OUTPUTS, INPUTS = 48, 32


@pytest.fixture(params=[True, False], ids=["oneDNN", "plain"])
def packed(request, monkeypatch):
    """With oneDNN's operations, and on a PyTorch without them."""
    if not request.param:
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    elif not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch has no oneDNN")
    return request.param


@pytest.fixture
def weight():
    return torch.randn(OUTPUTS, INPUTS, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("rows", [1, 7, ROWS, 3 * ROWS])
def test_products_agree_with_double_precision(packed, weight, rows):
    draw = torch.Generator().manual_seed(rows)
    x, other = torch.randn(rows, INPUTS, generator=draw), torch.randn(rows, OUTPUTS, generator=draw)
    before, other_before = x.clone(), other.clone()
    linear = FixedLinear(weight)
    exact = x.double() @ weight.double().T
    expected = {
        "product": (linear(x), exact),
        "swish": (linear.swish(x), exact * torch.sigmoid(exact)),
        "times": (linear.times(x, other), exact * other.double()),
        "plus": (linear.plus(x, other), exact + other.double()),
    }
    for name, (found, wanted) in expected.items():
        # Sums of 32 products of about 1 each: float32 keeps some 1e-6 of them.
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5, msg=name)
    assert torch.equal(x, before)
    assert torch.equal(other, other_before)


def test_a_small_product_by_hand(packed):
    linear = FixedLinear(torch.tensor([[1.0, 2.0], [0.0, -1.0]]))
    x = torch.tensor([[3.0, 4.0]])
    # (1·3 + 2·4, 0·3 − 1·4)
    assert linear(x).tolist() == [[11.0, -4.0]]
    assert linear.plus(x, torch.tensor([[1.0, 1.0]])).tolist() == [[12.0, -3.0]]
    assert linear.times(x, torch.tensor([[2.0, 0.5]])).tolist() == [[22.0, -2.0]]


def test_it_runs_without_gradients_and_the_weight_stays_as_it_is(packed, weight):
    parameter = torch.nn.Parameter(weight.clone())
    linear = FixedLinear(parameter * 2)
    result = linear(torch.ones(4, INPUTS))
    assert not result.requires_grad
    torch.testing.assert_close(result, 2 * weight.sum(1).expand(4, -1), rtol=1e-5, atol=1e-5)
    assert torch.equal(parameter, weight)


def test_operations_that_give_something_else_are_not_trusted(monkeypatch, weight):
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch has no oneDNN")
    # As if a later PyTorch packed the weight in another way.
    broken = torch.ops.mkldnn._reorder_linear_weight(weight * 1.01, 64)
    monkeypatch.setattr(torch.ops.mkldnn, "_reorder_linear_weight", lambda *_: broken)
    x = torch.ones(3, INPUTS)
    torch.testing.assert_close(FixedLinear(weight)(x), torch.nn.functional.linear(x, weight))
