"""The network of the Llama family (Llama, LLaDA, Mistral, Ministral and Qwen2) on the CPU, with the same results
as Transformers.

The layers of these models differ only in biases, sliding windows and the mask. The network computes with the
weights of any module that uses Transformers' names, either directly or, for small models, with prepared copies of
them. In a prepared copy

- weights are packed for the products, with queries, keys and values in one product;
- the weights of norms are folded into the matrices that follow them;
- the two numbers of a rotary pair are adjacent, so that a rotation is one complex multiplication.

In both cases, inputs are concatenated without padding. In the last layer, everything but keys and values is
computed only for the tokens whose states are needed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from stepsight.core.errors import UserError
from stepsight.core.models import llada
from stepsight.core.models.kernels import (
    packed,
    product,
    product_plus,
    product_swish,
    product_times,
)

Attend = Callable[[int, Tensor, Tensor, Tensor, int, Tensor | None], Tensor]
"""Attention of the layer with this number, from queries, shape (rows, heads, width), to keys and values, shape
(tokens, heads, width). The last arguments are the number of tokens, and the tokens whose result is needed, or None
for all. The queries are those of the needed tokens, or of all tokens in the first layer."""

View = Callable[[slice], tuple[slice, Tensor]]
"""The keys to which some of the queries may attend, and the mask of these queries and keys, shape (queries, keys):
boolean, or the numbers that are added."""

# The number of elements of the largest mask that is kept from layer to layer.
_KEPT_MASK = 1_000_000
# The number of tokens computed at a time between two attentions if there are more than `_WHOLE`. Inputs of 2,000
# tokens then take 120 MB, and 100 MB are kept between two passes, instead of 300 and 200 MB, with the same bits.
# Masks are built for as many queries at a time, so that they grow with the tokens and not with their square.
_BLOCK, _WHOLE = 512, 1024
KINDS = ("llama", "mistral", "ministral", "qwen2")
"""The `model_type` of the networks that can be computed here."""
_FULL, _SLIDING = "full_attention", "sliding_attention"
# Keys that have no effect with these values; with other values the network is left to Transformers.
_PLAIN: dict[str, tuple[object, ...]] = {
    "hidden_act": ("silu",),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "partial_rotary_factor": (1.0, None),
    "quantization_config": (None,),
    "tie_word_embeddings": (False, True),
}


@dataclass
class DecoderConfig:
    """The values in a config.json that determine the layers, under Transformers' names."""

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_parameters: Mapping[str, Any]
    windows: Sequence[int | None] = ()
    is_causal: bool = True
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def biased(self) -> bool:
        """True if queries, keys and values have biases."""
        return self.model_type == "qwen2"

    def window(self, layer: int) -> int | None:
        """Return how many tokens a token attends to in a layer, including itself, or None if it attends to all
        tokens before it."""
        return self.windows[layer] if self.windows else None

    def to_dict(self) -> dict[str, Any]:
        """Return the whole config.json as it was read, with `is_causal` added."""
        return {**self.values, "is_causal": self.is_causal}


def decoder_config(values: Mapping[str, Any], attention: str | None = None) -> DecoderConfig | None:
    """Return the config of a decoder of this family. `values` is the content of its config.json.

    `attention` is the mask, `causal` or `bidirectional`; if it is None, the config's own mask is kept. Returns None
    if `values` describes a different kind of network or is incomplete.
    """
    if llada.recognises(values):
        try:
            values = llada.backbone_values(values)
        except UserError:
            return None
    kind, is_causal = values.get("model_type"), values.get("is_causal", True)
    if kind not in KINDS or not isinstance(is_causal, bool):
        return None
    if any(key in values and values[key] not in plain for key, plain in _PLAIN.items()):
        return None
    if attention is not None:
        if attention not in ("causal", "bidirectional") or values.get("is_causal", attention == "causal") != (
            attention == "causal"
        ):
            return None
        is_causal = attention == "causal"
    heads, rope = values.get("num_attention_heads"), _rope(values)
    numbers: dict[str, Any] = {
        "num_attention_heads": heads,
        "num_key_value_heads": values.get("num_key_value_heads") or heads,
        **{
            key: values.get(key)
            for key in (
                "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "max_position_embeddings",
            )
        },
    }  # fmt: skip
    if rope is None or not all(type(number) is int and number > 0 for number in numbers.values()):
        return None
    windows = layer_windows(values, kind, numbers["num_hidden_layers"])
    numbers["head_dim"] = values.get("head_dim") or numbers["hidden_size"] // heads
    eps = values.get("rms_norm_eps", 1e-6)
    divides = numbers["hidden_size"] % heads == 0 and heads % numbers["num_key_value_heads"] == 0
    if windows is None or not divides or type(numbers["head_dim"]) is not int or not isinstance(eps, float):
        return None
    # Only Llama's own layers have been checked to attend to later tokens as they should.
    if not is_causal and kind != "llama":
        return None
    return DecoderConfig(
        model_type=kind, rms_norm_eps=eps, rope_parameters=rope, windows=windows, is_causal=is_causal,
        values=dict(values), **numbers,
    )  # fmt: skip


