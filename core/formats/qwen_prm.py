"""Qwen2.5-Math-PRM, 7B and 72B, and Qwen2.5-Math-7B-PRM800K, loaded without their remote code.

The model is a causal Qwen2 with a head of two layers and two classes. config.json, abbreviated:

    {"architectures": ["Qwen2ForProcessRewardModel"],
     "auto_map": {"AutoModel": "modeling_qwen2_rm.Qwen2ForProcessRewardModel", …},
     "model_type": "qwen2", "hidden_size": 3584, "max_position_embeddings": 4096, "vocab_size": 152064, …}

Tensors: `model.embed_tokens.weight`, …, `model.norm.weight`, `score.0.weight`, `score.0.bias`, `score.2.weight`,
`score.2.bias`, with a ReLU between the two layers.

The input is the chat template with a system line, and `<extra_0>` (151651) after each step. At that token, the
softmax probability of the second class is the probability that the step is valid.
"""

from collections.abc import Mapping
from typing import Any

from torch import nn

from stepsight.core.errors import UserError
from stepsight.core.formats.format import Loaded
from stepsight.core.models.backbone import backbone_of, beside
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import VALIDITY, linear_head
from stepsight.core.models.placement import Placement

NAME = "qwen-prm"

_CLASS = "Qwen2ForProcessRewardModel"
_PROMPT = (
    "<|im_start|>system\nPlease reason step by step, and put your final answer within \\boxed{}.<|im_end|>\n"
    "<|im_start|>user\n{problem}<|im_end|>\n<|im_start|>assistant\n"
)


def recognises(checkpoint: Checkpoint) -> bool:
    return _CLASS in checkpoint.architectures


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    return {"prompt": _PROMPT, "separator": "<extra_0>", "opening": False, "joined": True}


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    if not recognises(checkpoint):
        raise UserError(
            f"{checkpoint.folder}/config.json: architectures is {checkpoint.config.get('architectures')!r:.60}, "
            f"expected {_CLASS} for Qwen2.5-Math-PRM.",
            "Name another format in stepsight.json.",
        )
    width = checkpoint.size("hidden_size")
    first = nn.Linear(width, width)
    first.weight = nn.Parameter(checkpoint.tensor("score.0.weight", (width, width)))
    first.bias = nn.Parameter(checkpoint.tensor("score.0.bias", (width,)))
    second = linear_head(
        checkpoint.tensor("score.2.weight", (2, width)), checkpoint.tensor("score.2.bias", (2,)), VALIDITY
    )
    backbone = backbone_of(checkpoint, place)
    head = beside(backbone, nn.Sequential(first, nn.ReLU(), second), place)
    return Loaded(backbone, head, VALIDITY)
