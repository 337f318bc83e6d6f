"""Prefixes that a causal network has read and can continue from: their keys and values (the KV cache).

`PrefixCache` holds those that were read most recently. `read_after` has a backbone of Transformers continue from
one; our own network writes to the keys and values of a prefix in place (see `core.scoring.packed`).
"""

import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from stepsight.core.arrays import Ints
from stepsight.core.models.model import main_device

if TYPE_CHECKING:
    from transformers import DynamicCache


KEPT = 16_384
"""The total number of tokens kept in prefixes: 2 GB for a Mistral of 7B in bfloat16."""

Layers = Sequence[tuple[Tensor, Tensor]]
"""The keys and values of each layer, of shape (1, heads, tokens, width)."""


@dataclass(eq=False)
class KeptPrefix:
    """Token ids with their keys and values, which may have room for further tokens. `ids` has the shape (tokens,),
    and the first `len(ids)` keys and values of each layer are filled."""

    ids: Ints
    layers: Layers = field(default_factory=list)

    @property
    def room(self) -> int:
        return self.layers[0][0].shape[2] if self.layers else 0

    def first(self, tokens: int) -> Layers:
        """Return the keys and values of the first tokens. In a causal network, later tokens do not change them."""
        return [(keys[:, :, :tokens], values[:, :, :tokens]) for keys, values in self.layers] if tokens else []


class PrefixCache:
    """The prefixes that were read most recently, up to `kept` tokens in total. Several threads can use it at once.

    Prefixes are compared by token ids, so it does not matter how a tokenizer treats the boundary between two steps:
    two inputs share the tokens up to the first difference.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._most = kept
        self._prefixes: list[KeptPrefix] = []
        self._lock = threading.Lock()

    def take(self, ids: Ints, most: int) -> tuple[KeptPrefix, int]:
        """Return a prefix that shares as many of its first tokens with `ids` as any, and the number of these
        tokens, but at most `most`.

        A prefix that `ids` continues, or that continues `ids`, leaves the cache until it is `put` back. From any
        other prefix, only the shared tokens are returned, and the prefix itself stays.
        """
        with self._lock:
            best = max(self._prefixes, key=lambda prefix: shared([prefix.ids, ids]), default=KeptPrefix(ids[:0]))
            common = shared([best.ids, ids])
            count = min(most, common)
            if common < min(len(best.ids), len(ids)):
                return KeptPrefix(best.ids[:count], best.first(count)), count
            self._prefixes = [prefix for prefix in self._prefixes if prefix is not best]
            return best, count

    def put(self, prefix: KeptPrefix) -> None:
        """Add a prefix as the most recent one. The least recently read ones make room for it."""
        if not len(prefix.ids):
            return
        with self._lock:
            self._prefixes.append(prefix)
            while len(self._prefixes) > 1 and sum(len(other.ids) for other in self._prefixes) > self._most:
                self._prefixes.pop(0)


def shared(inputs: Sequence[Ints]) -> int:
    """Return the number of leading tokens that all inputs share."""
    shortest = min(map(len, inputs))
    differs = np.zeros(shortest, np.bool_)
    for ids in inputs[1:]:
        differs |= ids[:shortest] != inputs[0][:shortest]
    return int(differs.argmax()) if differs.any() else shortest


@torch.inference_mode()
def read_after(states: Callable[..., Tensor], layers: Layers, ids: Tensor) -> tuple[Tensor, Layers]:
    """Run several inputs that all follow the same prefix, whose keys and values are `layers`.

    `states` runs a backbone of Transformers. `ids` has the shape (rows, tokens); the inputs are right-padded, since
    later tokens do not change earlier states. Returns their hidden states, of shape (rows, tokens, hidden), and the
    keys and values of prefix and inputs, with as many rows.
    """
    cache: Any = _cache(layers, len(ids))
    hidden = states(input_ids=ids, past_key_values=cache, use_cache=True)
    return hidden, [(layer.keys, layer.values) for layer in cache.layers]


@torch.inference_mode()
def can_continue(backbone: nn.Module) -> bool:
    """True if continuing from a prefix gives the same result as reading the whole input. This is tested by running
    the backbone, since no config says so."""
    if "past_key_values" not in inspect.signature(backbone.forward).parameters or _rotates_by_length(backbone):
        return False
    vocabulary = int(getattr(backbone.config, "vocab_size", 1))
    numbers = np.arange(3, 15)[None].repeat(2, 0) % vocabulary
    numbers[1, 7:] = numbers[1, :6:-1]
    ids = torch.from_numpy(numbers).to(main_device(backbone))

    def states(**inputs: Any) -> Tensor:
        return backbone(**inputs)[0]

    try:
        _, first = read_after(states, [], ids[:1, :3])
        _, prefix = read_after(states, first, ids[:1, 3:7])
        continued = read_after(states, prefix, ids[:, 7:])[0].float()
        whole = states(input_ids=ids)[:, 7:].float()
    except Exception:  # other kinds of caches can fail in any way; the input is then run from the start
        return False
    tolerance = 1e-4 if next(backbone.parameters()).dtype == torch.float32 else 5e-2
    return torch.allclose(continued, whole, rtol=tolerance, atol=tolerance * float(whole.abs().max()))


def _rotates_by_length(backbone: nn.Module) -> bool:
    """True if the rotation of early tokens depends on the length of the input, which a short test cannot detect."""
    rope = getattr(backbone.config, "rope_parameters", None) or {}
    # Backbones with several kinds of layers have such an object for each kind.
    kinds = {str(part.get("rope_type")) for part in (rope, *rope.values()) if isinstance(part, dict)}
    return any("dynamic" in kind or kind == "longrope" for kind in kinds)


def _cache(layers: Layers, rows: int) -> "DynamicCache":
    """Create a cache for `rows` inputs that all follow a prefix. The prefix's keys and values are not copied until
    the layers run."""
    # This import loads Transformers.
    from transformers.cache_utils import DynamicCache, DynamicLayer

    cache = DynamicCache()
    for keys, values in layers:
        layer = DynamicLayer()  # type: ignore[no-untyped-call]
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1)
        cache.layers.append(layer)
    return cache
