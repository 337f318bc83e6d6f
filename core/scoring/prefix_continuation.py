"""Candidates continued from a kept prefix on a processor: the new tokens of a prefix and all candidates in one
pass.

The keys and values of a prefix lie in a buffer with spare room. A pass appends those of the new tokens and attends
over all of them, with a mask that lets a candidate see the prefix and itself; the next pass overwrites the
candidates. So a prefix is never copied, neither for its candidates nor to grow, and nothing is padded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from stepsight.core.arrays import Floats32, Ints
from stepsight.core.models.model import StepModel
from stepsight.core.models.network import DecoderNetwork
from stepsight.core.scoring.forward import Input, chunks, padded_rows
from stepsight.core.scoring.kv_cache import KEPT, shared
from stepsight.core.scoring.packed import ROWS

# New tokens of one pass: the mask has a row for each, and a column for each token before them.
_NEW = 512
# The spare room of a new buffer, in tokens.
_ROOM = 256

_SHARED, _PADDING = -1, -2


@dataclass(eq=False)
class _Buffer:
    """Token ids, shape (tokens,), and for each layer keys and values, shape (1, heads, room, width), the first
    `len(ids)` of which are filled."""

    ids: Ints
    layers: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    @property
    def room(self) -> int:
        return self.layers[0][0].shape[2] if self.layers else 0

    def grown(self, room: int, tokens: int) -> "_Buffer":
        """A copy of the first `tokens`, with this much room."""
        copied = []
        for pair in self.layers:
            keys, values = (one.new_empty(*one.shape[:2], room, one.shape[3]) for one in pair)
            for one, before in zip((keys, values), pair, strict=True):
                one[:, :, :tokens] = before[:, :, :tokens]
            copied.append((keys, values))
        return _Buffer(self.ids[:tokens], copied)


class PrefixContinuation:
    """Scores inputs that share a prefix with a causal network, and keeps the last prefixes, up to `kept` tokens in
    all. Not safe to use from several threads."""

    def __init__(self, model: StepModel, network: DecoderNetwork, kept: int = KEPT) -> None:
        self._model, self._network = model, network
        self._kept = kept
        self._buffers: list[_Buffer] = []

    @torch.inference_mode()
    def run(self, inputs: Sequence[Input], tokens: int) -> list[Floats32]:
        """The probabilities of each input, shape (1, 3), at its only read. All inputs share their first `tokens`,
        which hold no read and are kept."""
        ids = inputs[0].ids[:tokens]
        rows = [np.zeros((0, 3), np.float32)] * len(inputs)
        rests = [Input(one.ids[tokens : one.length], one.length - tokens, one.reads - tokens) for one in inputs]
        batches = list(chunks(list(enumerate(rests)), _NEW, padded=False))
        buffer = self._begin(ids, max(sum(item.length for _, item in batch) for batch in batches))
        while len(ids) - len(buffer.ids) > _NEW:
            self._pass(buffer, ids[len(buffer.ids) : len(buffer.ids) + _NEW], [])
        for batch in batches:
            probs = self._pass(buffer, ids[len(buffer.ids) :], [item for _, item in batch])
            for (number, _), row in zip(batch, probs, strict=True):
                rows[number] = row[None]
        return rows

    def _begin(self, ids: Ints, new: int) -> _Buffer:
        """A buffer with the longest kept beginning of `ids`, and room for all of them and `new` more tokens. It
        becomes the most recent one."""
        best = max(self._buffers, key=lambda one: shared([one.ids, ids]), default=_Buffer(ids[:0]))
        begun, needed = shared([best.ids, ids]), len(ids) + new
        # A longer prefix takes the place of the one that it extends; one that branches off is kept beside it.
        extends = begun == len(best.ids)
        if not best.layers:
            best = self._empty(needed + _ROOM)
        elif not extends or best.room < needed:
            best, before = best.grown(needed + _ROOM, begun), best
            self._buffers = [one for one in self._buffers if one is not before or not extends]
        self._buffers = [*(one for one in self._buffers if one is not best), best]
        while len(self._buffers) > 1 and sum(len(one.ids) for one in self._buffers[:-1]) + len(ids) > self._kept:
            self._buffers.pop(0)
        return best

    def _empty(self, room: int) -> _Buffer:
        config, like = self._network.config, self._network.embedding
        shape = (1, config.num_key_value_heads, room, config.head_dim)
        layers = range(config.num_hidden_layers)
        return _Buffer(np.zeros(0, np.int64), [(like.new_empty(shape), like.new_empty(shape)) for _ in layers])

    def _pass(self, buffer: _Buffer, new: Ints, rests: Sequence[Input]) -> Floats32:
        """Append `new` to the buffer's tokens, and give the probabilities of each of the `rests` after them."""
        start = len(buffer.ids) + len(new)
        ids = padded_rows(np.concatenate([new, *(item.ids for item in rests)]), ROWS)
        owners = np.full(len(ids), _PADDING)
        positions = np.zeros(len(ids), np.int64)
        owners[: len(new)], positions[: len(new)] = _SHARED, np.arange(len(buffer.ids), start)
        reads, end = [], len(new)
        for number, item in enumerate(rests):
            span = slice(end, end + item.length)
            owners[span], positions[span] = number, np.arange(start, start + item.length)
            reads.append(end + int(item.reads[0]))
            end = span.stop
        attend = _Attend(self._network, buffer, owners, positions, end)
        # Without a rest only keys and values are wanted; a last layer is asked for one token at least.
        at = torch.tensor(reads or [0])
        hidden = self._network.states(torch.from_numpy(ids), torch.from_numpy(positions), attend, at)
        buffer.ids = np.concatenate([buffer.ids, new])
        probs: Floats32 = self._model.rows(hidden).numpy()
        return probs[: len(rests)]


class _Attend:
    """Attention of the first `end` new tokens over those of a buffer and themselves; the rest are padding."""

    def __init__(self, network: DecoderNetwork, buffer: _Buffer, owners: Ints, positions: Ints, end: int) -> None:
        self._network, self._buffer, self._end = network, buffer, end
        self._before = len(buffer.ids)
        of_keys = np.concatenate([np.full(self._before, _SHARED), owners[:end]])
        at_keys = np.concatenate([np.arange(self._before), positions[:end]])
        seen = (of_keys == _SHARED) | (of_keys == owners[:end, None])
        seen &= at_keys <= positions[:end, None]
        window = network.config.sliding_window
        if window is not None:
            seen &= at_keys > positions[:end, None] - window
        self._seen = torch.from_numpy(seen)

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, _: int, reads: Tensor | None
    ) -> Tensor:
        total = self._before + self._end
        new = slice(self._before, total)
        pair = self._buffer.layers[layer]
        for kept, found in zip(pair, (key, value), strict=True):
            kept[0, :, new] = found[: self._end].transpose(0, 1)
        keys, values = (kept[:, :, :total] for kept in pair)
        if reads is not None:
            own = query if layer else query[reads]
            return self._attended(own, keys, values, self._seen[reads])
        # Padding is not attended from: its rows stay zero.
        attended = torch.zeros_like(query)
        attended[: self._end] = self._attended(query[: self._end], keys, values, self._seen)
        return attended

    def _attended(self, query: Tensor, keys: Tensor, values: Tensor, seen: Tensor) -> Tensor:
        found = self._network.attention(query.transpose(0, 1)[None], keys, values, seen, is_causal=False)
        return found[0].transpose(0, 1)
