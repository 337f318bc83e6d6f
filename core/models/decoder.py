"""Decoders of Llama's family on a processor: Llama, LLaDA, Mistral and Qwen2, as Transformers computes them.

Their layers are the same but for biases, sliding windows and the mask. They are here beside Transformers because
of what that takes: importing it takes longer than judging a trace with half a billion parameters, and its layers
compute row by row what is padded. Weights are mapped from the files, without a copy where they are stored in the
type that is asked for. What a config has beyond this family is left to Transformers: `read_decoder` is None then.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional

from stepsight.core.errors import UserError
from stepsight.core.models import llada
from stepsight.core.models.checkpoint import tensor_files
from stepsight.core.models.kernels import product, product_plus, product_swish, product_times

Attend = Callable[[int, Tensor, Tensor, Tensor, Tensor | None], Tensor]
"""Attention of a layer, by its number, from queries, shape (rows, heads, width), to keys and values, shape (tokens,
heads, width); last come the tokens that the queries stand for, None for all."""

_KINDS = ("llama", "mistral", "qwen2")
# What changes nothing of what is computed here at these values, and is left to Transformers at others.
_PLAIN: dict[str, tuple[object, ...]] = {
    "hidden_act": ("silu",),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "use_sliding_window": (False,),
    "partial_rotary_factor": (1.0, None),
    "quantization_config": (None,),
    "layer_types": (None,),
    "tie_word_embeddings": (False, True),
}
_PREFIXES = ("model.", "", "pretrained_model.model.")


@dataclass
class DecoderConfig:
    """The values of a config.json that the layers depend on, by Transformers' names."""

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
    sliding_window: int | None = None
    is_causal: bool = True
    hidden_act: str = "silu"
    attention_bias: bool = False
    mlp_bias: bool = False
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def biased(self) -> bool:
        """Whether queries, keys and values have biases."""
        return self.model_type == "qwen2"

    def to_dict(self) -> dict[str, Any]:
        """The whole config.json, as it was read, with the mask."""
        return {**self.values, "is_causal": self.is_causal}


def decoder_config(values: Mapping[str, Any], attention: str | None = None) -> DecoderConfig | None:
    """The config of a decoder of this family with the mask `attention`, the config's own where that is None; None
    where the config.json `values` say something else, or leave something open."""
    if llada.recognises(values):
        try:
            values = llada.backbone_values(values)
        except UserError:
            return None
    kind, is_causal = values.get("model_type"), values.get("is_causal", True)
    if kind not in _KINDS or not isinstance(is_causal, bool):
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
    window = values.get("sliding_window", 4096) if kind == "mistral" else None
    if rope is None or not all(type(number) is int and number > 0 for number in numbers.values()):
        return None
    numbers["head_dim"] = values.get("head_dim") or numbers["hidden_size"] // heads
    eps = values.get("rms_norm_eps", 1e-6)
    divides = numbers["hidden_size"] % heads == 0 and heads % numbers["num_key_value_heads"] == 0
    if not divides or type(numbers["head_dim"]) is not int or not isinstance(eps, float):
        return None
    # Only Llama's own layers have been seen to look ahead as they should.
    if not is_causal and kind != "llama":
        return None
    return DecoderConfig(
        model_type=kind, rms_norm_eps=eps, rope_parameters=rope, sliding_window=window, is_causal=is_causal,
        values=dict(values), **numbers,
    )  # fmt: skip


