"""ReasonEval's checkpoints: ReasonEval-7B on WizardMath-V1.1 or Mistral, and ReasonEval-34B on Llemma.

The model is a causal backbone with a linear head of three classes in the order neg, neu, pos. config.json,
abbreviated:

    {"architectures": ["ReasonEval_7B"], "model_type": "mistral", "hidden_size": 4096, "score_dimension": 3,
     "use_bias": false, "sliding_window": 4096, "vocab_size": 32000, …}
    {"architectures": ["ReasonEval_34B"], "model_type": "llama", "hidden_size": 8192, "score_dim": 3,
     "bias": false, "rope_theta": 1000000, …}

Tensors: `model.embed_tokens.weight`, `model.layers.0.self_attn.q_proj.weight`, …, `model.norm.weight`,
`score_head.weight` (and `score_head.bias` if the config says so).

Prompt and steps are separated by the tokenizer's pad token. It marks where scores are read, at the last token of
each step, and is removed before the forward pass. In the 7B script, the input also begins with a pad token. The
script removes this token as well and puts it back without moving the marks, so that each step is read at its
second-to-last token. The published scores were computed this way, and it is the default for checkpoints whose
config has `score_dimension`. With `{"template": {"read": "last"}}` in stepsight.json, it is read at its last token.
"""

from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.formats.format import Loaded
from stepsight.core.models.backbone import backbone_of, beside
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import linear_head
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.template import Read
from stepsight.core.trace import Label

NAME = "reasoneval"

# The config's keys of the number of classes and of the bias, for 7B and for 34B.
_SEVEN, _THIRTY_FOUR = "score_dimension", "score_dim"
_BIAS = {_SEVEN: "use_bias", _THIRTY_FOUR: "bias"}


def recognises(checkpoint: Checkpoint) -> bool:
    return any(key in checkpoint.config for key in _BIAS)


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    separator = checkpoint.special_token("pad_token")
    own = checkpoint.card.get("template")
    if separator is None and not (isinstance(own, dict) and "separator" in own):
        raise UserError(
            f"{checkpoint.folder}: the tokenizer has no pad token, which closes the steps of ReasonEval.",
            "Copy tokenizer_config.json and special_tokens_map.json too.",
        )
    return {
        "separator": separator or "",
        "bos": checkpoint.special_token("bos_token") or "<s>",
        "joined": True,
        "read": Read.SECOND_TO_LAST if _SEVEN in checkpoint.config else Read.LAST,
    }


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    key = next((key for key in _BIAS if key in checkpoint.config), None)
    if key is None:
        raise UserError(
            f"{checkpoint.folder}/config.json: neither {_SEVEN!r} nor {_THIRTY_FOUR!r}: not ReasonEval's.",
            "Name another format in stepsight.json.",
        )
    if checkpoint.size(key) != len(Label):
        raise UserError(f"{checkpoint.folder}/config.json: {key} is {checkpoint.config[key]}, expected 3.")
    shape = (len(Label), checkpoint.size("hidden_size"))
    weight = checkpoint.tensor("score_head.weight", shape)
    bias = checkpoint.tensor("score_head.bias", shape[:1]) if checkpoint.config.get(_BIAS[key]) else None
    backbone = backbone_of(checkpoint, place)
    return Loaded(backbone, beside(backbone, linear_head(weight, bias), place))
