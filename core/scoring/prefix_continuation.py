"""Continuing inputs from a cached prefix on the CPU, in the same pass as the new tokens of that prefix.

The keys and values of a prefix are in a buffer with spare room. A pass appends the keys and values of the new
tokens and attends to the whole buffer, with a mask that lets an input see itself and the part of the prefix that it
shares. The next pass overwrites the keys and values of the inputs. So the prefix is never copied, neither for its
inputs nor when it grows, and nothing is padded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from stepsight.core.arrays import Floats32, Ints
from stepsight.core.errors import Check, never_cancel
from stepsight.core.models.model import StepModel
from stepsight.core.models.network import DecoderNetwork, View, whole_blocks
from stepsight.core.scoring.forward import Input, OnResult, chunks, ignore_result, padded_rows
from stepsight.core.scoring.kv_cache import KEPT, shared
from stepsight.core.scoring.packed import ROWS

# New tokens of one pass, but for an input that is longer.
_NEW = 512
# The spare room of a new buffer, in tokens.
_ROOM = 256

_SHARED, _PADDING = -1, -2


@dataclass(eq=False)
class _Buffer:
    """Token ids, with room for the keys and values of these and further tokens. `ids` has the shape (tokens,), and
    the keys and values of each layer have the shape (1, heads, room, width). The first `len(ids)` keys and values
    are filled."""

    ids: Ints
    layers: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    @property
    def room(self) -> int:
        return self.layers[0][0].shape[2] if self.layers else 0

    def grown(self, room: int, tokens: int) -> "_Buffer":
        """Return a copy of the buffer's first `tokens` tokens with room for `room` tokens."""
        copied = []
        for pair in self.layers:
            keys, values = (one.new_empty(*one.shape[:2], room, one.shape[3]) for one in pair)
            for one, before in zip((keys, values), pair, strict=True):
                one[:, :, :tokens] = before[:, :, :tokens]
            copied.append((keys, values))
        return _Buffer(self.ids[:tokens], copied)


class PrefixContinuation:
    """A scorer of inputs that share a prefix, for causal networks.

    The most recent prefixes are kept, up to `kept` tokens in total. Only one thread may use it at a time.
    """

    def __init__(self, model: StepModel, network: DecoderNetwork, kept: int = KEPT) -> None:
        self._model, self._network = model, network
        self._kept = kept
        self._buffers: list[_Buffer] = []

    @torch.inference_mode()
    def run(
        self,
        inputs: Sequence[Input],
        starts: Sequence[int],
        prefix: Input,
        check: Check = never_cancel,
        on_result: OnResult = ignore_result,
    ) -> list[Floats32]:
        """Return the probabilities at the read positions of `prefix`, followed by the probabilities for each input.

        Each result has the shape (reads, 3). Input `i` begins with the first `starts[i]` tokens of the prefix, and
        all its read positions come after these tokens. The prefix is kept for later calls. An error that `check`
        raises between two passes stops the work, and `on_result` is called for each input.
        """
        ids = prefix.ids[: prefix.length]
        rests = [
            Input(one.ids[start : one.length], one.length - start, one.reads - start)
            for one, start in zip(inputs, starts, strict=True)
        ]
        batches = list(chunks(list(enumerate(rests)), _NEW, padded=False)) or [[]]
        # Tokens that are read have to be run; those before them may be known already.
        known = int(prefix.reads[0]) if len(prefix.reads) else len(ids)
        buffer = self._begin(ids, max(sum(item.length for _, item in batch) for batch in batches), known)
        found, rows = [], [np.zeros((0, 3), np.float32)] * len(inputs)
        while len(ids) - len(buffer.ids) > _NEW:
            check()
            own, _ = self._pass(buffer, prefix, len(buffer.ids) + _NEW, [], [])
            found.append(own)
        for batch in batches:
            check()
            after = [starts[number] for number, _ in batch]
            own, theirs = self._pass(buffer, prefix, len(ids), [item for _, item in batch], after)
            found.append(own)
            for (number, _), one in zip(batch, theirs, strict=True):
                rows[number] = one
                on_result(number, one)
        return [np.concatenate(found), *rows]

    def _begin(self, ids: Ints, new: int, known: int) -> _Buffer:
        """Return a buffer filled with the longest beginning of `ids` that any cached prefix has, but at most
        `known` tokens.

        The buffer has room for all of `ids` and `new` more tokens, and becomes the most recently used one.
        """
        best = max(self._buffers, key=lambda one: shared([one.ids, ids]), default=_Buffer(ids[:0]))
        begun, needed = min(known, shared([best.ids, ids])), len(ids) + new
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

    def _pass(
        self, buffer: _Buffer, prefix: Input, stop: int, rests: Sequence[Input], starts: Sequence[int]
    ) -> tuple[Floats32, list[Floats32]]:
        """Append the tokens of `prefix` up to `stop` to the buffer, and run them together with the inputs `rests`.

        Input `i` of `rests` follows the first `starts[i]` tokens of the buffer. Returns the probabilities at the
        read positions among the new tokens, and the probabilities for each of `rests`.
        """
        before = len(buffer.ids)
        new = prefix.ids[before:stop]
        ids = padded_rows(np.concatenate([new, *(item.ids for item in rests)]), ROWS)
        owners = np.full(len(ids), _PADDING)
        positions = np.zeros(len(ids), np.int64)
        owners[: len(new)], positions[: len(new)] = _SHARED, np.arange(before, stop)
        own = prefix.reads[(prefix.reads >= before) & (prefix.reads < stop)] - before
        end, reads = len(new), [own]
        for number, (item, start) in enumerate(zip(rests, starts, strict=True)):
            span = slice(end, end + item.length)
            owners[span], positions[span] = number, np.arange(start, start + item.length)
            reads.append(item.reads + end)
            end = span.stop
        # The part of the prefix that a token may see: up to the place where its input leaves it.
        sees = np.concatenate([positions[: len(new)] + 1, np.repeat(starts, [item.length for item in rests])])
        attend = _Attend(self._network, buffer, owners[:end], positions[:end], sees)
        at = np.concatenate(reads)
        # Without a read only keys and values are wanted; a last layer is asked for one token at least.
        asked = torch.from_numpy(at if len(at) else np.zeros(1, np.int64))
        hidden = self._network.states(torch.from_numpy(ids), torch.from_numpy(positions), attend, asked)
        buffer.ids = prefix.ids[:stop]
        probs: Floats32 = self._model.rows(hidden).numpy()[: len(at)]
        first, *others = np.split(probs, np.cumsum([len(one) for one in reads])[:-1])
        return first, others


