"""The step model: a Transformers backbone with a score head that is applied at the ends of steps."""

import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from stepsight.core.models.backbone import main_device
from stepsight.core.scores import Outputs
from stepsight.core.trace import Label

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel


class Ensemble(nn.Module, ABC):
    """A score head with several members. Their disagreement measures its uncertainty."""

    @abstractmethod
    def spread(self, hidden: Tensor) -> Tensor:
        """Return the standard deviation of the members' validities. `hidden` has the shape (…, hidden), and the
        result the shape (…)."""


class StepModel(nn.Module):
    """The model `p_i = softmax(W h_i)` (paper, §3.3).

    `h_i` is the backbone's hidden state at the end of step `i`. The attention mask is the backbone's own: if
    `config.is_causal` is False, every position sees the whole input.
    """

    def __init__(self, backbone: "PreTrainedModel", head: nn.Module | None = None) -> None:
        """Create a model from a backbone and a head.

        `head` maps the hidden states of the last layer to the logits of neg, neu and pos, with shape (…, 3). If it
        is None, a new linear head is created.
        """
        super().__init__()
        self.model = backbone
        self.config: PretrainedConfig = backbone.config
        self.score: nn.Module = head or nn.Linear(self.config.hidden_size, len(Label), bias=False)
        # Encoders keep no cache, and some do not take the argument.
        cached = "use_cache" in inspect.signature(backbone.forward).parameters
        self._options: dict[str, Any] = {"use_cache": False} if cached else {}

    @classmethod
    def from_config(cls, config: "PretrainedConfig") -> "StepModel":
        """Create a model with randomly initialised weights, using torch's global generator."""
        # It takes seconds to import, and scoring works without it.
        from transformers import AutoModel

        backbone = AutoModel.from_config(config, attn_implementation="sdpa")  # type: ignore[no-untyped-call]
        return cls.with_new_head(backbone)

    @classmethod
    def with_new_head(cls, backbone: "PreTrainedModel") -> "StepModel":
        """Create a model with a randomly initialised head, using torch's global generator."""
        width = int(backbone.config.hidden_size)
        head = nn.Linear(width, len(Label), bias=False)
        nn.init.normal_(head.weight, std=width**-0.5)
        return cls(backbone, head)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, ends: Tensor) -> Tensor:
        """Return the logits at the positions `ends`, with shape (batch, steps, 3).

        `input_ids` and `attention_mask` (1 on real tokens) have the shape (batch, tokens) and are right-padded.
        `ends` has the shape (batch, steps) and holds the positions of step ends.
        """
        hidden = self.states(input_ids=input_ids, attention_mask=attention_mask, **self._options)
        return self.logits(hidden, ends)

    def states(self, **inputs: Any) -> Tensor:
        """Return the states that the head reads, of shape (batch, tokens, hidden). The arguments are passed to the
        backbone."""
        last: Tensor = self.model(**inputs)[0]
        return last

    def logits(self, hidden: Tensor, ends: Tensor) -> Tensor:
        """Apply the head to the hidden states at the positions `ends`.

        `hidden` has the shape (batch, tokens, hidden), `ends` the shape (batch, steps), and the result (batch,
        steps, 3).
        """
        logits: Tensor = self.score(self._at(hidden, ends))
        return logits

    def _at(self, hidden: Tensor, ends: Tensor) -> Tensor:
        index = ends.clamp(min=0).unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
        # The layers of a large model may lie on several devices.
        return hidden.gather(1, index.to(hidden.device)).to(main_device(self.score, hidden.device))

    def judge(self, input_ids: Tensor, attention_mask: Tensor, ends: Tensor) -> Tensor:
        """Like `forward`, but return the probabilities that `rows` computes at the positions `ends`. The result has
        the shape (batch, steps, columns)."""
        hidden = self.states(input_ids=input_ids, attention_mask=attention_mask, **self._options)
        return self.rows_at(hidden, ends)

    def rows_at(self, hidden: Tensor, ends: Tensor) -> Tensor:
        """Apply `rows` to the hidden states at `ends`. `hidden` has the shape (batch, tokens, hidden), and `ends`
        the shape (batch, steps)."""
        return self.rows(self._at(hidden, ends))

    def rows(self, hidden: Tensor) -> Tensor:
        """Return the probabilities of neg, neu and pos as float32, with shape (…, 3).

        `hidden` holds hidden states of shape (…, hidden). If the head is an ensemble, its spread is added as a
        fourth column.
        """
        probs: Tensor = self.score(hidden).float().softmax(-1)
        if not isinstance(self.score, Ensemble):
            return probs
        return torch.cat([probs, self.score.spread(hidden).float().unsqueeze(-1)], dim=-1)

    def activation_checkpointing_enable(self, **options: Any) -> None:
        """Make the backbone's layers store only their input and recompute everything else in the backward pass."""
        self.model.activation_checkpointing_enable(**options)


Rows = tuple[int | None, int | None, int | None]
"""The classes of a checkpoint's head that stand for neg, neu and pos, such as (2, 1, 0) if pos is its
first; None if no class does."""

THREE_WAY: Rows = (0, 1, 2)
VALIDITY: Rows = (0, None, 1)
"""The rows of a head of two classes, wrong and right."""
SIGMOID: Rows = (None, None, 0)
"""The rows of a head of one class, whose sigmoid is the probability of right."""


def outputs_of(rows: Rows) -> Outputs:
    """Return the kind of outputs of an evaluator whose head has these rows: validity if no row belongs to neu, else
    three-way."""
    return Outputs.VALIDITY if rows[Label.NEU] is None else Outputs.THREE_WAY


def linear_head(weight: Tensor, bias: Tensor | None = None, rows: Rows = THREE_WAY) -> nn.Linear:
    """Create a head with three logits from a checkpoint's `bias` and its `weight` of shape (classes, hidden).

    `rows` gives the row of `weight` for each label, or None. A label without a row has the logit -inf and so the
    probability 0. With two classes the probabilities are `(1 - v, 0, v)`, where `v` comes from the softmax over the
    two. With one class, `rows` is `SIGMOID`: the logit of neg is 0, so that `v` is the sigmoid of the logit of pos.
    """
    complete = None not in rows
    head = nn.Linear(weight.shape[1], len(Label), bias=bias is not None or not complete, dtype=weight.dtype)
    new = weight.new_zeros(len(Label), weight.shape[1])
    shift = weight.new_zeros(len(Label))
    for label, row in enumerate(rows):
        if row is None:
            shift[label] = 0.0 if rows == SIGMOID and label == Label.NEG else -float("inf")
            continue
        new[label] = weight[row]
        if bias is not None:
            shift[label] = bias[row]
    head.weight = nn.Parameter(new)
    if head.bias is not None:
        head.bias = nn.Parameter(shift)
    return head
