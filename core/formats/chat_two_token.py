"""RLHFlow's Llama3.1-8B-PRM: a chat in which each user turn is a step and the assistant answers + or -.

Its config.json is the same as any Llama's (abbreviated):

    {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "vocab_size": 128256, …}

The repository is therefore recognised by its name, or by `{"format": "chat-two-token"}` in stepsight.json. Tensors:
`model.embed_tokens.weight`, …, `lm_head.weight`, of which only the rows of + and - are kept.

The first user turn is the problem, a space and the first step, and each later turn is one step. All of them are
stripped of surrounding white space. The authors query the model once per step about the last turn only, with all
earlier turns answered by +. A single pass over the chat with + everywhere, read at the positions just before each
answer, gives the same result. The texts between the turns come from the folder's own chat template. If the template
inserts a date, it is always the default date of Llama 3.1's template.

With `{"softmax": "vocabulary"}` in stepsight.json the softmax is over the whole vocabulary, as in PRMBench.
`{"tokens": {"right": …, "wrong": …}}` names other answer tokens.
"""

from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.formats.answers import answer_head, answer_ids, check_language_head, softmax_of
from stepsight.core.formats.chat import rendered_chat
from stepsight.core.formats.format import Loaded
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.template import Separator, Strip

NAME = "chat-two-token"

_ANSWERS = {"right": "+", "wrong": "-"}
# Texts that occur in no chat template.
_PROBLEM, _STEP, _ANSWER = "⟦problem⟧", "⟦step⟧", "⟦answer⟧"


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    steps = [f"{_PROBLEM} {_STEP}", _STEP, _STEP]
    before, *others = rendered_chat(checkpoint, [(step, _ANSWER) for step in steps]).split(_STEP)
    turns = [text.split(_ANSWER) for text in others]
    prompt, separated, _ = before.partition(f"{_PROBLEM} ")
    if not separated or len(turns) != 3 or any(len(turn) != 2 for turn in turns) or turns[0] != turns[1]:
        raise UserError(
            f"{checkpoint.folder}: its chat template does not write one turn as the other.",
            "Copy tokenizer_config.json again, or name the template in stepsight.json.",
        )
    closing, opening = turns[0]
    right = {**_ANSWERS, **checkpoint.card.get("tokens", {})}["right"]
    return {
        "prompt": f"{prompt}{{problem}} ",
        "separator": closing,
        "separator_is": Separator.TEXT,
        "bos": None,
        "between": f"{right}{opening}",
        "opening": False,
        "joined": True,
        "strip": Strip.ALL,
    }


def answers(checkpoint: Checkpoint) -> list[int]:
    """Return the ids of the tokens for wrong and right, by default those of - and +."""
    return answer_ids(checkpoint, _ANSWERS)


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    check_language_head(checkpoint, "answers in a chat")
    ids = answers(checkpoint)
    loaded = answer_head(checkpoint, place, ids)
    return Loaded(loaded.backbone, loaded.head, loaded.rows, (*ids, str(softmax_of(checkpoint))))
