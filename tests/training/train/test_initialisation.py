import math

import pytest
import torch

from stepsight.core.models.model import StepModel
from stepsight.training.train.config import Backbone
from stepsight.training.train.init import initialise, llama_config

BACKBONE = Backbone(hidden=256, layers=3, heads=4, mlp=512)


def weights(seed=0):
    torch.manual_seed(seed)
    model = StepModel.from_config(llama_config(BACKBONE, 1000, "causal"))
    initialise(model.model)
    return dict(model.model.named_parameters())


# A normal distribution cut off at three standard deviations has 0.9866 of the deviation of the whole one.
CUT = 0.9866


@pytest.mark.parametrize(
    ("name", "variance"),
    [
        ("embed_tokens.weight", 1 / 256),
        ("layers.0.self_attn.q_proj.weight", 1 / 256),
        ("layers.2.self_attn.v_proj.weight", 1 / 256),
        ("layers.2.mlp.gate_proj.weight", 1 / 256),
        ("layers.2.mlp.up_proj.weight", 1 / 256),
        # Layers count from 1: 2 * 1 * 256, and 2 * 3 * 512, since this one reads the feed-forward layer.
        ("layers.0.self_attn.o_proj.weight", 1 / 512),
        ("layers.0.mlp.down_proj.weight", 1 / 1024),
        ("layers.2.self_attn.o_proj.weight", 1 / 1536),
        ("layers.2.mlp.down_proj.weight", 1 / 3072),
    ],
)
def test_each_matrix_has_its_deviation_and_nothing_beyond_three(name, variance):
    weight, std = weights()[name].detach(), math.sqrt(variance)
    # 65,536 draws or more: the deviation is known to about 0.3 %.
    assert float(weight.std()) == pytest.approx(CUT * std, rel=0.015)
    assert float(weight.abs().max()) <= 3 * std
    assert float(weight.abs().max()) > 2.9 * std


def test_norms_stay_ones_and_the_draw_follows_the_generator():
    first, again, other = weights(), weights(), weights(1)
    assert torch.equal(first["norm.weight"], torch.ones(256))
    assert all(torch.equal(tensor, again[name]) for name, tensor in first.items())
    assert not torch.equal(first["embed_tokens.weight"], other["embed_tokens.weight"])
