"""Checkpoints of every family as other programs save them again: other keys, files and shards for the same values.

Each loads to the scores that it had. And configs with other values: our decoders compute what Transformers does of
them, leave them to it, or are refused with it.
"""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoConfig

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.hubs.checkpoint_files import TOKENIZER, WEIGHTS
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import read_decoder
from stepsight.core.models.pretrained import load_backbone
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import (
    LLAMA3,
    MISTRAL,
    QWEN2,
    pickled,
    random_model,
    write_actprm,
    write_evaluator,
    write_llada,
    write_math_shepherd,
    write_qwen_prm,
    write_reasoneval,
    write_shards,
    write_skywork,
    write_token_classifier,
)
from tests.fuzz.attack import COUNT
from tests.seeds import chance

Values = dict[str, Any]

TRACE = Trace.of("What is 2 + 3?", ["2 + 3 = 5.", "So $x$ is\n5."])
CONFIG, SETTINGS = "config.json", "tokenizer_config.json"
CARDS = {"bert": {"template": {"separator": "[SEP]"}}}
FAMILIES: dict[str, Callable[[Path], Any]] = {
    "own": write_evaluator,
    "llada": write_llada,
    "math-shepherd": lambda folder: write_math_shepherd(folder, card={"format": "math-shepherd"}),
    "reasoneval-7b": write_reasoneval,
    "reasoneval-34b": lambda folder: write_reasoneval(folder, size="34B"),
    "qwen-prm": write_qwen_prm,
    "skywork": write_skywork,
    "actprm": write_actprm,
    **{
        kind: lambda folder, kind=kind: write_token_classifier(folder, kind, card=CARDS.get(kind))
        for kind in ("bert", "modernbert", "gemma2", "eurobert", "llama", "qwen2", "roberta")
    },
}
# Of each family; loading one takes a tenth of a second.
EACH = max(2, COUNT // 10)


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPSIGHT_CACHE", str(tmp_path / "cache"))
    with warnings.catch_warnings():
        # Transformers tells what it thinks of values.
        warnings.simplefilter("ignore")
        yield


def scores(folder):
    """The scores of a folder, and who computes them."""
    evaluator = load_evaluator(folder)
    offline = Scorer(evaluator).score_one(TRACE, "offline").offline
    assert offline is not None
    return offline.probs, type(evaluator.model.model)


@pytest.mark.parametrize("family", FAMILIES)
def test_checkpoints_that_were_saved_again(family, tmp_path):
    sound = tmp_path / "sound"
    FAMILIES[family](sound)
    expected, network = scores(sound)
    for number in range(EACH):
        rng = chance(f"{family}:{number}")
        folder = tmp_path / str(number) / "sound"
        shutil.copytree(sound, folder)
        config = json.loads((folder / CONFIG).read_text())
        again = resaved(config, rng)
        (folder / CONFIG).write_text(json.dumps(again, indent=rng.choice([None, 2])))
        changes = [rng.choice(CHANGES) for _ in range(rng.randint(0, 2))]
        for change in changes:
            change(folder, rng)
        about = (family, number, [one.__name__ for one in changes], again)
        found, theirs = scores(folder)
        np.testing.assert_allclose(found, expected, atol=2e-5, err_msg=str(about))
        assert theirs == network, about


def resaved(values, rng):
    """A config with the same meaning."""
    values = dict(values)
    if values["model_type"] == "llada":
        # Null, missing and the value that LLaDA's layers have are the same.
        for name in rng.sample(["include_bias", "alibi", "activation_type", "weight_tying", "clip_qkv"], 3):
            values.pop(name, None)
            values |= {name: None} if rng.random() < 0.5 else {}
        values |= rng.choice(
            [{"n_kv_heads": None}, {"embedding_size": None}, {"rope_theta": int(values["rope_theta"])}]
        )
    else:
        values = _of_transformers(values, rng) if rng.random() < 0.3 else _by_hand(values, rng)
    if rng.random() < 0.5:
        values |= {"_name_or_path": "owner/name", "transformers_version": "4.57.1", "unsloth_fixed": True}
    if rng.random() < 0.3:
        values.pop("auto_map", None)
    if rng.random() < 0.3:
        values["quantization_config"] = None
    names = list(values)
    rng.shuffle(names)
    return {name: values[name] for name in names}


def _of_transformers(values, rng):
    """What the Transformers of today writes."""
    config = AutoConfig.for_model(**{key: value for key, value in values.items() if key != "auto_map"})
    written: Values = json.loads(config.to_json_string(use_diff=rng.random() < 0.5))
    # What only the authors' own code knows is kept by theirs.
    return {key: value for key, value in values.items() if key not in written and key != "torch_dtype"} | written


def _by_hand(values, rng):
    if "torch_dtype" in values and rng.random() < 0.5:
        values["dtype"] = values.pop("torch_dtype")
    if "rope_theta" in values and "rope_local_base_freq" not in values and "global_rope_theta" not in values:
        _move_rope(values, rng)
    if values["model_type"] in ("llama", "mistral", "qwen2"):
        if rng.random() < 0.4:
            values["head_dim"] = values["hidden_size"] // values["num_attention_heads"]
        if rng.random() < 0.4:
            kind = "sliding_attention" if values["model_type"] == "mistral" else "full_attention"
            values["layer_types"] = [kind] * values["num_hidden_layers"]
        if rng.random() < 0.4:
            values |= {"attention_dropout": 0.0, "attention_bias": False, "mlp_bias": False, "pretraining_tp": 1}
        if values["model_type"] == "qwen2" and rng.random() < 0.4:
            values |= {"use_sliding_window": False, "sliding_window": rng.choice([None, 4096, 7])}
    if "label2id" not in values and rng.random() < 0.2:
        values |= {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1}}
    return values


