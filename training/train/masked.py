"""Pretraining by masked-token diffusion, in which a backbone learns to predict hidden tokens.

The objective is LLaDA's (Nie et al. 2025, arXiv 2502.09992, algorithm 1). For each example, a rate `t` is chosen
uniformly at random, and each token is hidden with probability `t`. The loss is the sum of the cross-entropies of
the hidden tokens, each divided by `t`, over the number of all tokens. A backbone with a causal mask learns from the
same examples with the same tokens hidden, but predicts a hidden token only from the tokens before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.utils.data import Dataset

from stepsight.core.models.model import IGNORED, StepModel
from stepsight.training.data.examples import Example, padded_width
from stepsight.training.train.config import TrainConfig
from stepsight.training.train.trainer import StepTrainer

# The lowest rate, as in LLaDA's code: a rate near zero would give one token the weight of thousands.
_LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class MaskedExample:
    """An example with hidden tokens, as arrays of shape (tokens,).

    `ids` holds the tokens that the backbone sees, and `labels` the true tokens. `weights` holds the weight of each
    token in the loss, which is 0 unless the token is hidden.
    """

    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    weights: NDArray[np.float32]


class MaskedExamples(Dataset[MaskedExample]):
    """A data set of `examples` in which different tokens are hidden in each epoch.

    The choice of hidden tokens depends only on `seed`, the epoch and the index of the example. The data set ends
    with an example without a label, which pads the last optimiser step if it has too few traces.
    """

    def __init__(self, examples: Sequence[Example], mask: int, seed: int) -> None:
        self._examples, self._mask, self._seed = examples, mask, seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch. The loader calls this before each epoch."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._examples) + 1

    def __getitem__(self, place: int) -> MaskedExample:
        if place == len(self._examples):
            return MaskedExample(np.zeros(1, np.int64), np.full(1, IGNORED, np.int64), np.zeros(1, np.float32))
        ids = self._examples[place].ids
        rng = np.random.default_rng((self._seed, self._epoch, place))
        rate = _LEAST + (1 - _LEAST) * rng.random()
        hidden = rng.random(len(ids)) < rate
        return MaskedExample(np.where(hidden, self._mask, ids), ids, (hidden / rate).astype(np.float32))


def collate_masked(batch: Sequence[MaskedExample], limit: int | None = None) -> dict[str, Tensor]:
    """Pad a batch of examples on the right and return the tensors for `MaskedTokenModel.forward`.

    The tensors are as wide as those of `collate` for the same examples.
    """
    width = padded_width(max(len(example.ids) for example in batch), limit)
    ids = np.zeros((len(batch), width), np.int64)
    attention = np.zeros((len(batch), width), np.int64)
    labels = np.full((len(batch), width), IGNORED, np.int64)
    weights = np.zeros((len(batch), width), np.float32)
    for row, example in enumerate(batch):
        length = len(example.ids)
        ids[row, :length], attention[row, :length] = example.ids, 1
        labels[row, :length], weights[row, :length] = example.labels, example.weights
    arrays = {"input_ids": ids, "attention_mask": attention, "labels": labels, "weights": weights}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


class MaskedTokenModel(StepModel):
    """The backbone of a step model, with the transposed embedding as the head that predicts tokens.

    Pretraining therefore adds no weights, and it leaves the step head unchanged.
    """

    def __init__(self, model: StepModel) -> None:
        super().__init__(model.model, model.score)
        self.score.requires_grad_(False)

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        labels: Tensor,
        weights: Tensor,
        num_items_in_batch: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Return the weighted cross-entropy, averaged over all tokens whose label is not `IGNORED`.

        All tensors have shape (batch, tokens). `num_items_in_batch` is the number of these tokens in the whole
        optimiser step, as in `StepModel.forward`.
        """
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask, **self._options)[0]
        asked = weights > 0
        embedding: Any = self.model.get_input_embeddings()
        logits = functional.linear(hidden[asked], embedding.weight)
        losses = functional.cross_entropy(logits.float(), labels[asked], reduction="none") * weights[asked]
        count = (labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
        return {"loss": losses.sum() / count}


class MaskedTrainer(StepTrainer):
    """A `StepTrainer` that pretrains the backbone of a `MaskedTokenModel`."""

    def __init__(self, mask: int, *args: Any) -> None:
        self._mask = mask
        super().__init__(*args)

    def learning(self, config: TrainConfig, model: StepModel, examples: Sequence[Example]) -> tuple[Any, Any]:
        return MaskedExamples(examples, self._mask, config.seed), collate_masked
