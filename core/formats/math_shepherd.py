r"""Math-Shepherd-Mistral-7B-PRM: a language model that answers + or - after each step.

Its config.json is the same as any Mistral's (abbreviated):

    {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 4096, "vocab_size": 32000,
     "sliding_window": 4096, "tie_word_embeddings": false, …}

The hub repository, or a folder with exactly its name, is therefore known by that name, and any other folder by
`{"format": "math-shepherd"}` in stepsight.json. OpenRLHF's models on the same data have the same prompt without a
begin-of-sequence token, `{"template": {"bos": null}}`, because its trainer adds none. Tensors:
`model.embed_tokens.weight`, …, `model.norm.weight`, `lm_head.weight`.

The input is "PROBLEM Step 1: … ки\nStep 2: … ки". At each tag (the token ▁ки, 12902) the softmax over the logits of
▁+ (648) and ▁- (387) gives the probability that the step is valid. Only these two rows of the language-modelling
head are loaded. Tags are inserted as token ids at known positions, so letters in a step that spell the tag are not
mistaken for one.
"""

from collections.abc import Mapping
from typing import Any

from stepsight.core.formats.answers import answer_head, check_language_head, exact_id
from stepsight.core.formats.format import Loaded
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.placement import Placement

NAME = "math-shepherd"

_TAG, _WRONG, _RIGHT = "▁ки", "▁-", "▁+"


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    return {
        "prompt": "{problem} ",
        "separator": _TAG,
        "bos": checkpoint.special_token("bos_token") or "<s>",
        "step": "Step {number}: {step}",
        "between": "\n",
        "opening": False,
        "joined": True,
    }


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    check_language_head(checkpoint, "Math-Shepherd")
    return answer_head(checkpoint, place, answers(checkpoint))


def answers(checkpoint: Checkpoint) -> list[int]:
    """Return the ids of the tokens - (wrong) and + (right), in this order. Raises `UserError` if the tokenizer
    lacks a token or the weights have no row for it."""
    return [exact_id(checkpoint, token) for token in (_WRONG, _RIGHT)]
