"""Language models with a value head: Skywork-o1-Open-PRM, 1.5B and 7B, and PQM.

config.json, abbreviated:

    {"architectures": ["Qwen2ForPrmModel"],
     "auto_map": {"AutoModel": "modeling_qwen2_rm.Qwen2ForPrmModel", …},
     "model_type": "qwen2", "hidden_size": 1536, "max_position_embeddings": 4096, "vocab_size": 151936, …}

Tensors: `model.embed_tokens.weight`, …, `model.norm.weight`, `lm_head.weight`, which is not used,
`v_head.summary.weight`, shape (1, hidden), and `v_head.summary.bias`: TRL's value head on the last hidden
state. PQM's have `pretrained_model.` before all but the head's, and neither config nor tokenizer: those are its
base's, with the token [PRM] added.

Skywork's input is the token that begins an input, the problem and a line break, all as one text, then each line of
the solution with a line break after it, turned into tokens by themselves; the sigmoid of the value at a line break
is the probability that what stands there is valid. The authors give a score for every line. A step of several lines
is read at its last, whose value is that of the state after it; search-and-learn too takes the last value of a
solution. `{"template": {"lines": "spaces", "strip": "steps"}}` writes a step on one line, as compute-optimal-tts
does.

PQM's value is trained by ranking and has no bounds. Its sigmoid is shown, which gives the same ranking and with
which the authors weight votes. A threshold of 0.5 follows from their loss, in which a state before any step has the
value 0, but they name none: `stepsight calibrate` chooses one. The prompt is that of their evaluation; they train
with `[INST] {problem} [/INST]\\n`.
"""

from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.formats.format import Loaded
from stepsight.core.models.backbone import backbone_of, main_device
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.devices import torch_dtype
from stepsight.core.models.model import SIGMOID, linear_head
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.template import Lines, Separator

NAME = "value-head"

_CLASS = "Qwen2ForPrmModel"
_WEIGHT, _BIAS = "v_head.summary.weight", "v_head.summary.bias"


def recognises(checkpoint: Checkpoint) -> bool:
    return _CLASS in checkpoint.architectures


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    bos = checkpoint.special_token("bos_token")
    own = checkpoint.card.get("template")
    if bos is None and not (isinstance(own, dict) and "bos" in own):
        raise UserError(
            f"{checkpoint.folder}: the tokenizer names no token that begins an input, which Skywork's prompt has.",
            'Copy tokenizer_config.json too, or name it in stepsight.json: {"template": {"bos": "<|endoftext|>"}}.',
        )
    return {
        "prompt": "{problem}\n",
        "separator": "\n",
        "separator_is": Separator.TEXT,
        "bos": bos,
        "opening": False,
        "lines": Lines.SEPARATORS,
    }


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    width = checkpoint.size("hidden_size")
    weight = checkpoint.tensor(_WEIGHT, (1, width))
    bias = checkpoint.tensor(_BIAS, (1,))
    backbone = backbone_of(checkpoint, place)
    head = linear_head(weight, bias, SIGMOID).to(main_device(backbone), torch_dtype(place.dtype))
    return Loaded(backbone, head, SIGMOID)
