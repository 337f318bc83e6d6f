"""The forward pass for any backbone and device: length-sorted padded batches under a token budget."""

from collections.abc import Sequence

import numpy as np
import torch

from stepsight.core.arrays import Floats32
from stepsight.core.models.backbone import main_device
from stepsight.core.models.model import StepModel
from stepsight.core.scoring.inputs import Input, chunks


class PaddedForward:
    """Batches through the model as Transformers runs it.

    Attention masks come from lengths, never from token ids: LLaDA's pad token is also its end token. Packing
    several inputs into one row instead would leak between them when attention is bidirectional.
    """

    def __init__(self, model: StepModel, token_budget: int = 16_384) -> None:
        self.model = model
        self.token_budget = token_budget
        self.device = main_device(model)

    def run(self, inputs: Sequence[Input]) -> list[Floats32]:
        results: list[Floats32] = [np.zeros((0, 3), np.float32)] * len(inputs)
        by_length = sorted(enumerate(inputs), key=lambda pair: pair[1].length)
        for batch in chunks(by_length, self.token_budget, padded=True):
            for (number, _), probs in zip(batch, self._run_batch([item for _, item in batch]), strict=True):
                results[number] = probs
        return results

    @torch.inference_mode()
    def _run_batch(self, batch: list[Input]) -> list[Floats32]:
        width = max(item.length for item in batch)
        reads = max(len(item.reads) for item in batch)
        ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros((len(batch), width), np.int64)
        ends = np.zeros((len(batch), reads), np.int64)
        for row, item in enumerate(batch):
            ids[row, : item.length] = item.ids[: item.length]
            mask[row, : item.length] = 1
            ends[row, : len(item.reads)] = item.reads
        tensors = (torch.from_numpy(array).to(self.device) for array in (ids, mask, ends))
        probs = self.model(*tensors)["logits"].float().softmax(-1).cpu().numpy()
        return [probs[row, : len(item.reads)] for row, item in enumerate(batch)]
