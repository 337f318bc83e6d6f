"""Universal-PRM: a causal Qwen2 with one output at the end of the input, run once for each step.

Its config.json is the same as any Qwen2's (abbreviated). We found no source that names its class, and its remote
code is not run:

    {"architectures": ["…"], "model_type": "qwen2", "hidden_size": 3584, "vocab_size": 152064, …}

A repository is therefore recognised by its name, or by `{"format": "prefix-value"}` in stepsight.json. Tensors:
`model.embed_tokens.weight`, …, in pickle files. No source names the head's tensors either. They are read from
`score.weight`, as in Transformers' sequence classifiers, or from `score.0` and `score.2` with a ReLU between them,
as in Qwen's own reward models. A checkpoint that has neither is refused.

The input for step i is the chat template with a system line. The user gives the problem and says that there is no
reference answer. The steps up to i follow, with two line breaks after each, and then the token that ends a turn.
The sigmoid of the output at that token is the probability that the step is valid. The authors also give a reference
answer where they have one, which changes the scores; here steps are judged without it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import nn

from stepsight.core.errors import UserError
from stepsight.core.formats.format import Loaded
from stepsight.core.models.backbone import backbone_of, beside
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import SIGMOID, linear_head
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.encoding import CallEncoder, Mark

NAME = "prefix-value"

_PROMPT = (
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{problem}\n\n###\n\n"
    "The reference answer is: There is no reference answer for this question.<|im_end|>\n<|im_start|>assistant\n"
)


class PrefixEncoder(CallEncoder):
    """An encoder that makes one input per step, containing all steps up to that one. The input is read at the
    separator at its end."""

    def questions(self, steps: Sequence[str]) -> Iterable[Sequence[int | str | Mark]]:
        yield ["".join(f"{step}{self.template.between}" for step in steps), *self.closing, Mark.END]


ENCODER = PrefixEncoder


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    return {
        "prompt": _PROMPT,
        "separator": checkpoint.special_token("eos_token") or "<|im_end|>",
        "between": "\n\n",
        "opening": False,
    }


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    head = _head(checkpoint)
    backbone = backbone_of(checkpoint, place)
    return Loaded(backbone, beside(backbone, head, place), SIGMOID)


def _head(checkpoint: Checkpoint) -> nn.Module:
    width = checkpoint.size("hidden_size")

    def bias(name: str, size: int) -> Any:
        return checkpoint.tensor(name, (size,)) if name in checkpoint.files else None

    if "score.weight" in checkpoint.files:
        return linear_head(checkpoint.tensor("score.weight", (1, width)), bias("score.bias", 1), SIGMOID)
    if "score.0.weight" not in checkpoint.files:
        others = sorted(name for name in checkpoint.files if not name.startswith("model."))
        raise UserError(
            f"{checkpoint.folder}: there is no head named score; beside the network there is "
            f"{', '.join(others)[:100] or 'nothing'}.",
            "Rename its tensors to score.weight, or to score.0 and score.2 where it has two layers.",
        )
    first = nn.Linear(width, width, bias="score.0.bias" in checkpoint.files)
    first.weight = nn.Parameter(checkpoint.tensor("score.0.weight", (width, width)))
    if first.bias is not None:
        first.bias = nn.Parameter(checkpoint.tensor("score.0.bias", (width,)))
    second = linear_head(checkpoint.tensor("score.2.weight", (1, width)), bias("score.2.bias", 1), SIGMOID)
    return nn.Sequential(first, nn.ReLU(), second)
