"""Prefixes that a causal network has read and can continue from: their keys and values (the KV cache).

`Prefixes` is for backbones of Transformers. `PrefixContinuation` is for our own network on the CPU, and runs inputs
in the same pass as the new tokens of their prefix. The keys and values of a prefix are in a buffer with spare room.
A pass appends those of the prefix's new tokens. Those of an input stand in the buffer too while the input attends
to them, after the part that it shares. So nothing is padded, the shared part is not copied, no input attends to
masked keys of others, and sums are taken in the same order as if each input were read by itself.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from stepsight.core.arrays import Floats32, Ints
from stepsight.core.errors import Check, never_cancel
from stepsight.core.models.backbone import main_device
from stepsight.core.models.model import StepModel
from stepsight.core.models.network import DecoderNetwork
from stepsight.core.scoring.forward import Input, chunks, padded_rows
from stepsight.core.scoring.packed import ROWS

if TYPE_CHECKING:
    from transformers import DynamicCache


KEPT = 16_384
"""Tokens kept of all prefixes: 2 GB for a Mistral of 7B in bfloat16."""


@dataclass(frozen=True, eq=False)
class Prefix:
    """A prefix with its keys and values. `ids` has the shape (tokens,). The keys and values of each layer have the
    shape (1, heads, tokens, width)."""

    ids: Ints
    layers: tuple[tuple[Tensor, Tensor], ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def first(self, tokens: int) -> "Prefix":
        """Return the prefix cut to its first `tokens` tokens. In a causal network this is possible because later
        tokens do not change earlier ones."""
        if tokens == len(self):
            return self
        layers = tuple((keys[..., :tokens, :], values[..., :tokens, :]) for keys, values in self.layers)
        return Prefix(self.ids[:tokens], layers if tokens else ())


class Prefixes:
    """The prefixes that a causal `backbone` has read most recently, up to `kept` tokens in total.

    Prefixes are compared by token ids, so it does not matter how a tokenizer treats the boundary between two steps:
    two inputs share the tokens up to the first difference.
    """

    def __init__(self, backbone: nn.Module, kept: int = KEPT, states: Callable[..., Tensor] | None = None) -> None:
        """Create an empty cache. `states` runs the backbone and returns hidden states; by default, those of the
        last layer."""
        self._backbone = backbone
        self._states = states or (lambda **inputs: backbone(**inputs)[0])
        self._kept = kept
        self._prefixes: list[Prefix] = []

    def find(self, ids: Ints) -> Prefix:
        """Return the prefix with exactly these token ids, and cache it. Only the tokens that no cached prefix has
        in common with `ids` are computed."""
        best = max(self._prefixes, key=lambda kept: shared([kept.ids, ids]), default=Prefix(ids[:0]))
        begun = best.first(shared([best.ids, ids]))
        if len(begun) == len(ids):
            self._prefixes.sort(key=lambda prefix: prefix is best)
            return begun
        # A longer prefix replaces the one that it extends; one that branches off is kept beside it.
        cache = _cache(begun, 1)
        self._run(cache, ids[None, len(begun) :])
        layers: Any = cache.layers
        prefix = Prefix(ids, tuple((layer.keys, layer.values) for layer in layers))
        self._prefixes = [*(kept for kept in self._prefixes if kept is not begun), prefix]
        while len(self._prefixes) > 1 and sum(map(len, self._prefixes)) > self._kept:
            self._prefixes.pop(0)
        return prefix

    def after(self, prefix: Prefix, rows: Ints) -> Tensor:
        """Return the hidden states, of shape (rows, tokens, hidden), of several inputs that all follow the prefix.

        `rows` has the shape (rows, tokens) and holds the token ids of these inputs. They are right-padded, since
        later tokens do not change earlier states.
        """
        return self._run(_cache(prefix, len(rows)), rows)

    @torch.inference_mode()
    def _run(self, cache: "DynamicCache", rows: Ints) -> Tensor:
        ids = torch.from_numpy(rows).to(main_device(self._backbone))
        return self._states(input_ids=ids, past_key_values=cache, use_cache=True)


def shared(inputs: Sequence[Ints]) -> int:
    """Return the number of leading tokens that all inputs share."""
    shortest = min(map(len, inputs))
    differs = np.zeros(shortest, np.bool_)
    for ids in inputs[1:]:
        differs |= ids[:shortest] != inputs[0][:shortest]
    return int(differs.argmax()) if differs.any() else shortest


@torch.inference_mode()
def can_continue(backbone: nn.Module) -> bool:
    """True if continuing from a prefix gives the same result as reading the whole input. This is tested by running
    the backbone, since no config says so."""
    if "past_key_values" not in inspect.signature(backbone.forward).parameters or _rotates_by_length(backbone):
        return False
    vocabulary = int(getattr(backbone.config, "vocab_size", 1))
    ids = np.arange(3, 15)[None].repeat(2, 0) % vocabulary
    ids[1, 7:] = ids[1, :6:-1]
    device = main_device(backbone)
    try:
        prefixes = Prefixes(backbone)
        prefixes.find(ids[0, :3])
        continued = prefixes.after(prefixes.find(ids[0, :7]), ids[:, 7:]).float()
        whole = backbone(input_ids=torch.from_numpy(ids).to(device))[0][:, 7:].float()
    except Exception:  # a backbone with another kind of cache can fail in any way, and is run from the start
        return False
    within = 1e-4 if next(backbone.parameters()).dtype == torch.float32 else 5e-2
    return torch.allclose(continued, whole, rtol=within, atol=within * float(whole.abs().max()))


def _rotates_by_length(backbone: nn.Module) -> bool:
    """True if the rotation of early tokens depends on the length of the input, which a short test cannot detect."""
    rope = getattr(backbone.config, "rope_parameters", None) or {}
    # Backbones with layers of several kinds have such an object for each kind.
    kinds = {str(part.get("rope_type")) for part in (rope, *rope.values()) if isinstance(part, dict)}
    return any("dynamic" in kind or kind == "longrope" for kind in kinds)


def _cache(prefix: Prefix, rows: int) -> "DynamicCache":
    """Create a cache for `rows` inputs that all follow the prefix. The prefix's keys and values are not copied
    until the layers run."""
    # It brings Transformers.
    from transformers.cache_utils import DynamicCache, DynamicLayer

    cache = DynamicCache()
    for keys, values in prefix.layers:
        layer = DynamicLayer()  # type: ignore[no-untyped-call]
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1)
        cache.layers.append(layer)
    return cache


# New tokens of one pass, but for an input that is longer.
_NEW = 512
# The spare room of a new buffer, in tokens.
_ROOM = 256


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
            keys, values = (part.new_empty(*part.shape[:2], room, part.shape[3]) for part in pair)
            for part, before in zip((keys, values), pair, strict=True):
                part[:, :, :tokens] = before[:, :, :tokens]
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
    ) -> list[Floats32]:
        """Return the probabilities at the read positions of `prefix`, followed by the probabilities for each input.

        Each result has the shape (reads, 3). Input `i` begins with the first `starts[i]` tokens of the prefix, and
        all its read positions come after these tokens. The prefix is kept for later calls. An error that `check`
        raises between two passes stops the work.
        """
        ids = prefix.ids[: prefix.length]
        rests = [
            Input(item.ids[start : item.length], item.length - start, item.reads - start)
            for item, start in zip(inputs, starts, strict=True)
        ]
        batches = list(chunks(list(enumerate(rests)), _NEW, padded=False)) or [[]]
        # Tokens that are read have to be run; those before them may be known already.
        unread = int(prefix.reads[0]) if len(prefix.reads) else len(ids)
        last = max([len(ids), *(item.length for item in inputs)])
        buffer = self._begin(ids, last, unread)
        of_prefix, rows = [], [np.zeros((0, 3), np.float32)] * len(inputs)
        while len(ids) - len(buffer.ids) > _NEW:
            check()
            own, _ = self._pass(buffer, prefix, len(buffer.ids) + _NEW, [], [])
            of_prefix.append(own)
        for batch in batches:
            check()
            after = [starts[number] for number, _ in batch]
            own, results = self._pass(buffer, prefix, len(ids), [item for _, item in batch], after)
            of_prefix.append(own)
            for (number, _), result in zip(batch, results, strict=True):
                rows[number] = result
        return [np.concatenate(of_prefix), *rows]

    def _begin(self, ids: Ints, needed: int, most: int) -> _Buffer:
        """Return a buffer filled with the longest beginning of `ids` that any cached prefix has, but at most `most`
        tokens.

        The buffer has room for `needed` tokens, and becomes the most recently used one.
        """
        best = max(self._buffers, key=lambda kept: shared([kept.ids, ids]), default=_Buffer(ids[:0]))
        begun = min(most, shared([best.ids, ids]))
        # A longer prefix takes the place of the one that it extends; one that branches off is kept beside it.
        extends = begun == len(best.ids)
        if not best.layers:
            config, like = self._network.config, self._network.embedding
            shape = (1, config.num_key_value_heads, needed + _ROOM, config.head_dim)
            layers = range(config.num_hidden_layers)
            best = _Buffer(np.zeros(0, np.int64), [(like.new_empty(shape), like.new_empty(shape)) for _ in layers])
        elif not extends or best.room < needed:
            best, before = best.grown(needed + _ROOM, begun), best
            self._buffers = [kept for kept in self._buffers if kept is not before or not extends]
        self._buffers = [*(kept for kept in self._buffers if kept is not best), best]
        while len(self._buffers) > 1 and sum(len(kept.ids) for kept in self._buffers[:-1]) + len(ids) > self._kept:
            self._buffers.pop(0)
        return best

    def _pass(
        self, buffer: _Buffer, prefix: Input, stop: int, rests: Sequence[Input], starts: Sequence[int]
    ) -> tuple[Floats32, list[Floats32]]:
        """Append the tokens of `prefix` up to `stop` to the buffer, and run them together with the inputs `rests`.

        Input `i` of `rests` follows the first `starts[i]` tokens of the buffer. Returns the probabilities at the
        read positions among the new tokens, and the probabilities for each of `rests`.
        """
        before = len(buffer.ids)
        own = prefix.reads[(prefix.reads >= before) & (prefix.reads < stop)] - before
        parts = [Input(prefix.ids[before:stop], stop - before, own), *rests]
        begins = [before, *starts]
        ids = np.concatenate([part.ids for part in parts])
        places = [np.arange(begin, begin + part.length) for part, begin in zip(parts, begins, strict=True)]
        ids, positions = (padded_rows(values, ROWS) for values in (ids, np.concatenate(places)))
        attend = _Attend(self._network, buffer, parts, begins)
        at = np.concatenate([part.reads + span.start for part, span in zip(parts, attend.spans, strict=True)])
        # Without a read only keys and values are wanted; a last layer is asked for one token at least.
        read = torch.from_numpy(at if len(at) else np.zeros(1, np.int64))
        hidden = self._network.states(torch.from_numpy(ids), torch.from_numpy(positions), attend, read)
        buffer.ids = prefix.ids[:stop]
        probs: Floats32 = self._model.rows(hidden).numpy()[: len(at)]
        first, *others = np.split(probs, np.cumsum([len(part.reads) for part in parts])[:-1])
        return first, others


class _Attend:
    """Attention of new tokens to the first tokens of a buffer and to their own part of the pass.

    The first of `parts` holds new tokens of the buffer's prefix, whose keys and values are appended to the buffer.
    The part with the number `i` comes after the first `begins[i]` tokens of the buffer, and its tokens are in
    `spans[i]` of the pass. Any further tokens in a pass are padding.
    """

    def __init__(
        self, network: DecoderNetwork, buffer: _Buffer, parts: Sequence[Input], begins: Sequence[int]
    ) -> None:
        self._network, self._buffer = network, buffer
        self._parts, self._begins = parts, begins
        bounds = accumulate((part.length for part in parts), initial=0)
        self.spans = [slice(start, stop) for start, stop in pairwise(bounds)]

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, tokens: int, reads: Tensor | None
    ) -> Tensor:
        # What is not attended from, such as padding, stays zero.
        attended = query.new_zeros(tokens if reads is None else len(reads), *query.shape[1:])
        start = 0
        for part, begin, span in zip(self._parts, self._begins, self.spans, strict=True):
            into = span if reads is None else slice(start, start + len(part.reads))
            start = into.stop
            keep = part is self._parts[0]
            with self._appended(layer, key[span], value[span], begin, keep=keep) as (keys, values):
                if into.start == into.stop:
                    continue
                own = query[into] if layer or reads is None else query[torch.from_numpy(part.reads + span.start)]
                at = torch.from_numpy(begin + (np.arange(part.length) if reads is None else part.reads))
                queries = own.transpose(0, 1)[None]
                attended[into] = self._network.attention(layer, queries, keys, values, at)[0].transpose(0, 1)
        return attended

    @contextmanager
    def _appended(
        self, layer: int, key: Tensor, value: Tensor, begin: int, *, keep: bool
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Write new keys and values after the first `begin` ones of the buffer, and yield all of these. Unless
        `keep` is True, what the buffer held in their place is then restored."""
        stop = begin + len(key)
        keys, values = (part[:, :, :stop] for part in self._buffer.layers[layer])
        places = keys[0, :, begin:], values[0, :, begin:]
        before = [] if keep else [place.clone() for place in places]
        for place, new in zip(places, (key, value), strict=True):
            place.copy_(new.transpose(0, 1))
        try:
            yield keys, values
        finally:
            for place, old in zip(places, before, strict=False):
                place.copy_(old)
