"""Repositories as an attacker makes them. Each makes its reader fail, take all memory or forever, or leave its
folder; a few are sound after all. The random ones are made from a seed."""

import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.fuzz.mutations import changed_json, damaged
from tests.seeds import chance

Attack = Callable[[Path], None]

DAMAGED_MODELS, DAMAGED_TOKENIZERS = 28, 30
"""How many have random damage, besides those made by hand."""


def repositories():
    """What each does to the folder of a sound model, by a name that begins with the hostile part."""
    models = dict(_configs()) | dict(_cards()) | dict(_weights()) | dict(_adapters()) | dict(_damaged())
    return {f"model: {name}": attack for name, attack in models.items()} | {
        f"tokenizer: {name}": attack for name, attack in _tokenizers().items()
    }


def _changed(name, **changes):
    def attack(folder: Path) -> None:
        path = folder / name
        values = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(values | changes))

    return attack


def _written(name, content):
    return lambda folder: _write(folder / name, content)


def _write(path, content):
    path.write_bytes(content)


def _rewritten(name, change, seed):
    def attack(folder: Path) -> None:
        path = folder / name
        path.write_bytes(change(path.read_bytes(), chance(f"{name}:{seed}")))

    return attack


def _configs():
    for positions in (2**22, 2**30):
        yield f"{positions} positions", _changed("config.json", max_position_embeddings=positions)
        for kind in ("bert", "gpt2", "gptj", "codegen", "roberta"):
            sizes = {"n_positions": positions, "n_embd": 24, "n_layer": 2, "n_head": 2, "rotary_dim": 4}
            yield (
                f"{kind} of {positions} positions",
                _changed("config.json", model_type=kind, max_position_embeddings=positions, **sizes),
            )
    yield "2,000 layers", _changed("config.json", num_hidden_layers=2000)
    yield "wide", _changed("config.json", hidden_size=2**24, num_attention_heads=1, num_key_value_heads=1)
    yield "a large vocabulary", _changed("config.json", vocab_size=2**30)
    yield "a large rotation", _changed("config.json", rope_theta=1e-300, head_dim=2**20)
    yield "code", _changed("config.json", auto_map={"AutoModel": "evil.Evil"}, model_type="evil")
    yield "nested", _written("config.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000)
    yield "lists", _written("config.json", b"{" + b'"a":[' + b"[]," * 20_000_000 + b"[]]}")
    yield "no object", _written("config.json", b"[]")


def _cards():
    for place in ("../../../../..", "/", "/etc", "..", "/proc/self"):
        for key in ("subfolder", "base", "tokenizer", "reference"):
            yield f"{key} {place}", _changed("stepsight.json", **{key: place})
    step = "{number}" * 40 + "x{step}"
    yield "numbers", _changed("stepsight.json", template={"separator": "\n", "step": step})
    yield "a long prompt", _changed("stepsight.json", template={"prompt": "x" * 10**6 + "{problem}"})
    yield "a large card", _written("stepsight.json", b'{"a":[' + b"1," * 10**7 + b"1]}")
    loop = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"

    def looping(folder: Path) -> None:
        _changed("config.json", architectures=["Qwen2ForCausalLM"])(folder)
        _changed("stepsight.json", format="chat-two-token")(folder)
        _changed("tokenizer_config.json", chat_template=loop)(folder)

    yield "a template without end", looping


def _weights():
    def header(length: int, content: bytes = b"") -> bytes:
        return struct.pack("<Q", length) + content

    names = json.dumps({f"a{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(200_000)})
    huge = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 4]}}).encode()
    yield "an endless header", _written("model.safetensors", header(2**63))
    yield "a large header", _written("model.safetensors", header(len(names), names.encode()))
    yield "a shape of other size", _written("model.safetensors", header(len(huge), huge + b"1234"))
    yield "shards elsewhere", _written("model.safetensors.index.json", b'{"weight_map": {"a": "../../../x"}}')
    shards = json.dumps({"weight_map": {f"a{n}": f"{n}.safetensors" for n in range(200_000)}}).encode()
    yield "many shards", _written("model.safetensors.index.json", shards)

    def pickled(value: Any) -> Attack:
        def attack(folder: Path) -> None:
            (folder / "model.safetensors").unlink()
            torch.save(value(), folder / "pytorch_model.bin")

        return attack

    yield "strides", pickled(lambda: {"model.norm.weight": torch.zeros(1).expand(600_000_000)})
    shared = torch.zeros(1_000_000)
    yield "shared numbers", pickled(lambda: {f"a{n}": shared[:] for n in range(600)})

    def code(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(print))

    yield "code in a pickle", code


