import numpy as np
import pytest
import torch

from stepsight.core.models.model import THREE_WAY, VALIDITY, linear_head, outputs_of
from stepsight.core.scores import Outputs

STATES = torch.tensor([[1.0, 2.0], [-1.0, 0.5]])


def test_rows_are_put_in_the_order_of_the_labels():
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    head = linear_head(weight, torch.tensor([0.0, 10.0, 20.0]), (2, 0, 1))
    # neg is class 2: 1 + 2 + 20; neu class 0: 1 + 0; pos class 1: 2 + 10.
    assert head(STATES)[0].tolist() == [23.0, 1.0, 12.0]
    assert linear_head(weight).bias is None
    assert linear_head(weight)(STATES)[0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("bias", [None, torch.tensor([0.5, -0.5])])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_two_classes_leave_nothing_for_redundant(bias, dtype):
    weight = torch.tensor([[1.0, 1.0], [2.0, 0.0]]).to(dtype)
    bias = bias if bias is None else bias.to(dtype)
    probs = linear_head(weight, bias, VALIDITY)(STATES.to(dtype)).float().softmax(-1).detach().numpy()
    shift = 0.0 if bias is None else 1.0
    # The logits are 3 and 2, then -0.5 and -2; with the bias wrong gains 1 on right.
    validity = [1 / (1 + np.exp(3 - 2 + shift)), 1 / (1 + np.exp(-0.5 + 2 + shift))]
    np.testing.assert_allclose(probs[:, 2], validity, rtol=1e-6)
    np.testing.assert_allclose(probs[:, 0] + probs[:, 2], 1, rtol=1e-6)
    assert (probs[:, 1] == 0).all()


def test_rows_of_a_head_give_its_outputs():
    assert outputs_of(THREE_WAY) == outputs_of((2, 0, 1)) == Outputs.THREE_WAY
    assert outputs_of(VALIDITY) == outputs_of((1, None, 0)) == Outputs.VALIDITY