def _move_rope(values, rng):
    theta = values["rope_theta"]
    theta = rng.choice([theta, int(theta), float(theta)])
    way = rng.randrange(4)
    if way == 0:
        values |= {"rope_theta": theta, "rope_scaling": None}
    elif way == 1:
        values["rope_parameters"] = {"rope_type": "default", "rope_theta": theta}
    elif way == 2:
        del values["rope_theta"]
        values["rope_parameters"] = {"rope_theta": theta, "rope_type": "default"}
        values.pop("rope_scaling", None)
    else:
        values["rope_scaling"] = {"rope_type": "default"}


def shard(folder, rng):
    if (folder / WEIGHTS).is_file():
        tensors = load_file(folder / WEIGHTS)
        (folder / WEIGHTS).unlink()
        write_shards(folder, tensors)


def pickle_weights(folder, rng):
    if (folder / WEIGHTS).is_file():
        pickled(folder, rng.choice([1, 2]))


def save_tokenizer(folder, rng):
    Tokenizer.from_file(str(folder / TOKENIZER)).save(str(folder / TOKENIZER), pretty=rng.random() < 0.5)


def describe_tokens(folder, rng):
    """The roles of tokens as objects, and in the other file for them."""
    settings = json.loads((folder / SETTINGS).read_text()) if (folder / SETTINGS).is_file() else {}
    roles = {role: token for role, token in settings.items() if isinstance(token, str)}
    flags = dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word"), False)
    whole = {role: {"content": token, **flags} for role, token in roles.items()}
    if roles:
        kept = whole if rng.random() < 0.5 else {"model_max_length": 10**30}
        others = {key: value for key, value in settings.items() if key not in roles}
        (folder / SETTINGS).write_text(json.dumps(others | kept))
        (folder / "special_tokens_map.json").write_text(json.dumps(rng.choice([whole, roles])))


def move_added_tokens(folder, rng):
    """Tokens that tokenizer.json adds to its vocabulary, in the files beside it."""
    parts = json.loads((folder / TOKENIZER).read_text())
    known = set(parts["model"]["vocab"])
    moved = [token for token in parts["added_tokens"] if token["content"] not in known]
    if not moved:
        return
    parts["added_tokens"] = [token for token in parts["added_tokens"] if token["content"] in known]
    (folder / TOKENIZER).write_text(json.dumps(parts))
    settings = json.loads((folder / SETTINGS).read_text()) if (folder / SETTINGS).is_file() else {}
    decoder = {str(token["id"]): {key: value for key, value in token.items() if key != "id"} for token in moved}
    (folder / SETTINGS).write_text(json.dumps(settings | {"added_tokens_decoder": decoder}))


