"""ActPRM and ActPRM-X: a causal Qwen2 with an ensemble of small heads, loaded without their remote code.

config.json, abbreviated:

    {"architectures": ["Qwen2ForEnsemblePRM"], "model_type": "qwen2", "hidden_size": 3584, "num_ensemble": 8,
     "rr_token": "<extra_0>", "max_position_embeddings": 4096, "vocab_size": 152064, …}

Tensors: `model.embed_tokens.weight`, …, `model.norm.weight`; `score.model.nn1`, `score.model.nn2` and
`score.model.nn_out`, each with `.weight`, shape (heads, inputs, outputs), and `.bias`, shape (heads, outputs). The
first two layers are each followed by a ReLU. All three are computed in float32, whatever the type of the backbone.
`score.reg_model` is needed only in training and is ignored.

The input is the chat template with a system line, and `rr_token` after each step. Steps are stripped of surrounding
white space. At that token, the sigmoids of the heads are averaged to give the probability that the step is valid.
Their standard deviation, which the authors use as a measure of uncertainty, becomes the `spread` of the scores.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepsight.core.errors import UserError
from stepsight.core.formats.format import Loaded
from stepsight.core.models.backbone import backbone_of, main_device
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import VALIDITY, Ensemble
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.template import Separator, Strip

NAME = "ensemble-prm"

_CLASS = "Qwen2ForEnsemblePRM"
_LAYERS = ("nn1", "nn2", "nn_out")
# The separator if the config has no rr_token, and if that is null.
_TOKEN, _TEXT = "<extra_0>", " \n\n"
_PROMPT = (
    "<|im_start|>system\nYou are a helpful and harmless assistant. You should think step-by-step and put your "
    "final answer within \\boxed{}.<|im_end|>\n<|im_start|>user\n{problem}<|im_end|>\n<|im_start|>assistant\n"
)


class EnsembleHead(Ensemble):
    """A head whose logits have the softmax `(1 - v, 0, v)`, where `v` is the mean sigmoid of an ensemble of heads.

    `layers` holds a pair of weights and biases for each layer, of shapes (heads, inputs, outputs) and (heads,
    outputs). The last layer has one output.
    """

    def __init__(self, layers: list[tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.weights = nn.ParameterList([weight.float() for weight, _ in layers])
        self.biases = nn.ParameterList([bias.float() for _, bias in layers])

    def values(self, hidden: Tensor) -> Tensor:
        """Return the logit of each head, with shape (heads, …), for hidden states of shape (…, hidden)."""
        states = hidden.float().flatten(0, -2)[None]
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            states = torch.matmul(states, weight) + bias[:, None]
            states = functional.relu(states) if place < len(self.weights) - 1 else states
        return states.view(-1, *hidden.shape[:-1])

    def forward(self, hidden: Tensor) -> Tensor:
        values = self.values(hidden)
        # The logarithms of the sums over heads: softmax removes the logarithm of their number.
        right = functional.logsigmoid(values).logsumexp(0)
        wrong = functional.logsigmoid(-values).logsumexp(0)
        return torch.stack([wrong, torch.full_like(right, -torch.inf), right], dim=-1)

    def spread(self, hidden: Tensor) -> Tensor:
        """Return the standard deviation of the heads' sigmoids, or 0 for a single head. As in ActPRM's training,
        the denominator is the number of heads minus one."""
        values = torch.sigmoid(self.values(hidden))
        return values.std(0) if len(values) > 1 else torch.zeros_like(values[0])


def recognises(checkpoint: Checkpoint) -> bool:
    return _CLASS in checkpoint.architectures


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    token = checkpoint.config.get("rr_token", _TOKEN)
    token = _TEXT if token is None else str(token)
    known = checkpoint.vocabulary.token_id(token) is not None
    return {
        "prompt": _PROMPT,
        "separator": token,
        "separator_is": Separator.TOKEN if known or token == _TOKEN else Separator.TEXT,
        "opening": False,
        "joined": True,
        "strip": Strip.STEPS,
    }


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    if not recognises(checkpoint):
        raise UserError(
            f"{checkpoint.folder}/config.json: architectures is {checkpoint.config.get('architectures')!r:.60}, "
            f"expected {_CLASS}.",
            "Name another format in stepsight.json.",
        )
    heads, width = checkpoint.size("num_ensemble"), checkpoint.size("hidden_size")
    layers: list[tuple[Tensor, Tensor]] = []
    inner = _inner_width(checkpoint)
    for name, inputs, outputs in zip(_LAYERS, (width, inner, inner), (inner, inner, 1), strict=True):
        weight = checkpoint.tensor(f"score.model.{name}.weight", (heads, inputs, outputs))
        layers.append((weight, checkpoint.tensor(f"score.model.{name}.bias", (heads, outputs))))
    backbone = backbone_of(checkpoint, place)
    return Loaded(backbone, EnsembleHead(layers).to(main_device(backbone)), VALIDITY)


def _inner_width(checkpoint: Checkpoint) -> int:
    """Return the width of the inner layers, read from the shapes of the weights because the config does not state
    it. The default is 128 if the weights are not available."""
    name = f"score.model.{_LAYERS[0]}.bias"
    shape = checkpoint.shape(name)
    return shape[-1] if shape else 128
