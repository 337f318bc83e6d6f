"""LLaDA's layers computed here from the paper's formulas, against what the loader gives."""

import json

import numpy as np
import pytest
import torch

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.llada import backbone_values
from stepsight.core.models.pretrained import load_backbone
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.cases import each
from tests.checkpoints import LLADA_CONFIG, write_llada
from tests.messages import refused

HEADS = LLADA_CONFIG["n_heads"]
WIDTH = LLADA_CONFIG["d_model"] // HEADS


def norm(x, weight):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + LLADA_CONFIG["rms_norm_eps"]) * weight


def rotate(x):
    """Rotary embedding of (tokens, heads, width): halves (a, b) become (a cos - b sin, b cos + a sin)."""
    frequency = LLADA_CONFIG["rope_theta"] ** (-np.arange(0, WIDTH, 2) / WIDTH)
    angle = np.arange(len(x))[:, None, None] * frequency
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)


def attend(q, k, v):
    """softmax(q k' / sqrt(width)) v per head, every position seeing the full input (M^full = 0)."""
    q, k, v = (x.reshape(len(x), HEADS, WIDTH) for x in (q, k, v))
    logits = np.einsum("thd,shd->hts", rotate(q), rotate(k)) / np.sqrt(WIDTH)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("hts,shd->thd", weights, v).reshape(len(q), -1)


def hidden_states(tensors, ids):
    w = {name.removeprefix("model.transformer."): t.numpy().astype(np.float64) for name, t in tensors.items()}
    x = w["wte.weight"][ids]
    for i in range(LLADA_CONFIG["n_layers"]):
        b = f"blocks.{i}."
        y = norm(x, w[f"{b}attn_norm.weight"])
        projected = [y @ w[f"{b}{name}.weight"].T for name in ("q_proj", "k_proj", "v_proj")]
        x = x + attend(*projected) @ w[f"{b}attn_out.weight"].T
        y = norm(x, w[f"{b}ff_norm.weight"])
        gate = y @ w[f"{b}ff_proj.weight"].T
        up = y @ w[f"{b}up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[f"{b}ff_out.weight"].T
    return norm(x, w["ln_f.weight"])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llada") / "llada-tiny"
    return folder, write_llada(folder)


def test_hidden_states_equal_the_formulas(checkpoint):
    folder, tensors = checkpoint
    ids = np.random.default_rng(0).integers(0, 250, 40)
    with torch.inference_mode():
        network = load_backbone(Checkpoint.open(folder))
        ours = network(input_ids=torch.from_numpy(ids)[None], use_cache=False)[0][0].numpy()
    np.testing.assert_allclose(ours, hidden_states(tensors, ids), atol=2e-5)


def test_scores_equal_the_formulas(checkpoint):
    folder, tensors = checkpoint
    evaluator = load_evaluator(folder)
    assert (evaluator.format, evaluator.attention, evaluator.context) == ("llada", "bidirectional", 128)
    trace = Trace.of("What is 2 + 3?", ["2 + 3 = 5.", "So the answer is 5."])
    encoded = evaluator.encode(trace)
    logits = hidden_states(tensors, encoded.ids)[encoded.ends] @ tensors["score_head.weight"].numpy().T
    expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(Scorer(evaluator).score_one(trace, "offline").offline.probs, expected, atol=1e-5)


def test_a_base_model_has_no_score_head(tmp_path):
    write_llada(tmp_path / "base", with_head=False)
    with refused():
        load_evaluator(tmp_path / "base")


@pytest.mark.parametrize(
    "change",
    [
        {"n_layers": None},
        {"include_bias": True},
        {"bias_for_layer_norm": True},
        {"rope": False},
        {"rope": None},
        {"block_type": "sequential"},
        {"block_type": None},
        {"activation_type": "swiglu"},
        {"layer_norm_type": "default"},
        {"layer_norm_with_affine": False},
        {"attention_layer_norm": True},
        {"input_emb_norm": True},
        {"scale_logits": True},
        {"clip_qkv": 8.0},
        {"layer_norm_type": "x" * 1000},
        {"rope_theta": None},
        {"n_kv_heads": 3, "multi_query_attention": True},
        {"n_kv_heads": 1, "multi_query_attention": False},
    ],
)
def test_a_config_that_llama_cannot_express_is_refused(tmp_path, change):
    write_llada(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | change
    (tmp_path / "config.json").write_text(json.dumps(config))
    with refused():
        load_backbone(Checkpoint.open(tmp_path))


def test_values_that_a_config_omits_are_llamas(tmp_path):
    write_llada(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for key in ("bias_for_layer_norm", "clip_qkv", "alibi"):
        assert backbone_values(config | {key: None})["hidden_size"] == config["d_model"]


@each(
    "keys, heads",
    [
        ({}, 3),
        ({"multi_query_attention": True}, 1),
        ({"multi_query_attention": False}, 3),
        ({"n_kv_heads": 1}, 1),
        ({"n_kv_heads": 1, "multi_query_attention": True}, 1),
        ({"n_kv_heads": 3, "multi_query_attention": None}, 3),
    ],
)
def test_either_key_gives_the_heads_of_keys_and_values(keys, heads):
    config = {key: value for key, value in LLADA_CONFIG.items() if key != "n_kv_heads"} | {"vocab_size": 300}
    assert backbone_values(config | keys)["num_key_value_heads"] == heads


def test_the_vocabulary_may_stand_under_either_key(tmp_path):
    write_llada(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    size = config.pop("embedding_size")
    for keys in ({"embedding_size": size}, {"vocab_size": size}, {"embedding_size": size, "vocab_size": size - 1}):
        values = {key: value for key, value in config.items() if key != "vocab_size"} | keys
        assert backbone_values(values)["vocab_size"] == size
