"""Checkpoints with random weights in the genuine dimensions and layouts of public evaluators, in bfloat16.

They are written tensor by tensor, so that one of many gigabytes needs little memory; random numbers repeat after
some millions, which costs a multiplication as much as others do.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer

from stepsight.training.synth.corpus import generate
from tests.vocabularies import pieces_of_qwen

Shapes = dict[str, tuple[int, ...]]

# Of Qwen's vocabulary: the tokens that texts are cut into, and those that were added to them.
_LEARNT = 151_643
_ADDED = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|unused_{n}|>" for n in range(5)), "<extra_0>")
_TRAINED = 8_000
_BLOCK = 8_000_000
_SHARD = 4_000_000_000


@dataclass(frozen=True)
class Dimensions:
    """Of a public evaluator: `head` are the shapes of its head's tensors, `config` is what its config.json has that
    not every Qwen2's does."""

    name: str
    layers: int
    width: int
    inner: int
    heads: int
    kv_heads: int
    vocabulary: int
    tied: bool
    config: dict[str, Any]
    head: Shapes

    @property
    def shapes(self) -> Shapes:
        """Of all its tensors, by name."""
        side = self.width // self.heads * self.kv_heads
        shapes: Shapes = {"model.embed_tokens.weight": (self.vocabulary, self.width)}
        for number in range(self.layers):
            layer = f"model.layers.{number}."
            for name, rows in (("q", self.width), ("k", side), ("v", side)):
                shapes[f"{layer}self_attn.{name}_proj.weight"] = (rows, self.width)
                shapes[f"{layer}self_attn.{name}_proj.bias"] = (rows,)
            shapes[f"{layer}self_attn.o_proj.weight"] = (self.width, self.width)
            shapes[f"{layer}mlp.gate_proj.weight"] = shapes[f"{layer}mlp.up_proj.weight"] = (self.inner, self.width)
            shapes[f"{layer}mlp.down_proj.weight"] = (self.width, self.inner)
            shapes[f"{layer}input_layernorm.weight"] = (self.width,)
            shapes[f"{layer}post_attention_layernorm.weight"] = (self.width,)
        return shapes | {"model.norm.weight": (self.width,)} | self.head

    def products(self, tokens: int, reads: int) -> int:
        """The multiplications with a weight in a trace: every token with the matrices of all layers, but those that
        follow the last one's keys and values are needed at the tokens that are read alone."""
        sizes = {name: prod(shape) for name, shape in self.shapes.items() if "_proj.weight" in name}
        last = f"model.layers.{self.layers - 1}."
        trimmed = sum(
            size
            for name, size in sizes.items()
            if name.startswith(last) and not name.endswith(("k_proj.weight", "v_proj.weight"))
        )
        return tokens * (sum(sizes.values()) - trimmed) + reads * trimmed

    @property
    def bytes(self) -> int:
        """Of all weights."""
        return 2 * sum(prod(shape) for shape in self.shapes.values())


HALF = Dimensions(
    "Qwen2.5-0.5B-PRM", 24, 896, 4864, 14, 2, 151_936, True,
    {"architectures": ["Qwen2ForTokenClassification"], "id2label": {"0": "wrong", "1": "right"}},
    {"score.weight": (2, 896), "score.bias": (2,)},
)  # fmt: skip
"""In the layout of TRL's token classifiers."""
ONE_AND_A_HALF = Dimensions(
    "Skywork-o1-Open-PRM-1.5B", 28, 1536, 8960, 12, 2, 151_936, True,
    {"architectures": ["Qwen2ForPrmModel"]},
    {"v_head.summary.weight": (1, 1536), "v_head.summary.bias": (1,)},
)  # fmt: skip
SEVEN = Dimensions(
    "Qwen2.5-Math-PRM-7B", 28, 3584, 18_944, 28, 4, 152_064, False,
    {"architectures": ["Qwen2ForProcessRewardModel"]},
    {
        "score.0.weight": (3584, 3584), "score.0.bias": (3584,),
        "score.2.weight": (2, 3584), "score.2.bias": (2,),
    },
)  # fmt: skip


def write_random(folder: Path, of: Dimensions) -> Path:
    """An evaluator's folder with random weights of these dimensions, below `folder`."""
    target = folder / of.name
    target.mkdir(parents=True)
    config = {
        "model_type": "qwen2", "hidden_size": of.width, "intermediate_size": of.inner,
        "num_hidden_layers": of.layers, "num_attention_heads": of.heads, "num_key_value_heads": of.kv_heads,
        "max_position_embeddings": 4096, "max_window_layers": of.layers, "hidden_act": "silu",
        "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "sliding_window": 4096, "use_sliding_window": False,
        "tie_word_embeddings": of.tied, "vocab_size": of.vocabulary, "torch_dtype": "bfloat16", "use_cache": True,
        "bos_token_id": 151_643, "eos_token_id": 151_645,
    }  # fmt: skip
    (target / "config.json").write_text(json.dumps(config | of.config))
    (target / "tokenizer.json").write_text(_tokenizer())
    (target / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<|endoftext|>"}))
    _write_shards(target, of.shapes)
    return target


def _write_shards(folder: Path, shapes: Shapes) -> None:
    torch.manual_seed(0)
    block = (0.02 * torch.randn(_BLOCK)).bfloat16()
    shards = list(_cut(shapes))
    files: dict[str, str] = {}
    for number, names in enumerate(shards, start=1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        _write_shard(folder / file, {name: shapes[name] for name in names}, block)
        files |= dict.fromkeys(names, file)
    if len(shards) == 1:
        (folder / files[next(iter(files))]).rename(folder / "model.safetensors")
    else:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))


def _cut(shapes: Shapes) -> Iterator[list[str]]:
    """The names in shards of at most 4 GB, as on the hub."""
    names: list[str] = []
    size = 0
    for name, shape in shapes.items():
        if names and size + 2 * prod(shape) > _SHARD:
            yield names
            names, size = [], 0
        names.append(name)
        size += 2 * prod(shape)
    yield names


def _write_shard(path: Path, shapes: Shapes, block: torch.Tensor) -> None:
    """A safetensors file: the length of its header, the header, and the tensors one after the other."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + 2 * prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            # Norms multiply by about one.
            own = block[: prod(shape)] + 1 if "norm" in name else block
            count = prod(shape)
            for start in range(0, count, _BLOCK):
                file.write(own[: count - start].view(torch.uint8).numpy().data)


@cache
def _tokenizer() -> str:
    """A byte-level tokenizer.json of Qwen's kind and size: the first tokens are learnt from synthetic solutions,
    the others join two beginnings of words, which never stand side by side."""
    texts = (text for trace in generate(0, 2000) for text in (trace.problem, *trace.substeps))
    tokenizer = pieces_of_qwen(texts, _TRAINED)
    parts = json.loads(tokenizer.to_str())
    vocabulary, merges = parts["model"]["vocab"], parts["model"]["merges"]
    words = [token for token in vocabulary if token.startswith("Ġ") and len(token) > 1]
    pairs = ((left, right) for left in words for right in words)
    while len(vocabulary) < _LEARNT:
        left, right = next(pairs)
        if left + right not in vocabulary:
            vocabulary[left + right] = len(vocabulary)
            merges.append([left, right])
    tokenizer = Tokenizer.from_str(json.dumps(parts))
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in _ADDED])
    return str(tokenizer.to_str())
