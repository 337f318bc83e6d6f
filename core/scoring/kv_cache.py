"""The KV cache: the keys and values of prefixes that a causal backbone has read and can continue from."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from stepsight.core.arrays import Ints
from stepsight.core.models.backbone import main_device

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
        best = max(self._prefixes, key=lambda one: shared([one.ids, ids]), default=Prefix(ids[:0]))
        begun = best.first(shared([best.ids, ids]))
        if len(begun) == len(ids):
            self._prefixes.sort(key=lambda one: one is best)
            return begun
        # A longer prefix replaces the one that it extends; one that branches off is kept beside it.
        prefix = self._extended(begun, ids)
        self._prefixes = [*(one for one in self._prefixes if one is not begun), prefix]
        while len(self._prefixes) > 1 and sum(map(len, self._prefixes)) > self._kept:
            self._prefixes.pop(0)
        return prefix

    def _extended(self, prefix: Prefix, ids: Ints) -> Prefix:
        cache = _cache(prefix, 1)
        self._run(cache, ids[None, len(prefix) :])
        layers: Any = cache.layers
        return Prefix(ids, tuple((layer.keys, layer.values) for layer in layers))

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