def layer_windows(values: Mapping[str, Any], kind: str, layers: int) -> list[int | None] | None:
    """Return the window of each layer by the rules of Transformers.

    `layer_types` decides if it is given. Otherwise a Qwen2 has windows from the layer `max_window_layers` on, and
    other kinds in every layer. Returns None if the keys contradict each other, or name another kind of layer.
    """
    slides = values.get("use_sliding_window", False) if kind == "qwen2" else kind != "llama"
    window = values.get("sliding_window", 4096) if slides else None
    begin, kinds = values.get("max_window_layers", 28) if kind == "qwen2" else 0, values.get("layer_types")
    if window is not None and not (type(window) is int and window > 0 and isinstance(begin, int)):
        return None
    if kinds is None:
        return [None if window is None or number < begin else window for number in range(layers)]
    readable = (_FULL,) if window is None else (_FULL, _SLIDING)
    if not isinstance(kinds, list) or len(kinds) != layers or any(kind not in readable for kind in kinds):
        return None
    return [window if kind == _SLIDING else None for kind in kinds]


def _rope(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the rotary embedding of a new-style or old-style config, or None if its kind is not supported.

    If there are both, the old-style `rope_scaling` counts, as for Transformers.
    """
    rope = values.get("rope_scaling") or values.get("rope_parameters") or {}
    if not isinstance(rope, Mapping):
        return None
    rope = {"rope_theta": values.get("rope_theta", 10_000.0), **rope}
    kind = rope.setdefault("rope_type", rope.get("type", "default"))
    readable = {"rope_type", "rope_theta", "type"} | (set(_LLAMA3) if kind == "llama3" else set())
    if kind not in ("default", "llama3") or set(rope) - readable:
        return None
    needed = ["rope_theta", *(_LLAMA3 if kind == "llama3" else ())]
    return rope if all(isinstance(rope.get(key), int | float) for key in needed) else None


_LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")


@dataclass(frozen=True, eq=False)
class _Projection:
    """A single product that computes queries, keys and values, or only some of the three.

    `heads` holds the number of query, key and value heads, as far as they are computed. The first `rotated` heads
    in the result are rotated.
    """

    weight: Tensor
    bias: Tensor | None
    heads: list[int]
    rotated: int


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer: attention and MLP, each preceded by a norm and followed by a residual connection. A prepared layer
    has no norm weights."""

    config: DecoderConfig
    projections: Sequence[_Projection]
    out: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor
    before: Tensor | None = None
    after: Tensor | None = None

    @classmethod
    def of(cls, module: Any, config: DecoderConfig) -> "Layer":
        """Create a layer that uses a module's weights without copying them."""
        projections = [
            _Projection(part.weight, part.bias, [heads], heads if is_rotated else 0)
            for part, heads, is_rotated in _list_projections(module.self_attn, config)
        ]
        out, mlp = module.self_attn.o_proj.weight, module.mlp
        norms = module.input_layernorm.weight, module.post_attention_layernorm.weight
        return cls(config, projections, out, mlp.gate_proj.weight, mlp.up_proj.weight, mlp.down_proj.weight, *norms)

    @classmethod
    @torch.no_grad()
    def prepared(cls, module: Any, config: DecoderConfig, *, is_last: bool) -> "Layer":
        """Create a layer from prepared copies of a module's weights. The last layer computes queries separately
        from keys and values."""
        before, after = module.input_layernorm.weight, module.post_attention_layernorm.weight
        parts = _list_projections(module.self_attn, config)
        out, mlp = module.self_attn.o_proj.weight, module.mlp
        return cls(
            config,
            [_join_projections(group, before) for group in ([parts[:1], parts[1:]] if is_last else [parts])],
            packed(out),
            packed(mlp.gate_proj.weight * after),
            packed(mlp.up_proj.weight * after),
            packed(mlp.down_proj.weight),
        )

    def project(self, states: Tensor, rotation: Tensor, parts: slice = slice(None)) -> list[Tensor]:
        """Compute queries, keys and values from states, using the `projections` selected by `parts`. Each result
        has the shape (tokens, heads, width)."""
        normed = self._normalise(states, self.before)
        results: list[Tensor] = []
        for projection in self.projections[parts]:
            heads = product(normed, projection.weight, projection.bias).view(len(normed), -1, self.config.head_dim)
            results += torch.split(self._rotate(heads, projection.rotated, rotation), projection.heads, 1)
        return results

    def finish(self, attended: Tensor, states: Tensor) -> Tensor:
        """Return the states after this layer.

        `states` are the states before the layer, and `attended` is the result of its attention. Both have the shape
        (tokens, width).
        """
        states = product_plus(attended, self.out, states)
        normed = self._normalise(states, self.after)
        inner = product_times(normed, self.up, product_swish(normed, self.gate))
        return product_plus(inner, self.down, states)

    def _normalise(self, states: Tensor, weight: Tensor | None) -> Tensor:
        if weight is not None:
            return functional.rms_norm(states, states.shape[-1:], weight, self.config.rms_norm_eps)
        # PyTorch's own norm reads the states four times.
        squares: Tensor = torch.linalg.vector_norm(states, dim=-1, keepdim=True).square_()
        return states * squares.div_(states.shape[-1]).add_(self.config.rms_norm_eps).rsqrt_()

    def _rotate(self, heads: Tensor, count: int, rotation: Tensor) -> Tensor:
        """Rotate the first `count` of the heads. `heads` has the shape (tokens, heads, width).

        A prepared layer does this in place. For any other layer, `count` must be zero or the number of all heads.
        """
        if not count:
            return heads
        if self.before is None:
            pairs = torch.view_as_complex(heads[:, :count].view(len(heads), count, -1, 2))
            pairs.mul_(rotation)
            return heads
        (first, second), cos, sin = heads.chunk(2, dim=-1), rotation.real, rotation.imag
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(heads.dtype)


@dataclass(eq=False)
class Queries:
    """The queries of one input, at ascending `positions`, with the masks that the layers have in common."""

    positions: Tensor
    _masks: dict[tuple[int, int | None], tuple[slice, Tensor]] = field(default_factory=dict)

    def view(self, rows: slice, window: int | None, dtype: torch.dtype) -> tuple[slice, Tensor]:
        """Return the `View` of some of the queries in a causal layer that attends to `window` tokens, or to all."""
        if (rows.start, window) in self._masks:
            return self._masks[rows.start, window]
        positions = self.positions[rows, None]
        first = 0
        if window is not None:
            # PyTorch's kernel begins a block of keys at these positions, so it adds in the same order as with all
            # keys and a mask.
            first = max(0, int(positions.min()) - window + 1) // _BLOCK * _BLOCK
        places = torch.arange(first, int(positions.max()) + 1)
        visible = places <= positions
        visible = visible if window is None else visible & (places > positions - window)
        # From a boolean mask, PyTorch's kernel would compute these numbers again in each layer.
        mask = torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, -math.inf)
        view = slice(first, first + len(places)), mask
        if mask.numel() <= _KEPT_MASK:
            self._masks[rows.start, window] = view
        return view


