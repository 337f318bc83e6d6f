"""Small random checkpoints in the genuine file layouts, made by the tests that load them.

Those that others trained have their config keys, tensor names and kind of tokenizer, and are written by hand, not
by the code that reads them.
"""

import json
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForTokenClassification,
    LlamaConfig,
    PretrainedConfig,
    PreTrainedModel,
)

from stepsight.core.models.evaluator import save_evaluator
from stepsight.core.models.model import StepModel
from stepsight.core.prompts.encoding import Encoder
from stepsight.core.prompts.template import PromptTemplate
from stepsight.training.train.init import train_tokenizer
from tests import vocabularies

WORDS = ["What is 2 + 3?", "2 + 3 = 5.", "So the answer is 5.", "Check: 5 - 3 = 2."]


def tiny_tokenizer():
    return train_tokenizer(WORDS, 300)


def write_evaluator(folder, *, seed=0, layers=2, kv_heads=2, **config):
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
    "rope": True,
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


def llada_tensors(vocabulary, seed=0):
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


def write_llada(folder, *, with_head=True, **changes):
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
    write_shards(folder, tensors)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tensors


def write_shards(folder, tensors):
    """The tensors in two safetensors files, with their index."""
    names = sorted(tensors)
    weight_map = {}
    for shard, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-{shard:05d}-of-00002.safetensors"
        save_file({name: tensors[name].contiguous() for name in part}, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": sum(t.nbytes for t in tensors.values())}, "weight_map": weight_map})
    )


SMALL = {
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "initializer_range": 0.02,
    "tie_word_embeddings": False,
    "use_cache": True,
}
MISTRAL = SMALL | {
    "model_type": "mistral",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "rope_theta": 10000.0,
    "sliding_window": 4096,
    "torch_dtype": "float32",
    "transformers_version": "4.36.2",
}
REASONEVAL_7B = MISTRAL | {"architectures": ["ReasonEval_7B"], "score_dimension": 3, "use_bias": False}
REASONEVAL_34B = SMALL | {
    "architectures": ["ReasonEval_34B"],
    "model_type": "llama",
    "bias": True,
    "score_dim": 3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pretraining_tp": 1,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "torch_dtype": "float32",
}
MATH_SHEPHERD = MISTRAL | {"architectures": ["MistralForCausalLM"]}
QWEN_PRM = SMALL | {
    "architectures": ["Qwen2ForProcessRewardModel"],
    "auto_map": {
        "AutoConfig": "configuration_qwen2_rm.Qwen2RMConfig",
        "AutoModel": "modeling_qwen2_rm.Qwen2ForProcessRewardModel",
    },
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "max_window_layers": 28,
    "model_type": "qwen2",
    "rope_theta": 10000.0,
    "sliding_window": 4096,
    "use_sliding_window": False,
    "torch_dtype": "float32",
}
QWEN2 = {key: value for key, value in QWEN_PRM.items() if key != "auto_map"} | {
    "architectures": ["Qwen2ForCausalLM"]
}
GEMMA3 = SMALL | {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "head_dim": 8,
    "hidden_activation": "gelu_pytorch_tanh",
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "num_hidden_layers": 3,
    "query_pre_attn_scalar": 8,
    "rms_norm_eps": 1e-06,
    "rope_local_base_freq": 10000.0,
    "rope_theta": 1000000.0,
    "sliding_window": 9,
    "tie_word_embeddings": True,
    "torch_dtype": "float32",
    "use_bidirectional_attention": False,
}
SKYWORK = QWEN_PRM | {
    "architectures": ["Qwen2ForPrmModel"],
    "auto_map": {
        "AutoConfig": "configuration_qwen2_rm.Qwen2RMConfig",
        "AutoModel": "modeling_qwen2_rm.Qwen2ForPrmModel",
    },
    "tie_word_embeddings": True,
}
ACTPRM = QWEN_PRM | {
    "architectures": ["Qwen2ForEnsemblePRM"],
    "auto_map": {"AutoModel": "modeling_qwen2.Qwen2ForEnsemblePRM"},
    "num_ensemble": 5,
    "learning_probability": 0.5,
    "regularization_lambda": 0.1,
    "rr_token": "<extra_0>",
    "rr_token_id": None,
}
LLAMA3 = SMALL | {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "bos_token_id": 0,
    "eos_token_id": 1,
    "rope_theta": 500000.0,
    "torch_dtype": "float32",
}
LLEMMA = LLAMA3 | {"bos_token_id": 1, "eos_token_id": 2, "rope_theta": 10000.0}
DEEPSEEK = LLAMA3 | {"bos_token_id": 0, "rope_theta": 10000.0}


