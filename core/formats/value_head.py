r"""Language models with a value head: Skywork-o1-Open-PRM, 1.5B and 7B, and PQM.

config.json, abbreviated:

    {"architectures": ["Qwen2ForPrmModel"],
     "auto_map": {"AutoModel": "modeling_qwen2_rm.Qwen2ForPrmModel", …},
     "model_type": "qwen2", "hidden_size": 1536, "max_position_embeddings": 4096, "vocab_size": 151936, …}

Tensors: `model.embed_tokens.weight`, …, `model.norm.weight`, `lm_head.weight` (not used), `v_head.summary.weight`,
shape (1, hidden), and `v_head.summary.bias`: TRL's value head on the last hidden state. In PQM all tensors except
those of the head begin with `pretrained_model.`. PQM has neither config nor tokenizer, so those of its base model
are used, with the token [PRM] added.

Skywork's input consists of the begin-of-sequence token, the problem and a line break, tokenized as one text, and
then each line of the solution followed by a line break, each tokenized separately. The sigmoid of the value at a
line break is the probability that the line is valid. The authors give a score for every line. A step of several
lines is read at its last line, whose value describes the state after the step; search-and-learn likewise uses the
last value of a solution. With `{"template": {"lines": "spaces", "strip": "steps"}}` a step is written on one line,
as in compute-optimal-tts.

PQM's value is trained by ranking and is unbounded. Its sigmoid is shown, which gives the same ranking and is what
the authors use to weight votes. A threshold of 0.5 follows from their loss, in which a state before any step has
the value 0, but they do not name one: use `stepsight calibrate` to choose it. The prompt is the one they use in
evaluation; they train with `[INST] {problem} [/INST]\n`.
"""

from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.formats.format import Loaded
from stepsight.core.models.backbone import backbone_of, beside
from stepsight.core.models.checkpoint import Checkpoint
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
    head = beside(backbone, linear_head(weight, bias, SIGMOID), place)
    return Loaded(backbone, head, SIGMOID)
