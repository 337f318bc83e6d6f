"""Language models that answer each step with one of two tokens, read at a tag: Math-psa, VersaPRM, ER-PRM, and
models of OpenRLHF's trainer of process reward models.

config.json is that of any language model, abbreviated:

    {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "vocab_size": 128256, …}

so stepsight.json describes the model, as here for Math-psa:

    {"format": "two-token", "tokens": {"right": " +", "wrong": " -"},
     "template": {"prompt": "{problem} ", "step": "Step {number}: {step}", "separator": " \\n\\n\\n\\n\\n",
      "between": " "}}

A public repository known by its name needs none. Tensors: `model.embed_tokens.weight`, …, `lm_head.weight`, of
which two rows are kept; many are LoRA adapters of such a model.

`separator` is the tag's text; at its last token the softmax over the logits of the two tokens gives the probability
that the step is valid. `tokens` are texts, of which the last token counts, or ids. `{"softmax": "vocabulary"}`
takes the softmax over the whole vocabulary, one of OpenRLHF's two ways. The tokenizer decides whether a special
token begins the input, as in the authors' code.
"""

from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.formats.answers import answer_head, answer_ids, check_language_head, softmax_of
from stepsight.core.formats.format import Loaded
from stepsight.core.hubs.layout import CARD
from stepsight.core.models.checkpoint import Checkpoint, first_token
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.template import Separator

NAME = "two-token"


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    own = checkpoint.card.get("template")
    missing = [key for key in ("prompt", "separator") if not isinstance(own, dict) or key not in own]
    if missing:
        raise UserError(
            f"{checkpoint.folder}/{CARD}: the template names no {' and no '.join(missing)}.",
            'Name the text before the steps and the tag, such as {"template": {"prompt": "{problem} ", '
            '"separator": " ки"}}.',
        )
    return {
        "separator_is": Separator.TEXT,
        "bos": first_token(checkpoint.tokenizer),
        "opening": False,
        "joined": True,
    }


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    check_language_head(checkpoint, "two tokens")
    ids = answer_ids(checkpoint)
    loaded = answer_head(checkpoint, place, ids)
    return Loaded(loaded.backbone, loaded.head, loaded.rows, (*ids, str(softmax_of(checkpoint))))