def random_model(config, kind=AutoModel, seed=0):
    """The network that a config.json describes, with weights large enough that every input matters."""
    torch.manual_seed(seed)
    values: PretrainedConfig = AutoConfig.for_model(**{k: v for k, v in config.items() if k != "auto_map"})
    model: PreTrainedModel = kind.from_config(values).eval()
    for name, parameter in model.named_parameters():
        scale = 0.3 if parameter.ndim > 1 or name.endswith("bias") else 0.1
        torch.nn.init.normal_(parameter, mean=float(parameter.ndim == 1 and name.endswith("weight")), std=scale)
    return model


def write_checkpoint(folder, config, tensors, tokenizer, special=None, card=None):
    """A folder as the hub gives it; `special` are the roles of tokens, such as pad_token, and `card` a
    stepsight.json added to it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(special or {}))
    if card is not None:
        (folder / "stepsight.json").write_text(json.dumps(card))


def write_reasoneval(folder, *, size="7B", card=None, tokenizer=None, **changes):
    """ReasonEval's layout: `7B`, whose pad token begins inputs too, or `34B`, with a bias. Returns the backbone and
    the head's tensors."""
    tokenizer = tokenizer or vocabularies.sentencepiece()
    pad = "<s>" if size == "7B" else "</s>"
    config = REASONEVAL_7B if size == "7B" else REASONEVAL_34B
    config = config | {"vocab_size": tokenizer.get_vocab_size()} | changes
    backbone = random_model(config)
    head = {"score_head.weight": torch.randn(3, config["hidden_size"])}
    if size == "34B":
        head["score_head.bias"] = torch.randn(3)
    tensors = {f"model.{name}": tensor for name, tensor in backbone.state_dict().items()} | head
    write_checkpoint(folder, config, tensors, tokenizer, {"bos_token": "<s>", "pad_token": pad}, card)
    return backbone, head


def write_math_shepherd(folder, *, card=None, **changes):
    """Math-Shepherd's layout, with the genuine ids of its tag and signs. Returns the backbone and the LM head."""
    tokenizer = vocabularies.sentencepiece(places=vocabularies.MISTRAL_IDS)
    config = MATH_SHEPHERD | {"vocab_size": tokenizer.get_vocab_size()} | changes
    backbone = random_model(config)
    head = torch.randn(config["vocab_size"], config["hidden_size"])
    tensors = {f"model.{name}": tensor for name, tensor in backbone.state_dict().items()} | {"lm_head.weight": head}
    write_checkpoint(folder, config, tensors, tokenizer, {"bos_token": "<s>"}, card)
    return backbone, head


def write_qwen_prm(folder, **changes):
    """Qwen2.5-Math-PRM's layout. Returns the backbone and the head's tensors."""
    tokenizer = vocabularies.byte_level()
    config = QWEN_PRM | {"vocab_size": tokenizer.get_vocab_size() + 5} | changes
    backbone = random_model(config)
    width = config["hidden_size"]
    # Logits are then of the same size at any width.
    spread = width**-0.5
    head = {
        "score.0.weight": 1.5 * spread * torch.randn(width, width),
        "score.0.bias": torch.randn(width),
        "score.2.weight": 5 * spread * torch.randn(2, width),
        "score.2.bias": torch.randn(2),
    }
    tensors = {f"model.{name}": tensor for name, tensor in backbone.state_dict().items()} | head
    write_checkpoint(folder, config, tensors, tokenizer, {"pad_token": "<|endoftext|>"})
    return backbone, head


