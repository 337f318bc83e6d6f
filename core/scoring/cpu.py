"""The fast forward pass for Llama layers on a CPU: several prefixes side by side without padding.

It computes what Transformers' `LlamaModel` computes, on the same weights, with less work:

- the first layer's queries, keys and values depend on token and position alone, so all prefixes of a trace
  share them;
- the last layer's queries, output projection and MLP run at step ends only, nothing else is read;
- no padding: the projections run over the concatenated prefixes, attention over each prefix by itself;
- single-threaded workers side by side, which keep both the matrix units and the caches busier than one matrix
  multiplication split between cores;
- what is between two attentions runs over some hundred rows of a long input at a time, in memory that is used
  again.

Norm weights are folded into the matrices that follow them, and rotary pairs are laid side by side so that the
rotation is one complex multiplication.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from threading import Barrier
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stepsight.core.arrays import Floats32
from stepsight.core.models.kernels import packed, product, product_plus, product_swish, product_times
from stepsight.core.models.model import StepModel
from stepsight.core.scoring.forward import Check, Input, Numbered, chunks, go_on, padded_rows

# Rows of an input over the budget that are computed at a time between two attentions. Prefixes of 2,000 tokens as a
# whole took 300 MB, with 200 between two passes; in blocks, which give the same bits, 120 and 100.
_BLOCK = 512


_MAX_WORKERS = 8
# The pass keeps its own copy of the weights: of a large model there is to be one alone.
_LARGEST = 100_000_000


@dataclass(frozen=True)
class _Layer:
    projections: tuple[Tensor, ...]
    """Queries, keys and values in one; in a last layer that is not the first, queries, then keys and values."""
    out: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor


class CpuForward:
    """Runs inputs of a Llama-family step model on the CPU in float32."""

    def __init__(
        self, model: StepModel, token_budget: int = 1024, workers: int | None = None, cores: int | None = None
    ) -> None:
        """Inputs are cut into the batches that a machine of so many `cores` would have, those of this one where
        None: another cut gives another last bit."""
        config = model.config
        self.heads: int = config.num_attention_heads
        self.kv_heads: int = config.num_key_value_heads
        self.head_dim: int = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.eps: float = config.rms_norm_eps
        self.causal = bool(getattr(config, "is_causal", True))
        self.token_budget = token_budget
        backbone: Any = model.model
        self.embedding: Tensor = backbone.embed_tokens.weight.detach()
        last = len(backbone.layers) - 1
        self.layers = [self._fold(layer, trimmed=0 < i == last) for i, layer in enumerate(backbone.layers)]
        self.norm: Tensor = backbone.norm.weight.detach()
        head: Any = model.score
        self.head: Tensor = head.weight.detach()
        self.shift: Tensor | None = None if head.bias is None else head.bias.detach()
        self.mixture = model.mixture
        self.rotation = self._rotation(config.max_position_embeddings, config.rope_parameters["rope_theta"])
        own = torch.get_num_threads()
        self.workers = workers or min(own, _MAX_WORKERS)
        self.shares = self.workers if cores is None else min(cores, _MAX_WORKERS)
        self.pool = _start(self.workers, max(1, own // self.workers))

    @staticmethod
    def supports(model: StepModel) -> bool:
        """Whether this pass computes what the model's own does."""
        config = model.config
        return (
            config.model_type == "llama"
            and isinstance(model.score, nn.Linear)
            and all(held.device.type == "cpu" and held.dtype == torch.float32 for held in model.parameters())
            and config.hidden_act == "silu"
            and not (config.attention_bias or config.mlp_bias)
            and config.rope_parameters["rope_type"] == "default"
            and sum(parameter.numel() for parameter in model.parameters()) <= _LARGEST
        )

    def run(self, inputs: Sequence[Input], check: Check = go_on) -> list[Floats32]:
        results: list[Floats32] = [np.zeros((0, 3), np.float32)] * len(inputs)
        total = sum(item.length for item in inputs)
        # Few inputs are still cut into one share per worker.
        budget = min(self.token_budget, max(64, -(-total // self.shares)))
        for batch, rows in self._outputs(chunks(list(enumerate(inputs)), budget, padded=False), check):
            for (number, _), probs in zip(batch, rows, strict=True):
                results[number] = probs
        return results

    def _outputs(self, batches: Iterator[Numbered], check: Check) -> Iterator[tuple[Numbered, list[Floats32]]]:
        """Each batch with its outputs. Few are handed to the workers ahead, so that two passes at the same time
        share them and neither waits for the end of the other."""
        ahead: deque[tuple[Numbered, Future[list[Floats32]]]] = deque()
        for batch in batches:
            check()
            ahead.append((batch, self.pool.submit(self._run_batch, [item for _, item in batch])))
            if len(ahead) > self.workers:
                done, outputs = ahead.popleft()
                yield done, outputs.result()
        for batch, outputs in ahead:
            yield batch, outputs.result()

    def _fold(self, layer: Any, *, trimmed: bool) -> _Layer:
        attention, mlp = layer.self_attn, layer.mlp
        before, after = layer.input_layernorm.weight, layer.post_attention_layernorm.weight
        projections = [
            self._side_by_side(attention.q_proj.weight * before, self.heads),
            self._side_by_side(attention.k_proj.weight * before, self.kv_heads),
            attention.v_proj.weight * before,
        ]
        parts = [projections[:1], projections[1:]] if trimmed else [projections]
        return _Layer(
            projections=tuple(packed(torch.cat(part)) for part in parts),
            out=packed(attention.o_proj.weight),
            gate=packed(mlp.gate_proj.weight * after),
            up=packed(mlp.up_proj.weight * after),
            down=packed(mlp.down_proj.weight),
        )

    def _side_by_side(self, weight: Tensor, heads: int) -> Tensor:
        """Reorder rows so that the two halves of each rotary pair are neighbours."""
        return weight.view(heads, 2, self.head_dim // 2, -1).transpose(1, 2).reshape(weight.shape)

    def _rotation(self, context: int, theta: float) -> Tensor:
        """`exp(i · position · frequency)`, shape (context, 1, head_dim / 2)."""
        powers = torch.arange(0, self.head_dim, 2, dtype=torch.int64).float() / self.head_dim
        angles = torch.outer(torch.arange(context).float(), 1.0 / theta**powers)
        return torch.polar(torch.ones_like(angles), angles).unsqueeze(1)

    @torch.inference_mode()
    def _run_batch(self, batch: list[Input]) -> list[Floats32]:
        bounds = np.concatenate([[0], np.cumsum([item.length for item in batch])]).tolist()
        spans = [slice(start, stop) for start, stop in pairwise(bounds)]
        wanted = np.concatenate([item.reads + span.start for item, span in zip(batch, spans, strict=True)])
        reads = torch.from_numpy(padded_rows(wanted))
        states, attended = self._first_attention(batch, spans)
        positions = torch.cat([self.rotation[: item.length] for item in batch])
        inner: list[Tensor] = []
        last = self.layers[-1]
        for layer, following in pairwise(self.layers):
            states, projected = self._advance(states, attended, layer, following)
            self._rotate(projected[: len(positions)], positions)
            if following is not last:
                self._attend(projected, spans, attended)
            else:
                attended = self._last_attention(states, projected, positions, batch, spans, reads)
            if self.mixture is not None:
                inner.append(states[reads][: len(wanted)])
        if last is self.layers[0]:
            attended = attended[reads]
        states = self._mlp(product_plus(attended, last.out, states[reads]), last)[: len(wanted)]
        states = functional.rms_norm(states, states.shape[-1:], self.norm, self.eps)
        if self.mixture is not None:
            states = self.mixture([*inner, states])
        probs = functional.linear(states, self.head, self.shift).softmax(-1).numpy()
        return np.split(probs, np.cumsum([len(item.reads) for item in batch])[:-1])

    def _first_attention(self, batch: list[Input], spans: list[slice]) -> tuple[Tensor, Tensor]:
        """Embeddings and first-layer attention, projections shared by the prefixes of a trace."""
        longest: dict[int, Input] = {}
        for item in batch:
            if id(item.ids) not in longest or item.length > longest[id(item.ids)].length:
                longest[id(item.ids)] = item
        shared = {}
        for key, item in longest.items():
            embedded = self.embedding[torch.from_numpy(padded_rows(item.ids[: item.length]))]
            qkv = product(self._normed(embedded), self.layers[0].projections[0])
            self._rotate(qkv[: item.length], self.rotation[: item.length])
            shared[key] = qkv
        ids = padded_rows(np.concatenate([item.ids[: item.length] for item in batch]))
        states = self.embedding[torch.from_numpy(ids)]
        attended = states.new_zeros(len(states), self.heads * self.head_dim)
        for item, span in zip(batch, spans, strict=True):
            self._attend(shared[id(item.ids)], [slice(item.length)], attended[span])
        return states, attended

    def _normed(self, states: Tensor) -> Tensor:
        # PyTorch's own goes through the states four times.
        squares: Tensor = torch.linalg.vector_norm(states, dim=-1, keepdim=True).square_()
        return states * squares.div_(states.shape[-1]).add_(self.eps).rsqrt_()

    def _rotate(self, projected: Tensor, positions: Tensor) -> None:
        """Rotate the queries and keys of `projected` in place; its last columns are the values."""
        heads = projected.shape[1] // self.head_dim - self.kv_heads
        width = heads * self.head_dim
        pairs = torch.view_as_complex(projected[:, :width].view(len(projected), heads, -1, 2))
        pairs.mul_(positions)

    def _attend(self, qkv: Tensor, spans: list[slice], into: Tensor) -> None:
        """Attention of each span over itself, written to the rows of `into`."""
        widths = [self.heads * self.head_dim, self.kv_heads * self.head_dim, self.kv_heads * self.head_dim]
        for span in spans:
            query, key, value = (self._by_head(part) for part in torch.split(qkv[span], widths, dim=1))
            self._write(self._attention(query, key, value, self.causal), into[span])

    def _advance(self, states: Tensor, attended: Tensor, layer: _Layer, following: _Layer) -> tuple[Tensor, Tensor]:
        """The states, shape (tokens, hidden), after what follows a layer's attention, and what the next layer's
        attention reads of them, which is less in the last one."""
        projection = following.projections[-1]
        if len(states) <= max(self.token_budget, _BLOCK):
            states = self._mlp(product_plus(attended, layer.out, states), layer)
            return states, product(self._normed(states), projection)
        projected = states.new_empty(len(states), projection.shape[0])
        for start in range(0, len(states), _BLOCK):
            rows = slice(start, start + _BLOCK)
            states[rows] = self._mlp(product_plus(attended[rows], layer.out, states[rows]), layer)
            projected[rows] = product(self._normed(states[rows]), projection)
        return states, projected

    def _last_attention(
        self,
        states: Tensor,
        kv: Tensor,
        positions: Tensor,
        batch: list[Input],
        spans: list[slice],
        reads: Tensor,
    ) -> Tensor:
        """Attention of the last layer from the positions that are read to all keys and values, shape (reads, heads
        · head_dim)."""
        query = product(self._normed(states[reads]), self.layers[-1].projections[0])
        pairs = torch.view_as_complex(query.view(len(query), self.heads, -1, 2))
        pairs.mul_(positions[reads])
        attended = torch.zeros_like(query)
        start = 0
        for item, span in zip(batch, spans, strict=True):
            rows = slice(start, start + len(item.reads))
            key, value = (self._by_head(part) for part in kv[span].chunk(2, dim=1))
            mask = None
            if self.causal:
                mask = torch.from_numpy(np.arange(item.length) <= item.reads[:, None])
            self._write(self._attention(self._by_head(query[rows]), key, value, False, mask), attended[rows])
            start = rows.stop
        return attended

    def _attention(
        self, query: Tensor, key: Tensor, value: Tensor, causal: bool, mask: Tensor | None = None
    ) -> Tensor:
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=causal, enable_gqa=self.heads != self.kv_heads
        )

    def _by_head(self, rows: Tensor) -> Tensor:
        """(tokens, heads · head_dim) seen as (1, heads, tokens, head_dim)."""
        return rows.view(1, len(rows), -1, self.head_dim).transpose(1, 2)

    def _write(self, attended: Tensor, into: Tensor) -> None:
        self._by_head(into).copy_(attended)

    def _mlp(self, states: Tensor, layer: _Layer) -> Tensor:
        normed = self._normed(states)
        return product_plus(product_times(normed, layer.up, product_swish(normed, layer.gate)), layer.down, states)


def _start(workers: int, threads: int) -> ThreadPoolExecutor:
    """A pool whose workers run and use `threads` threads each.

    PyTorch remembers the last count that any thread asked for and gives it to every new thread, so ours is put
    back once all workers have theirs.
    """
    before = torch.get_num_threads()
    together = Barrier(workers + 1)

    def settle() -> None:
        torch.set_num_threads(threads)
        together.wait()

    pool = ThreadPoolExecutor(workers, "score")
    for _ in range(workers):
        pool.submit(settle)
    together.wait()
    torch.set_num_threads(before)
    return pool
