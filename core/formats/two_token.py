r"""Language models that answer each step with one of two tokens, read at a tag.

Examples are Math-psa, VersaPRM, ER-PRM, and models trained as process reward models with OpenRLHF. Their
config.json is the same as any language model's (abbreviated):

    {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "vocab_size": 128256, …}

The model is therefore described by stepsight.json, as in this example for Math-psa:

    {"format": "two-token", "tokens": {"right": " +", "wrong": " -"},
     "template": {"prompt": "{problem} ", "step": "Step {number}: {step}", "separator": " \n\n\n\n\n",
      "between": " "}}

A public repository that is recognised by its name needs no such file. Tensors: `model.embed_tokens.weight`, …,
`lm_head.weight`, of which two rows are kept. Many checkpoints are LoRA adapters of such a model.

`separator` is the text of the tag. At its last token, the softmax over the logits of the two answer tokens gives
the probability that the step is valid. `tokens` are ids, or texts whose last token is used. With `{"softmax":
"vocabulary"}` the softmax is over the whole vocabulary, which is one of OpenRLHF's two methods. As in the authors'
code, the tokenizer decides whether the input begins with a special token.
"""

from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.formats.answers import answer_head, answer_ids, check_language_head, softmax_of
from stepsight.core.formats.format import Loaded
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.template import Separator

NAME = "two-token"


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    own = checkpoint.card.get("template")
    missing = [key for key in ("prompt", "separator") if not isinstance(own, dict) or key not in own]
    if missing:
        raise UserError(
            f"{checkpoint.folder}/stepsight.json: the template names no {' and no '.join(missing)}.",
            'Name the text before the steps and the tag, such as {"template": {"prompt": "{problem} ", '
            '"separator": " ки"}}.',
        )
    return {
        "separator_is": Separator.TEXT,
        "bos": checkpoint.vocabulary.first_token(),
        "opening": False,
        "joined": True,
    }


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    check_language_head(checkpoint, "two tokens")
    ids = answer_ids(checkpoint)
    loaded = answer_head(checkpoint, place, ids)
    return Loaded(loaded.backbone, loaded.head, loaded.rows, (*ids, str(softmax_of(checkpoint))))
