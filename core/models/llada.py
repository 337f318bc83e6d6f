"""LLaDA's own names for configuration and weights, handled without its remote code.

LLaDA is Llama with a different attention mask: it has the same layers under other names, and attends in both
directions. Its `config.json`, abbreviated:

    {"model_type": "llada", "d_model": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 32,
     "mlp_hidden_size": 12288, "embedding_size": 126464, "rope_theta": 500000.0, "rms_norm_eps": 1e-05,
     "max_sequence_length": 4096, "include_bias": false, "weight_tying": false}
"""

import re
from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError

NAME = "llada"

_NEEDED = ("d_model", "n_layers", "n_heads", "mlp_hidden_size", "max_sequence_length")

# Values in LLaDA's `config.json` for which its layers are those of Llama. With others except null, they are not.
_AS_LLAMA = {
    "include_bias": False,
    "include_qkv_bias": False,
    "bias_for_layer_norm": False,
    "alibi": False,
    "rope": True,
    "block_type": "llama",
    "activation_type": "silu",
    "layer_norm_type": "rms",
    "layer_norm_with_affine": True,
    "attention_layer_norm": False,
    "input_emb_norm": False,
    "scale_logits": False,
    "clip_qkv": None,
}

# The keys among them for which LLaDA's own code has a different default.
_STATED = ("rope", "block_type")

# Regular expressions over tensor names; the top-level `ff_out` is the language-modelling head, which we drop.
NAMES = {
    r"^model\.transformer\.wte\.": "embed_tokens.",
    r"^model\.transformer\.ln_f\.": "norm.",
    r"^model\.transformer\.blocks\.(\d+)\.q_proj\.": r"layers.\1.self_attn.q_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.k_proj\.": r"layers.\1.self_attn.k_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.v_proj\.": r"layers.\1.self_attn.v_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.attn_out\.": r"layers.\1.self_attn.o_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_proj\.": r"layers.\1.mlp.gate_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.up_proj\.": r"layers.\1.mlp.up_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_out\.": r"layers.\1.mlp.down_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.attn_norm\.": r"layers.\1.input_layernorm.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_norm\.": r"layers.\1.post_attention_layernorm.",
}


def recognises(config: Mapping[str, Any]) -> bool:
    """True if a `config.json` describes a LLaDA model."""
    return config.get("model_type") == "llada" or ("d_model" in config and "mlp_hidden_size" in config)


def renamed(name: str) -> str:
    """Translate the name of a weight or module in LLaDA's layers to Llama's. Other names are returned unchanged."""
    for pattern, other in NAMES.items():
        translated, count = re.subn(pattern, other, f"{name}.")
        if count:
            return translated.removesuffix(".")
    return name


def backbone_values(config: Mapping[str, Any]) -> dict[str, Any]:
    """Translate LLaDA's `config.json` into the arguments of a `LlamaConfig` with bidirectional attention. Raises
    `UserError`, with a message that names the key, if a key is missing or has a value that Llama's layers cannot
    express."""
    for key in _NEEDED:
        if not isinstance(config.get(key), int):
            raise UserError(f"config.json: the key {key!r} is missing or not a whole number.")
    theta = config.get("rope_theta")
    if isinstance(theta, bool) or not isinstance(theta, int | float):
        raise UserError(
            "config.json: the key 'rope_theta' is missing or not a number.",
            "Copy config.json again: LLaDA's own code would use 10000, which no published checkpoint uses.",
        )
    for key in _STATED:
        if config.get(key) is None:
            raise UserError(
                f"config.json: the key {key!r} is missing.",
                "Copy config.json again: without it, LLaDA's own code builds layers unlike the published ones.",
            )
    for key, expected in _AS_LLAMA.items():
        if config.get(key) not in (None, expected):
            raise UserError(
                f"config.json: {key} is {config[key]!r:.60}, expected {expected!r} for a LLaDA checkpoint.",
                "Its layers are not those of Llama, which StepSight would compute instead.",
            )
    vocabulary = config.get("embedding_size") or config.get("vocab_size")
    if not isinstance(vocabulary, int):
        raise UserError("config.json: neither 'embedding_size' nor 'vocab_size' is a whole number.")
    return {
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": config["d_model"],
        "num_hidden_layers": config["n_layers"],
        "num_attention_heads": config["n_heads"],
        "num_key_value_heads": _kv_heads(config),
        "intermediate_size": config["mlp_hidden_size"],
        "max_position_embeddings": config["max_sequence_length"],
        "rms_norm_eps": config.get("rms_norm_eps", 1e-5),
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "is_causal": False,
    }


def _kv_heads(config: Mapping[str, Any]) -> int:
    """Return the number of key and value heads, by the rule of LLaDA's own code. Raises `UserError` if the two keys
    that give it contradict each other."""
    heads, own, single = config["n_heads"], config.get("n_kv_heads"), config.get("multi_query_attention")
    if single is None:
        return int(own or heads)
    expected = 1 if single else int(heads)
    if own not in (None, expected):
        raise UserError(
            f"config.json: n_kv_heads is {own}, but multi_query_attention {single!r:.60} means {expected}.",
            "Copy it again.",
        )
    return expected