CHANGES = (shard, pickle_weights, save_tokenizer, describe_tokens, move_added_tokens)


BASES = {
    "llama": LLAMA3,
    "mistral": MISTRAL | {"sliding_window": 5},
    "qwen2": QWEN2 | {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
}
# Values that change the network; with some of them, no network has these weights.
VALUES: dict[str, tuple[Any, ...]] = {
    "hidden_act": ("gelu", "relu", "silu"),
    "attention_bias": (True, False),
    "mlp_bias": (True,),
    "sliding_window": (3, 5, 4096, None, 0, "5"),
    "use_sliding_window": (True, False),
    "max_window_layers": (0, 1, 2, 28),
    "layer_types": (
        ["full_attention"] * 2, ["sliding_attention"] * 2, ["full_attention", "sliding_attention"],
        ["full_attention"], ["chunked_attention"] * 2, None,
    ),
    "rope_theta": (777.0, 500000, None),
    "rope_parameters": ({"rope_type": "default", "rope_theta": 55.0}, {"rope_theta": 10_000.0}, None, {}),
    "rope_scaling": (
        {"type": "linear", "factor": 2.0}, {"rope_type": "dynamic", "factor": 2.0}, {"type": "default"},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 64},
    ),
    "partial_rotary_factor": (0.5, 1.0),
    "rms_norm_eps": (1e-2, 1, 1e-6),
    "head_dim": (6, 10, None),
    "num_attention_heads": (2, 4, 6),
    "num_key_value_heads": (1, 2, 4, None),
    "num_hidden_layers": (1, 3),
    "intermediate_size": (41,),
    "is_causal": (True, False),
    "tie_word_embeddings": (True,),
    "max_position_embeddings": (16,),
    "model_type": ("llama", "mistral", "qwen2", "ministral"),
}  # fmt: skip


# Keys that mean something together.
TOGETHER = (
    ("sliding_window", "use_sliding_window", "max_window_layers", "layer_types", "model_type"),
    ("rope_theta", "rope_parameters", "rope_scaling"),
    ("head_dim", "num_attention_heads", "num_key_value_heads", "model_type"),
)


def drawn_keys(rng):
    group = rng.choice((*TOGETHER[:2], *TOGETHER))
    return [*rng.sample(group, rng.randint(1, len(group) - 1)), *rng.sample(list(VALUES), rng.randint(0, 1))]


@torch.inference_mode()
@pytest.mark.parametrize("kind", BASES)
def test_decoders_of_any_config_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    base = BASES[kind] | {"vocab_size": 60, "bos_token_id": None, "eos_token_id": None}
    tensors = {f"model.{name}": tensor for name, tensor in random_model(base).state_dict().items()}
    save_file(tensors, tmp_path / WEIGHTS, metadata={"format": "pt"})
    ids = torch.randint(0, 60, (1, 40), generator=torch.manual_seed(0))
    outcomes = {"same": 0, "left": 0, "refused": 0}
    for number in range(max(10, COUNT // 3)):
        rng = chance(f"{kind}:{number}")
        changes = {key: rng.choice(VALUES[key]) for key in drawn_keys(rng)}
        values = base | changes
        (tmp_path / CONFIG).write_text(json.dumps(values))
        ours, theirs = read_both(tmp_path)
        outcomes["refused" if theirs is None else "left" if ours is None else "same"] += 1
        if ours is not None:
            assert theirs is not None, (kind, number, changes)
            states, expected = (network(input_ids=ids)[0].numpy() for network in (ours, theirs))
            about = f"{kind} {number} {changes}"
            np.testing.assert_allclose(states, expected, atol=2e-5, rtol=2e-5, err_msg=about)
    assert outcomes["same"] > sum(outcomes.values()) / 20, outcomes


def read_both(folder):
    """Our decoder, and the network of Transformers; None where it is refused, or where ours is left to theirs."""
    ours = None
    try:
        checkpoint = Checkpoint.open(folder)
        ours = read_decoder(checkpoint, torch.float32, None)
        return ours, load_backbone(checkpoint)
    except UserError:
        return ours, None
