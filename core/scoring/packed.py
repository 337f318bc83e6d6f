"""The forward pass for decoders on a processor: several inputs side by side, without padding and on the weights as
they lie.

The projections run over the inputs one after the other, attention over each by itself, and what is behind the last
layer's keys and values at the tokens that are read alone. A batch is small enough for the caches to hold what lies
between two products.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from stepsight.core.arrays import Floats32
from stepsight.core.models.decoder import Decoder
from stepsight.core.models.model import StepModel
from stepsight.core.scoring.forward import Check, Input, chunks, go_on, padded_rows

ROWS = 16
"""As that of the other pass; here a row costs more than a kernel."""


class PackedForward:
    """Runs inputs of a step model whose backbone is a `Decoder`."""

    def __init__(self, model: StepModel, token_budget: int = 1024) -> None:
        self.model = model
        self.token_budget = token_budget

    @staticmethod
    def supports(model: StepModel) -> bool:
        """Whether the backbone is one."""
        return isinstance(model.model, Decoder)

    def run(self, inputs: Sequence[Input], check: Check = go_on) -> list[Floats32]:
        results: list[Floats32] = [np.zeros((0, 3), np.float32)] * len(inputs)
        for batch in chunks(list(enumerate(inputs)), self.token_budget, padded=False):
            check()
            for (number, _), probs in zip(batch, self._run_batch([item for _, item in batch]), strict=True):
                results[number] = probs
        return results

    @torch.inference_mode()
    def _run_batch(self, batch: list[Input]) -> list[Floats32]:
        decoder = self.model.model
        assert isinstance(decoder, Decoder)
        bounds = np.concatenate([[0], np.cumsum([item.length for item in batch])]).tolist()
        ids = padded_rows(np.concatenate([item.ids[: item.length] for item in batch]), ROWS)
        positions = padded_rows(np.concatenate([np.arange(item.length) for item in batch]), ROWS)
        reads = np.concatenate([item.reads + start for item, start in zip(batch, bounds, strict=False)])
        hidden = decoder.states(
            torch.from_numpy(ids),
            torch.from_numpy(positions),
            _Spans(decoder, batch, bounds),
            torch.from_numpy(reads),
        )
        rows: Floats32 = self.model.rows(hidden).numpy()
        return np.split(rows, np.cumsum([len(item.reads) for item in batch])[:-1])


class _Spans:
    """Attention of each input over itself."""

    def __init__(self, decoder: Decoder, batch: Sequence[Input], bounds: Sequence[int]) -> None:
        self._decoder, self._batch = decoder, batch
        self._spans = [slice(start, stop) for start, stop in pairwise(bounds)]

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, reads: Tensor | None) -> Tensor:
        attended = torch.zeros_like(query)
        start = 0
        for item, span in zip(self._batch, self._spans, strict=True):
            rows = span if reads is None else slice(start, start + len(item.reads))
            start = rows.stop
            own, keys, values = (part.transpose(0, 1)[None] for part in (query[rows], key[span], value[span]))
            attended[rows] = self._attention(own, keys, values, item, whole=reads is None)[0].transpose(0, 1)
        return attended

    def _attention(self, query: Tensor, key: Tensor, value: Tensor, item: Input, *, whole: bool) -> Tensor:
        decoder = self._decoder
        causal = decoder.config.is_causal
        if whole and not decoder.slides(item.length):
            return decoder.attention(query, key, value, None, is_causal=causal)
        if not causal:
            return decoder.attention(query, key, value, None, is_causal=False)
        queries = torch.arange(item.length) if whole else torch.from_numpy(item.reads)
        return decoder.attention(query, key, value, decoder.mask(queries, item.length), is_causal=False)
