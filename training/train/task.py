"""What the training of an evaluator learns: the loss of the labels at the ends of steps."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PretrainedConfig

from stepsight.core.models.backbone import context_of
from stepsight.core.models.model import StepModel
from stepsight.core.trace import Label
from stepsight.training.data.examples import IGNORED, SOFT, Example, collate
from stepsight.training.runs.loop import Batch, Task
from stepsight.training.train.config import TrainConfig

# Up to this width, plain products are faster on a processor than fused attention, whose backward pass is slow
# there; their memory grows with the square of the width.
_NARROW = 256

# An example without a label, for an empty part of a step.
_EMPTY = Example(np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, IGNORED, np.int64))


def step_task(config: TrainConfig, model: StepModel, trained: nn.Module, examples: Sequence[Example]) -> Task:
    """Return the task of training `model` on `examples`. `trained` is the model itself, or the model with adapters.

    The loss of an optimiser step is the mean cross-entropy over its labelled step ends or, if the loss is per
    example, the mean of the examples' means.
    """

    def loss(network: nn.Module, batch: Batch) -> Tensor:
        if batch["input_ids"].device.type == "cpu":
            attention = "eager" if batch["input_ids"].shape[1] <= _NARROW else "sdpa"
            if model.model.config._attn_implementation != attention:
                model.model.set_attn_implementation(attention)
        logits = network(batch["input_ids"], batch["attention_mask"], batch["ends"])
        losses = step_losses(logits.float(), batch["labels"], batch.get("shares"))
        if config.loss == "example":
            losses = losses.sum(1) / (batch["labels"] != IGNORED).sum(1).clamp(min=1)
        return losses.sum()

    def count(batch: Batch) -> Tensor:
        labelled = batch["labels"] != IGNORED
        return labelled.any(1).sum() if config.loss == "example" else labelled.sum()

    return Task(
        model=trained,
        examples=examples,
        lengths=[len(example.ids) for example in examples],
        empty=_EMPTY,
        collate=partial(collate, limit=context_of(model.model)),
        loss=loss,
        count=count,
        order=config.order,
    )


def step_losses(logits: Tensor, labels: Tensor, shares: Tensor | None = None) -> Tensor:
    """Return the loss at each step end, with the shape (batch, steps): the cross-entropy of its label or, where the
    label is `SOFT`, that of validity against its share; 0 where it is `IGNORED`. `logits` has the shape (batch,
    steps, 3), `labels` and `shares` (batch, steps)."""
    hard = labels.masked_fill(labels == SOFT, IGNORED)
    losses = functional.cross_entropy(logits.transpose(1, 2), hard, ignore_index=IGNORED, reduction="none")
    return losses if shares is None else torch.where(labels == SOFT, _soft_losses(logits, shares), losses)


def _soft_losses(logits: Tensor, shares: Tensor) -> Tensor:
    """Return the cross-entropy of validity against a share `s`: `-s log v - (1 - s) log(1 - v)`, with `v = p_neu +
    p_pos`.

    A share says nothing about redundancy, so the odds between neu and pos are left alone: the gradients only move
    both up or down in proportion to their probabilities.
    """
    logs = logits.log_softmax(-1)
    valid = logs[..., [Label.NEU, Label.POS]].logsumexp(-1)
    return -(shares * valid + (1 - shares) * logs[..., Label.NEG])


def assembled(config: PretrainedConfig, weights: Mapping[str, Tensor]) -> StepModel:
    """Build a model from its weights. The head gets a bias if the weights include one. If `weights` is empty, the
    model's tensors are left without data (on the meta device)."""
    with torch.device("meta"):
        whole = StepModel.from_config(config)
        if "score.bias" in weights:
            whole.score = nn.Linear(int(config.hidden_size), len(Label))
    if weights:
        whole.load_state_dict(weights, assign=True)
    return whole
