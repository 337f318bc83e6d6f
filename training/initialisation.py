"""Mitchell's truncated-normal initialisation, which LLaDA has from OLMo.

`reset_parameters` of LLaDA's modelling code, with `init_fn: mitchell` in its configuration: every matrix is drawn
from a normal distribution of standard deviation `1 / sqrt(d)`, with `d` the width of its input, cut off at three
standard deviations; the two that write to the residual stream, of layer `l` counted from 1, from one of
`1 / sqrt(2 l d)`. The embedding's `d` is the width of the model. Norms are ones, and there are no biases.
"""

import math
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

_CUT = 3
_OUTPUTS = ("self_attn.o_proj", "mlp.down_proj")


def initialise(backbone: PreTrainedModel) -> None:
    """Draw the weights of a Llama anew, from torch's global generator."""
    llama: Any = backbone
    _draw(llama.embed_tokens.weight, backbone.config.hidden_size)
    for number, layer in enumerate(llama.layers, 1):
        for name, module in layer.named_modules():
            if isinstance(module, nn.Linear):
                _draw(module.weight, module.in_features, 2 * number if name in _OUTPUTS else 1)


def _draw(weight: torch.Tensor, width: int, share: int = 1) -> None:
    std = 1 / math.sqrt(width * share)
    nn.init.trunc_normal_(weight, std=std, a=-_CUT * std, b=_CUT * std)