def _rope(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """The rotary embedding, as new configs have it or as old ones do; None where it is of a kind not known here."""
    rope = values.get("rope_parameters") or values.get("rope_scaling") or {}
    if not isinstance(rope, Mapping):
        return None
    rope = {"rope_theta": values.get("rope_theta", 10_000.0), **rope}
    kind = rope.setdefault("rope_type", rope.get("type", "default"))
    known = {"rope_type", "rope_theta", "type"} | (set(_LLAMA3) if kind == "llama3" else set())
    if kind not in ("default", "llama3") or set(rope) - known:
        return None
    needed = ["rope_theta", *(_LLAMA3 if kind == "llama3" else ())]
    return rope if all(isinstance(rope.get(key), int | float) for key in needed) else None


_LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")


class Decoder(nn.Module):
    """Hidden states of tokens. The weights have Transformers' names."""

    base_model_prefix = "model"
    _no_split_modules: ClassVar[list[str]] = []

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = Weights(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = Weights(config.hidden_size)
        self._frequencies = _frequencies(config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool = False,
    ) -> tuple[Tensor]:
        """Hidden states, shape (batch, tokens, hidden), of `input_ids`, shape (batch, tokens), right-padded where
        `attention_mask` is 0; with `past_key_values`, a cache as Transformers has it, after the tokens that it
        holds, which must not be padded."""
        rows, tokens = input_ids.shape
        before = int(past_key_values.get_seq_length()) if past_key_values is not None else 0
        masks = self._masks(before, tokens, attention_mask)

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor, _: Tensor | None) -> Tensor:
            query, key, value = (
                part.view(rows, tokens, *part.shape[1:]).transpose(1, 2) for part in (query, key, value)
            )
            if past_key_values is not None:
                key, value = past_key_values.update(key, value, layer)
            mask, is_causal = masks
            return self.attention(query, key, value, mask, is_causal=is_causal).transpose(1, 2).flatten(0, 1)

        positions = torch.arange(before, before + tokens).repeat(rows)
        return (self.states(input_ids.flatten(), positions, attend).view(rows, tokens, -1),)

    def states(self, ids: Tensor, positions: Tensor, attend: Attend, reads: Tensor | None = None) -> Tensor:
        """Hidden states of the tokens `ids` at `positions`, both of shape (tokens,); of those that `reads` names
        alone where it is not None."""
        angles = positions[:, None].float() * self._frequencies
        rotation = angles.cos()[:, None], angles.sin()[:, None]
        states = functional.embedding(ids, self.embed_tokens.weight)
        last = len(self.layers) - 1
        for number, layer in enumerate(self.layers):
            states = layer(states, rotation, attend, number, reads if number == last else None)
        return functional.rms_norm(states, states.shape[-1:], self.norm.weight, self.config.rms_norm_eps)

    def mask(self, queries: Tensor, tokens: int) -> Tensor:
        """Whether the tokens at the positions `queries` see each of the first `tokens`."""
        places = torch.arange(tokens)
        if not self.config.is_causal:
            return torch.ones(len(queries), tokens, dtype=torch.bool)
        seen = places <= queries[:, None]
        window = self.config.sliding_window
        return seen if window is None else seen & (places > queries[:, None] - window)

    def slides(self, tokens: int) -> bool:
        """Whether so many tokens are more than a window holds."""
        return self.config.sliding_window is not None and tokens > self.config.sliding_window

    def attention(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *, is_causal: bool
    ) -> Tensor:
        """Attention of tensors of shape (rows, heads, tokens, width)."""
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=is_causal, enable_gqa=query.shape[1] != key.shape[1]
        )

    def _masks(self, before: int, tokens: int, attention_mask: Tensor | None) -> tuple[Tensor | None, bool]:
        """A mask for the attention of a batch, and whether the plain causal one is enough."""
        if self.config.is_causal:
            # What pads an input stands behind it, where nothing looks.
            if not before and not self.slides(tokens):
                return None, True
            return self.mask(torch.arange(before, before + tokens), before + tokens), False
        if attention_mask is None or bool(attention_mask.all()):
            return None, False
        return attention_mask.bool()[:, None, None], False