_ENCODER = {
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "torch_dtype": "float32",
}
TOKEN_CLASSIFIERS: dict[str, dict[str, Any]] = {
    "bert": _ENCODER
    | {
        "architectures": ["BertForTokenClassification"],
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
        "type_vocab_size": 2,
    },
    "modernbert": _ENCODER
    | {
        "architectures": ["ModernBertForTokenClassification"],
        "hidden_activation": "gelu",
        "global_attn_every_n_layers": 2,
        "local_attention": 16,
        "global_rope_theta": 160000.0,
        "local_rope_theta": 10000.0,
        "norm_eps": 1e-05,
        "classifier_pooling": "mean",
    },
    "gemma2": SMALL
    | {
        "architectures": ["Gemma2ForTokenClassification"],
        "attn_logit_softcapping": 5.0,
        "head_dim": 8,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 8,
        "sliding_window": 16,
    },
    "eurobert": SMALL
    | {
        "architectures": ["EuroBertForTokenClassification"],
        "auto_map": {"AutoModelForTokenClassification": "modeling_eurobert.EuroBertForTokenClassification"},
        "rope_theta": 250000,
        "torch_dtype": "float32",
    },
    "llama": SMALL
    | {"architectures": ["LlamaForTokenClassification"], "rope_theta": 500000.0, "torch_dtype": "float32"},
    "qwen2": SMALL
    | {"architectures": ["Qwen2ForTokenClassification"], "rope_theta": 10000.0, "torch_dtype": "float32"},
    "roberta": _ENCODER
    | {"architectures": ["RobertaForTokenClassification"], "pad_token_id": 1, "type_vocab_size": 1},
}
GPT2 = {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 256}


def write_backbone(folder, kind, **changes):
    """A network of that `model_type` without a head, as Transformers saves it; returns it."""
    tokenizer = tiny_tokenizer()
    config = GPT2 if kind == "gpt2" else TOKEN_CLASSIFIERS.get(kind, {})
    config = config | {"model_type": kind, "vocab_size": tokenizer.get_vocab_size()}
    config |= {role: config.get(role) for role in ("bos_token_id", "eos_token_id", "pad_token_id")} | changes
    backbone = random_model(config)
    backbone.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return backbone


def write_token_classifier(folder, kind, *, card=None, tokenizer=None, **changes):
    """A token classifier of that `model_type` in Transformers' own layout, which it returns. Unless `card` says
    has a template, its stepsight.json names a line break as the separator."""
    special = {
        "bert": {},
        "modernbert": {},
        "eurobert": {"bos_token": "<|begin_of_text|>"},
        "gemma2": {},
        "qwen2": {},
        "roberta": {},
    }
    if tokenizer is None and kind == "bert":
        tokenizer = vocabularies.wordpiece()
    elif tokenizer is None and kind == "llama":
        tokenizer = vocabularies.sentencepiece()
    elif tokenizer is None:
        tokenizer = vocabularies.byte_level(("<|begin_of_text|>", "[CLS]", "[SEP]"), added=())
    config = TOKEN_CLASSIFIERS[kind] | {"model_type": kind, "vocab_size": tokenizer.get_vocab_size()}
    # Their defaults are ids of the genuine vocabularies.
    config |= {role: config.get(role) for role in ("bos_token_id", "eos_token_id", "pad_token_id")} | changes
    model = random_model(config, AutoModelForTokenClassification)
    if kind == "gemma2":
        # Other attention leaves out the cap on its logits.
        model.set_attn_implementation("eager")
    card = {"template": {"separator": "\n"}} | (card or {})
    write_checkpoint(folder, config, model.state_dict(), tokenizer, special.get(kind), card)
    return model


def pickled(folder, shards=1):
    """The folder with its weights as pickle files alone, as many repositories have them."""
    tensors = {
        name: tensor
        for path in sorted(folder.glob("model*.safetensors"))
        for name, tensor in load_file(path).items()
    }
    for path in folder.glob("model*.safetensors*"):
        path.unlink()
    if shards == 1:
        torch.save(tensors, folder / "pytorch_model.bin")
        return folder
    names = sorted(tensors)
    weight_map = {}
    for shard in range(shards):
        file = f"pytorch_model-{shard + 1:05d}-of-{shards:05d}.bin"
        torch.save({name: tensors[name] for name in names[shard::shards]}, folder / file)
        weight_map |= dict.fromkeys(names[shard::shards], file)
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return folder


def write_skywork(folder, *, card=None, **changes):
    """Skywork-o1-Open-PRM's layout, as safetensors. Returns the language model and the head's tensors."""
    tokenizer = vocabularies.byte_level(learnt=("\n", "\n\n"))
    config = SKYWORK | {"vocab_size": tokenizer.get_vocab_size() + 3} | changes
    model = random_model({**config, "architectures": ["Qwen2ForCausalLM"]}, AutoModelForCausalLM)
    head = {"v_head.summary.weight": torch.randn(1, config["hidden_size"]), "v_head.summary.bias": torch.randn(1)}
    write_checkpoint(folder, config, _untied(model) | head, tokenizer, {"bos_token": "<|endoftext|>"}, card)
    return model, head