@dataclass(eq=False)
class DecoderNetwork:
    """A stack of layers between an embedding and a final norm."""

    config: DecoderConfig
    embedding: Tensor
    layers: Sequence[Layer]
    norm: Tensor

    def __post_init__(self) -> None:
        self._frequencies = _frequencies(self.config)

    @classmethod
    def of(cls, module: Any, config: DecoderConfig, *, prepared: bool = False) -> "DecoderNetwork":
        """Create a network from the weights of a module that uses Transformers' names. If `prepared` is True, its
        layers use prepared copies of the weights."""
        last = len(module.layers) - 1
        layers = [
            Layer.prepared(layer, config, is_last=number == last) if prepared else Layer.of(layer, config)
            for number, layer in enumerate(module.layers)
        ]
        return cls(config, module.embed_tokens.weight.detach(), layers, module.norm.weight.detach())

    def states(
        self,
        ids: Tensor,
        positions: Tensor,
        attend: Attend,
        reads: Tensor | None = None,
        first: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Compute the hidden states of the tokens `ids` at `positions`, both of shape (tokens,).

        If `reads` is given, only the states of the tokens at these indices are returned. `first` gives the ids and
        positions for which the first layer computes queries, keys and values, instead of all tokens. This saves
        work if the tokens are prefixes of a few inputs, since these results depend only on token and position;
        `attend` must then expand them for the first layer.
        """
        rotation, states = self._rotation(positions), functional.embedding(ids, self.embedding)
        last = len(self.layers) - 1
        begin = (states, rotation)
        if first is not None:
            begin = functional.embedding(first[0], self.embedding), self._rotation(first[1])
        projected = self.layers[0].project(*begin)
        for number, layer in enumerate(self.layers):
            selected = reads if number == last else None
            query, key, value = projected
            attended = attend(number, query, key, value, len(ids), selected).flatten(1)
            if number == last:
                states = layer.finish(attended, states if selected is None else states[selected])
            else:
                trimmed = reads if number + 1 == last else None
                states, projected = self._run_between(
                    layer, self.layers[number + 1], states, attended, rotation, trimmed
                )
        return functional.rms_norm(states, states.shape[-1:], self.norm, self.config.rms_norm_eps)

    def _run_between(
        self,
        layer: Layer,
        following: Layer,
        states: Tensor,
        attended: Tensor,
        rotation: Tensor,
        reads: Tensor | None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Compute the states after `layer`, and the queries, keys and values of the next layer, `following`."""
        parts = slice(None) if reads is None else slice(1, None)
        if len(states) <= _WHOLE:
            states = layer.finish(attended, states)
            projected = following.project(states, rotation, parts)
        else:
            projected = []
            for start in range(0, len(states), _BLOCK):
                rows = slice(start, start + _BLOCK)
                states[rows] = layer.finish(attended[rows], states[rows])
                results = following.project(states[rows], rotation[rows], parts)
                projected = projected or [result.new_empty(len(states), *result.shape[1:]) for result in results]
                for whole, result in zip(projected, results, strict=True):
                    whole[rows] = result
        if reads is not None:
            projected = [*following.project(states[reads], rotation[reads], slice(1)), *projected]
        return states, projected

    def attention(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, queries: Queries | None = None
    ) -> Tensor:
        """Compute the attention of a layer within one input, for tensors of shape (rows, heads, tokens, width).

        None for `queries` means that every token has one.
        """
        tokens, window = key.shape[2], self.config.window(layer)
        slides = window is not None and tokens > window
        if not self.config.is_causal:
            return _attention(query, key, value, None)
        if queries is None and not slides:
            return _attention(query, key, value, None, is_causal=True)
        places = Queries(torch.arange(tokens)) if queries is None else queries
        return self.attention_within(query, key, value, lambda rows: places.view(rows, window, query.dtype))

    def attention_within(self, query: Tensor, key: Tensor, value: Tensor, view: View) -> Tensor:
        """Compute attention with a mask, for tensors of shape (rows, heads, tokens, width).

        The queries are taken in parts, and `view` is called for each part, so there is never a mask for all.
        """
        total = query.shape[2]
        size = total if total <= _WHOLE else _BLOCK
        parts = []
        for start in range(0, total, size):
            rows = slice(start, start + size)
            keys, mask = view(rows)
            parts.append(_attention(query[:, :, rows], key[:, :, keys], value[:, :, keys], mask))
        return torch.cat(parts, 2)

    def _rotation(self, positions: Tensor) -> Tensor:
        """Return `exp(i · position · frequency)` as an array of shape (tokens, 1, width / 2)."""
        angles = positions[:, None].float() * self._frequencies
        return torch.polar(torch.ones_like(angles), angles)[:, None]


def _attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *, is_causal: bool = False
) -> Tensor:
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=is_causal, enable_gqa=query.shape[1] != key.shape[1]
    )


