"""Small random checkpoints in the genuine file layouts, made by the tests that load them."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import LlamaConfig

from core.encoding import Encoder, PromptTemplate
from core.evaluator import save_evaluator
from core.model import StepModel
from training.tokenizer import train_tokenizer

WORDS = ["What is 2 + 3?", "2 + 3 = 5.", "So the answer is 5.", "Check: 5 - 3 = 2."]


def tiny_tokenizer() -> Tokenizer:
    return train_tokenizer(WORDS, 300)


def write_evaluator(folder: Path, *, seed: int = 0, layers: int = 2, kv_heads: int = 2, **config) -> Path:
    """An evaluator in StepSight's layout with weights large enough that every input matters."""
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    values = {"is_causal": False, "max_position_embeddings": 256} | config
    model = StepModel.from_config(
        LlamaConfig(
            vocab_size=tokenizer.get_vocab_size(),
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=kv_heads,
            bos_token_id=None,
            eos_token_id=None,
            **values,
        )
    )
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, mean=1.0 if parameter.ndim == 1 else 0.0, std=0.3)
    save_evaluator(folder, model, Encoder(tokenizer, PromptTemplate()), {"made": "by a test"})
    return folder


LLADA_CONFIG = {
    "architectures": ["LLaDAModelLM"],
    "auto_map": {
        "AutoConfig": "configuration_llada.LLaDAConfig",
        "AutoModelForCausalLM": "modeling_llada.LLaDAModelLM",
    },
    "model_type": "llada",
    "d_model": 24,
    "n_layers": 2,
    "n_heads": 3,
    "n_kv_heads": 3,
    "mlp_hidden_size": 40,
    "max_sequence_length": 128,
    "rope_theta": 500000.0,
    "rms_norm_eps": 1e-05,
    "include_bias": False,
    "include_qkv_bias": False,
    "alibi": False,
    "weight_tying": False,
    "block_type": "llama",
    "activation_type": "silu",
    "eos_token_id": 126081,
    "pad_token_id": 126081,
    "mask_token_id": 126336,
}


def llada_tensors(vocabulary: int, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random weights under LLaDA's own names."""
    torch.manual_seed(seed)
    width, mlp = LLADA_CONFIG["d_model"], LLADA_CONFIG["mlp_hidden_size"]
    prefix = "model.transformer."
    tensors = {
        f"{prefix}wte.weight": torch.randn(vocabulary, width),
        f"{prefix}ln_f.weight": 1 + 0.3 * torch.randn(width),
        f"{prefix}ff_out.weight": torch.randn(vocabulary, width),
    }
    for i in range(LLADA_CONFIG["n_layers"]):
        block = f"{prefix}blocks.{i}."
        for name in ("q_proj", "k_proj", "v_proj", "attn_out"):
            tensors[f"{block}{name}.weight"] = 0.3 * torch.randn(width, width)
        for name in ("ff_proj", "up_proj"):
            tensors[f"{block}{name}.weight"] = 0.3 * torch.randn(mlp, width)
        tensors[f"{block}ff_out.weight"] = 0.3 * torch.randn(width, mlp)
        for name in ("attn_norm", "ff_norm"):
            tensors[f"{block}{name}.weight"] = 1 + 0.3 * torch.randn(width)
    return tensors


def write_llada(folder: Path, *, with_head: bool = True, **changes: Any) -> dict[str, torch.Tensor]:
    """A checkpoint in LLaDA's layout, sharded in two; with a head it is an evaluator. Returns its tensors."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tiny_tokenizer()
    tensors = llada_tensors(tokenizer.get_vocab_size())
    if with_head:
        tensors["score_head.weight"] = torch.randn(3, LLADA_CONFIG["d_model"])
        card = {"attention": "bidirectional", "template": PromptTemplate().to_dict()}
        (folder / "stepsight.json").write_text(json.dumps(card))
    config = LLADA_CONFIG | {
        "embedding_size": tokenizer.get_vocab_size(),
        "vocab_size": tokenizer.get_vocab_size(),
        **changes,
    }
    (folder / "config.json").write_text(json.dumps(config))
    names = sorted(tensors)
    weight_map = {}
    for shard, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-{shard:05d}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": sum(t.nbytes for t in tensors.values())}, "weight_map": weight_map})
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return tensors