def write_pqm(folder, base):
    """PQM's layout: weights alone, in a folder of their own, with one token more than their `base`, which is
    written beside them without weights. Returns the language model and the head's tensors."""
    tokenizer = vocabularies.byte_level(("<|begin_of_sentence|>",), added=(), bos="<|begin_of_sentence|>")
    config = DEEPSEEK | {"vocab_size": tokenizer.get_vocab_size() + 20}
    model = random_model(config | {"vocab_size": tokenizer.get_vocab_size() + 1}, AutoModelForCausalLM)
    write_checkpoint(base, config, {"unread": torch.zeros(1)}, tokenizer, {"bos_token": "<|begin_of_sentence|>"})
    (base / "model.safetensors").unlink()
    head = {"v_head.summary.weight": torch.randn(1, config["hidden_size"]), "v_head.summary.bias": torch.randn(1)}
    tensors = {f"pretrained_model.{name}": tensor for name, tensor in model.state_dict().items()} | head
    (folder / "zeta-2").mkdir(parents=True)
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / "zeta-2" / "model.safetensors")
    return model, head


def write_language_model(folder, config, tokenizer, special=None, card=None):
    """A language model in Transformers' own layout, which it returns."""
    model = random_model(config | {"vocab_size": tokenizer.get_vocab_size()}, AutoModelForCausalLM)
    config = config | {"vocab_size": tokenizer.get_vocab_size()}
    write_checkpoint(folder, config, _untied(model), tokenizer, special, card)
    return model


def write_actprm(folder, **changes):
    """ActPRM's layout. Returns the backbone and the heads' tensors."""
    tokenizer = vocabularies.byte_level(learnt=(" \n\n",))
    config = ACTPRM | {"vocab_size": tokenizer.get_vocab_size()} | changes
    backbone = random_model(config)
    heads, width, inner = config["num_ensemble"], config["hidden_size"], 16
    shapes = {"nn1": (heads, width, inner), "nn2": (heads, inner, inner), "nn_out": (heads, inner, 1)}
    head = {}
    for part in ("model", "reg_model"):
        for name, shape in shapes.items():
            head[f"score.{part}.{name}.weight"] = torch.randn(shape) / shape[1] ** 0.5
            head[f"score.{part}.{name}.bias"] = torch.randn(heads, shape[2])
    tensors = {f"model.{name}": tensor for name, tensor in backbone.state_dict().items()} | head
    write_checkpoint(folder, config, tensors, tokenizer, {"pad_token": "<|endoftext|>"})
    return backbone, head


def write_adapter(folder, base, tensors, targets=("q_proj", "v_proj"), *, rank=4, whole=None, **changes):
    """A LoRA adapter in PEFT's layout for the linear layers `targets` of a base with these tensors, with `whole`
    ones beside it. Returns its tensors."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "alpha_pattern": {},
        "base_model_name_or_path": base,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "lora_alpha": 32,
        "lora_dropout": 0.1,
        "modules_to_save": sorted({name.split(".")[-2] for name in whole or {}}) or None,
        "peft_type": "LORA",
        "r": rank,
        "rank_pattern": {},
        "revision": None,
        "target_modules": list(targets),
        "task_type": "CAUSAL_LM",
        "use_dora": False,
        "use_rslora": False,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config | changes))
    torch.manual_seed(7)
    adapter = {f"base_model.model.{name}": tensor for name, tensor in (whole or {}).items()}
    for name, tensor in tensors.items():
        if name.split(".")[-2] in targets and name.endswith("weight"):
            module = f"base_model.model.{name.removesuffix('.weight')}"
            adapter[f"{module}.lora_A.weight"] = 0.2 * torch.randn(rank, tensor.shape[1])
            adapter[f"{module}.lora_B.weight"] = 0.2 * torch.randn(tensor.shape[0], rank)
    save_file(adapter, folder / "adapter_model.safetensors", {"format": "pt"})
    return adapter


def _untied(model):
    """The tensors of a model, each once."""
    tied = bool(model.config.tie_word_embeddings)
    return {name: t for name, t in model.state_dict().items() if not (tied and name == "lm_head.weight")}
