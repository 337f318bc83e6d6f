"""The network: a Transformers backbone and a linear head read at step ends."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModel, PretrainedConfig, PreTrainedModel

from core.label import Label

IGNORED = -100
"""The label value of a step end that is not supervised."""


class StepModel(nn.Module):
    """`p_i = softmax(W h_i)` with `h_i` the backbone's hidden state at the end of step `i` (paper, §3.3).

    The attention mask is the backbone's own: `config.is_causal` false lets every position see the whole input.
    """

    def __init__(self, backbone: PreTrainedModel, head: nn.Linear | None = None) -> None:
        super().__init__()
        self.model = backbone
        self.config: PretrainedConfig = backbone.config
        self.score = head or nn.Linear(self.config.hidden_size, len(Label), bias=False)

    @classmethod
    def from_config(cls, config: PretrainedConfig) -> "StepModel":
        """A model with random weights, drawn from torch's global generator."""
        backbone = AutoModel.from_config(config, attn_implementation="sdpa")  # type: ignore[no-untyped-call]
        model = cls(backbone)
        nn.init.normal_(model.score.weight, std=config.hidden_size**-0.5)
        return model

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        ends: Tensor,
        labels: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """`logits` of shape (batch, steps, 3) and, given `labels`, the mean cross-entropy over supervised ends.

        `input_ids` and `attention_mask` (1 on real tokens) have shape (batch, tokens), right-padded; `ends`
        (batch, steps) holds positions, any value where `labels` is `IGNORED`.
        """
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)[0]
        index = ends.clamp(min=0).unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
        logits = self.score(hidden.gather(1, index))
        if labels is None:
            return {"logits": logits}
        loss = functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        return {"loss": loss, "logits": logits}

    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs: dict[str, Any] | None = None) -> None:
        self.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs)  # type: ignore[no-untyped-call]