def _list_projections(attention: Any, config: DecoderConfig) -> list[tuple[Any, int, bool]]:
    """Return, for queries, keys and values, the module, its head count and whether its heads are rotated."""
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    return [
        (attention.q_proj, heads, True),
        (attention.k_proj, kv_heads, True),
        (attention.v_proj, kv_heads, False),
    ]


def _join_projections(parts: Sequence[tuple[Any, int, bool]], norm: Tensor) -> _Projection:
    """Join several projections into one packed product that includes the preceding norm's weight."""
    weights: list[Tensor] = []
    biases: list[Tensor] = []
    for part, heads, is_rotated in parts:
        tensors = [part.weight * norm, *([] if part.bias is None else [part.bias])]
        weight, *bias = [_side_by_side(rows, heads) for rows in tensors] if is_rotated else tensors
        weights.append(weight)
        biases += bias
    counts = [heads for _, heads, _ in parts]
    rotated = sum(heads for _, heads, is_rotated in parts if is_rotated)
    return _Projection(packed(torch.cat(weights)), torch.cat(biases) if biases else None, counts, rotated)


def _side_by_side(rows: Tensor, heads: int) -> Tensor:
    """Reorder the rows of a weight or a bias so that the two numbers of each rotary pair are adjacent."""
    halves = rows.reshape(heads, 2, len(rows) // heads // 2, *rows.shape[1:])
    return halves.transpose(1, 2).reshape(rows.shape)


def _frequencies(config: DecoderConfig) -> Tensor:
    """Return the rotation angle per position for each pair of numbers in a head, as float32 on the CPU."""
    rope, width = config.rope_parameters, config.head_dim
    powers = torch.arange(0, width, 2, dtype=torch.int64, device="cpu").float() / width
    plain = 1.0 / float(rope["rope_theta"]) ** powers
    if rope["rope_type"] == "default":
        return plain
    # Llama 3.1: slow angles are divided, fast ones kept, and those between are mixed.
    factor, low, high, original = (float(rope[key]) for key in _LLAMA3)
    turns = original * plain / (2 * math.pi)
    share = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - share) * plain / factor + share * plain