class DecoderLayer(nn.Module):
    """Attention and MLP, each after a norm and added to what it reads."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        width, inner, head = config.hidden_size, config.intermediate_size, config.head_dim
        heads, kv_heads, eps = config.num_attention_heads, config.num_key_value_heads, config.rms_norm_eps
        self.self_attn = nn.ModuleDict(
            {
                "q_proj": Weights(heads * head, width, bias=config.biased),
                "k_proj": Weights(kv_heads * head, width, bias=config.biased),
                "v_proj": Weights(kv_heads * head, width, bias=config.biased),
                "o_proj": Weights(width, heads * head),
            }
        )
        self.mlp = nn.ModuleDict(
            {
                "gate_proj": Weights(inner, width),
                "up_proj": Weights(inner, width),
                "down_proj": Weights(width, inner),
            }
        )
        self.input_layernorm, self.post_attention_layernorm = Weights(width), Weights(width)
        self._head, self._eps = head, eps

    def forward(
        self, states: Tensor, rotation: tuple[Tensor, Tensor], attend: Attend, number: int, reads: Tensor | None
    ) -> Tensor:
        """The states, shape (tokens, hidden), after this layer, or those at `reads`, which is all that a last layer
        is asked for: its queries, its output and its MLP are computed there alone."""
        attn: Any = self.self_attn
        normed = self._normed(states, self.input_layernorm)
        key, value = (self._heads(normed, part) for part in (attn.k_proj, attn.v_proj))
        cos, sin = rotation
        key = _rotated(key, cos, sin)
        if reads is not None:
            states, normed, cos, sin = states[reads], normed[reads], cos[reads], sin[reads]
        query = _rotated(self._heads(normed, attn.q_proj), cos, sin)
        attended = attend(number, query, key, value, reads).flatten(1)
        states = product_plus(attended, attn.o_proj.weight, states)
        mlp: Any = self.mlp
        normed = self._normed(states, self.post_attention_layernorm)
        inner = product_times(normed, mlp.up_proj.weight, product_swish(normed, mlp.gate_proj.weight))
        return product_plus(inner, mlp.down_proj.weight, states)

    def _normed(self, states: Tensor, norm: "Weights") -> Tensor:
        return functional.rms_norm(states, states.shape[-1:], norm.weight, self._eps)

    def _heads(self, normed: Tensor, part: "Weights") -> Tensor:
        return product(normed, part.weight, part.bias).view(len(normed), -1, self._head)


class Weights(nn.Module):
    """A weight of that shape, with a bias for its rows where it has one; to be filled from a file."""

    def __init__(self, *shape: int, bias: bool = False) -> None:
        super().__init__()
        # PyTorch's own layers draw numbers even where there is no memory for them.
        self.weight = nn.Parameter(torch.empty(shape, device="meta"), requires_grad=False)
        rows = nn.Parameter(torch.empty(shape[0], device="meta"), requires_grad=False) if bias else None
        self.bias = rows


def read_decoder(
    folder: Path, values: Mapping[str, Any], dtype: torch.dtype, attention: str | None
) -> Decoder | None:
    """The decoder of a folder whose config.json holds `values`, its weights mapped from the files; None where it is
    another kind of network, or a tensor is missing or misshapen, which Transformers then says."""
    config = decoder_config(values, attention)
    if config is None:
        return None
    decoder = Decoder(config)
    shapes = {name: tensor.shape for name, tensor in decoder.state_dict().items()}
    files = tensor_files(folder)
    names = _names(set(shapes), set(files), values)
    if names is None:
        return None
    tensors: dict[str, Tensor] = {}
    for path in sorted({files[stored] for stored in names.values()}):
        with safe_open(path, framework="pt") as file:
            for name, stored in names.items():
                if files[stored] == path:
                    tensors[name] = file.get_tensor(stored).to(dtype)
    if any(tensors[name].shape != shape for name, shape in shapes.items()):
        return None
    decoder.load_state_dict(tensors, assign=True)
    return decoder.eval()


def _names(wanted: set[str], stored: set[str], values: Mapping[str, Any]) -> dict[str, str] | None:
    """The stored name of each weight, None where one is missing."""
    if llada.recognises(values):
        own = {llada.renamed(name): name for name in stored}
        return {name: own[name] for name in wanted} if wanted <= set(own) else None
    for prefix in _PREFIXES:
        if all(prefix + name in stored for name in wanted):
            return {name: prefix + name for name in wanted}
    return None


def _rotated(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Each pair of numbers, half a head apart, turned by its angle."""
    first, second = states.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(states.dtype)


def _frequencies(config: DecoderConfig) -> Tensor:
    """The angle between one position and the next, for each pair of numbers of a head; float32 on the processor."""
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
