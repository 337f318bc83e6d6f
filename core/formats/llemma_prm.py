r"""Easy-to-hard's process reward models on Llemma: a language model with a reward head of two repeated rows.

Its config.json is the same as any Llama's (abbreviated):

    {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "vocab_size": 32016, …}

A repository is therefore recognised by its name, or by `{"format": "llemma-prm"}` in stepsight.json. Tensors:
`model.embed_tokens.weight`, …, `lm_head.weight`, in pickle files. The two rows of the reward head are repeated over
the whole vocabulary, so the mean of all logits is the mean of these two, which is the reward. The repositories have
no tokenizer; `{"tokenizer": "EleutherAI/llemma_7b"}` names a folder or a hub id that has it.

The input is "# Question\n\nPROBLEM\n\n# Solution\n\nSTEP\n\nSTEP\n\n…" after the begin-of-sequence token. A line
break is a token, and a step is read at the first of the two line breaks that end it. The authors rank by the reward
itself, which was trained with binary cross-entropy. Here the sigmoid of the reward is the probability that the step
is valid, as in PRMBench. PRMBench also removes line breaks from steps; `{"template": {"lines": "spaces"}}` comes
close to that.
"""

from collections.abc import Mapping
from typing import Any

import torch

from stepsight.core.errors import UserError
from stepsight.core.formats.answers import check_language_head, head_name, head_rows
from stepsight.core.formats.format import Loaded
from stepsight.core.models.backbone import backbone_of, beside
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import SIGMOID, linear_head
from stepsight.core.models.placement import Placement

NAME = "llemma-prm"

_LINE_BREAK = "<0x0A>"


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    # Two line breaks in all: the tag, and the one before the next step.
    return {
        "prompt": "# Question\n\n{problem}\n\n# Solution\n\n",
        "separator": _LINE_BREAK,
        "bos": checkpoint.special_token("bos_token") or "<s>",
        "between": "\n",
        "opening": False,
        "joined": True,
    }


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    check_language_head(checkpoint, "Llemma's reward models")
    last = checkpoint.size("vocab_size") - 1
    first, second, *others = head_rows(checkpoint, [0, 1, 2, 3, last - 1, last])
    if not all(torch.equal(row, (first, second)[number % 2]) for number, row in enumerate(others)):
        raise UserError(
            f"{checkpoint.folder}: {head_name(checkpoint)} is not two rows repeated, as in Llemma's reward models.",
            "Name another format in stepsight.json.",
        )
    backbone = backbone_of(checkpoint, place)
    weight = ((first.float() + second.float()) / 2)[None]
    head = beside(backbone, linear_head(weight, rows=SIGMOID), place)
    return Loaded(backbone, head, SIGMOID)