class _Attend:
    """Attention of new tokens to the first tokens of a buffer and to their own input.

    `owners`, `positions` and `sees` have the shape (tokens,). They give the input of each token, the token's
    position in that input, and how many tokens the input shares with the buffer. Any further tokens in a pass are
    padding.
    """

    def __init__(self, network: DecoderNetwork, buffer: _Buffer, owners: Ints, positions: Ints, sees: Ints) -> None:
        self._network, self._buffer, self._end = network, buffer, len(owners)
        self._before = len(buffer.ids)
        self._owners, self._positions, self._sees = owners, positions, sees
        self._views: dict[int | None, tuple[slice, Tensor]] = {}

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, _: int, reads: Tensor | None
    ) -> Tensor:
        total = self._before + self._end
        new = slice(self._before, total)
        pair = self._buffer.layers[layer]
        for kept, found in zip(pair, (key, value), strict=True):
            kept[0, :, new] = found[: self._end].transpose(0, 1)
        keys, values = (kept[:, :, :total] for kept in pair)
        window = self._network.config.window(layer)
        if reads is not None:
            own, at = query if layer else query[reads], reads.numpy()
            return self._attended(own, keys, values, lambda rows: self._view(at[rows], window))
        # Padding is not attended from: its rows stay zero.
        attended = torch.zeros_like(query)
        attended[: self._end] = self._attended(
            query[: self._end], keys, values, lambda rows: self._view_of_all(rows, window)
        )
        return attended

    def _attended(self, query: Tensor, keys: Tensor, values: Tensor, view: View) -> Tensor:
        return self._network.attention_within(query.transpose(0, 1)[None], keys, values, view)[0].transpose(0, 1)

    def _view_of_all(self, rows: slice, window: int | None) -> tuple[slice, Tensor]:
        """Like `_view`, for the new tokens in `rows`. The view is kept for the other layers if these are all new
        tokens."""
        if rows.start or rows.stop < self._end:
            return self._view(np.arange(self._end)[rows], window)
        if window not in self._views:
            self._views[window] = self._view(np.arange(self._end), window)
        return self._views[window]

    def _view(self, queries: Ints, window: int | None) -> tuple[slice, Tensor]:
        """Return the keys that at least one of the new tokens with these indices may see, from the first to the
        last, and the mask of these tokens and keys."""
        positions, owners, sees = (one[queries, None] for one in (self._positions, self._owners, self._sees))
        # The keys of the prefix, then those of the inputs, each in the order of their tokens.
        places = self._before + queries[:, None]
        first, middle, last = 0, self._before + int((self._owners == _SHARED).sum()), int(places.max()) + 1
        if window is not None:
            # The window of a token begins in the prefix, or among the tokens of its own input.
            begins = positions - window + 1
            first = whole_blocks(int(np.where(begins < sees, begins, places - window + 1).min()))
        middle = min(max(first, middle), last)
        prefix, rest = np.arange(first, middle), np.arange(middle, last)
        seen = [prefix < sees, (self._owners[rest - self._before] == owners) & (rest <= places)]
        if window is not None:
            seen = [seen[0] & (prefix > positions - window), seen[1] & (rest > places - window)]
        return slice(first, last), torch.from_numpy(np.concatenate(seen, 1))