def _adapters():
    patterns = {"(a+)+$": 4, ".*" * 100: 4, "(\\w|\\w\\w)+!": 4}
    many = {f"layers.{number}": 4 for number in range(100_000)}
    for name, ranks in (("patterns", patterns), ("many ranks", many)):

        def adapter(folder: Path, ranks: dict[str, int] = ranks) -> None:
            (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
            config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "base_model_name_or_path": "/"}
            (folder / "adapter_config.json").write_text(json.dumps(config | {"rank_pattern": ranks}))

        yield name, adapter


def _damaged():
    files = ("config.json", "stepsight.json", "model.safetensors")
    for seed in range(DAMAGED_MODELS):
        name = files[seed % 3]
        change = damaged if name == "model.safetensors" or seed % 2 else changed_json
        yield f"{name} {seed}", _rewritten(name, change, seed)


def _tokenizers():
    attacks = dict(_normalizers()) | dict(_contradictions())
    for seed in range(DAMAGED_TOKENIZERS):
        attacks[f"changed {seed}"] = _rewritten("tokenizer.json", changed_json if seed % 2 else damaged, seed)
    return attacks


def _normalizers():
    def replacing(steps: list[tuple[dict[str, str], str]]) -> Attack:
        parts = [{"type": "Replace", "pattern": pattern, "content": content} for pattern, content in steps]
        return _changed("tokenizer.json", normalizer={"type": "Sequence", "normalizers": parts})

    for steps, width in ((9, 10), (3, 1000), (30, 2), (1, 10**7)):
        yield f"{steps} times {width}", replacing([({"String": "a"}, "a" * width)] * steps)
        yield f"{steps} times {width} by a pattern", replacing([({"Regex": "."}, "a" * width)] * steps)
    for pattern in ("(a+)+$", "(a|aa)+$", "(.*)*x", "((a*)*)*b", "(?=(a+))a*b", "^(([a-z])+.)+[A-Z]([a-z])+$"):
        yield f"the pattern {pattern}", replacing([({"Regex": pattern}, "a")])
        cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        yield f"a cut by {pattern}", _changed("tokenizer.json", pre_tokenizer=cut)
    yield "a prefix", _changed("tokenizer.json", normalizer={"type": "Prepend", "prepend": "a" * 10**7})
    charsmap = {"type": "Precompiled", "precompiled_charsmap": "AAAA" * 100}
    yield "a map of signs", _changed("tokenizer.json", normalizer=charsmap)


def _contradictions():
    single = [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    template = {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": {}}
    yield "a token without id", _changed("tokenizer.json", post_processor=template)
    models = {
        "no unknown token": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "none"},
        "merges of nothing": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]},
        "a merge without result": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]]},
        "no vocabulary": {"type": "BPE", "vocab": {}, "merges": []},
        "large ids": {"type": "WordLevel", "vocab": {"a": 2**32 - 1, "u": 2**32 - 2}, "unk_token": "u"},
        "no pieces": {"type": "Unigram", "vocab": [], "unk_id": 0},
        "an unknown piece": {"type": "Unigram", "vocab": [["a", -1.0]], "unk_id": 7},
        "endless scores": {"type": "Unigram", "vocab": [["a", -1e308], ["b", 1e308]], "unk_id": 0},
        "no words": {"type": "WordPiece", "vocab": {}, "unk_token": "", "continuing_subword_prefix": "##",
                     "max_input_chars_per_word": 0},
    }  # fmt: skip
    for name, model in models.items():
        yield name, _changed("tokenizer.json", model=model)
    added = [{"id": number, "content": f"<{number}>", "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": True, "special": False} for number in range(500, 60_500)]  # fmt: skip
    yield "many added tokens", _changed("tokenizer.json", added_tokens=added)
    yield "an empty token", _changed("tokenizer.json", added_tokens=[added[0] | {"content": ""}])
    nested: dict[str, Any] = {"type": "Lowercase"}
    for _ in range(90):
        nested = {"type": "Sequence", "normalizers": [nested]}
    yield "nested steps", _changed("tokenizer.json", normalizer=nested)
    yield "no file", lambda folder: (folder / "tokenizer.json").unlink()
    yield "lists alone", _written("tokenizer.json", b"[" * 200_000)
