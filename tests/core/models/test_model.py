import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaModel, RobertaConfig, RobertaModel

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import (
    THREE_WAY,
    VALIDITY,
    Decoder,
    context_of,
    linear_head,
    looks_ahead,
    main_device,
    outputs_of,
    read_decoder,
)
from stepsight.core.models.network import DecoderNetwork, Queries, decoder_config
from stepsight.core.models.pretrained import load_backbone
from stepsight.core.scores import Outputs
from stepsight.core.scoring.scorer import Scorer
from tests.cases import each
from tests.checkpoints import (
    DEEPSEEK,
    LLAMA3,
    MISTRAL,
    QWEN2,
    random_model,
    write_evaluator,
    write_llada,
    write_qwen_prm,
    write_reasoneval,
    write_token_classifier,
)
from tests.conftest import ROOT
from tests.core.formats.by_hand import TRACES
from tests.messages import refused

TINY = {
    "vocab_size": 40,
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}
NO_TOKENS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


@pytest.mark.parametrize("causal", [True, False])
def test_a_backbones_view_of_later_tokens_is_tried_out(causal):
    torch.manual_seed(0)
    backbone = LlamaModel(LlamaConfig(**TINY, **NO_TOKENS, is_causal=causal)).train()
    assert looks_ahead(backbone) != causal
    assert backbone.training


def test_a_mask_that_depends_on_padding_is_refused():
    torch.manual_seed(0)
    config = RobertaConfig(**TINY, **NO_TOKENS | {"pad_token_id": 1})
    assert looks_ahead(RobertaModel(config))
    config.is_causal = True
    with refused():
        looks_ahead(RobertaModel(config))


def test_the_longest_input():
    assert context_of(LlamaModel(LlamaConfig(**TINY, **NO_TOKENS, max_position_embeddings=64))) == 64
    # RoBERTa's first position is that after padding's, 1 + 1.
    roberta = RobertaConfig(**TINY, max_position_embeddings=64, **NO_TOKENS | {"pad_token_id": 1})
    assert context_of(RobertaModel(roberta)) == 62


def test_an_unknown_model_type_is_refused_and_its_code_not_run(tmp_path):
    write_evaluator(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "modeling.py").write_text("raise SystemExit")
    auto = {"AutoConfig": "modeling.Config", "AutoModel": "modeling.Model"}
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "novel", "auto_map": auto}))
    with refused():
        load_evaluator(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config | {"auto_map": auto}))
    assert load_backbone(Checkpoint.open(tmp_path)).config.model_type == "llama"


SPLIT = {"layers.0": "cpu", "layers.1": "disk", "norm": "cpu", "rotary_emb": "cpu"}


@pytest.mark.parametrize(
    ("write", "device_map"),
    [
        (write_reasoneval, "auto"),
        (write_reasoneval, SPLIT | {"embed_tokens": "cpu"}),
        (write_qwen_prm, SPLIT | {"embed_tokens": "disk"}),
        (
            lambda folder: write_token_classifier(folder, "modernbert"),
            {"model.embeddings": "cpu", "model.layers": "disk", "model.final_norm": "cpu",
             "model.rotary_emb": "cpu", "head": "disk", "drop": "cpu", "classifier": "cpu"},
        ),
    ],
)  # fmt: skip
def test_layers_in_several_places_give_the_same_scores(tmp_path, write, device_map):
    write(tmp_path)
    whole, spread = load_evaluator(tmp_path), load_evaluator(tmp_path, device_map=device_map)
    places = {weight.device.type for weight in spread.model.parameters()}
    # What Accelerate keeps on disk has no device of its own.
    assert ("meta" in places) == (device_map != "auto")
    assert main_device(spread.model) == torch.device("cpu")
    first, second = (Scorer(one).score_one(TRACES[0]).result.packed for one in (whole, spread))
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert whole.fingerprint == spread.fingerprint


LLAMA31 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
FULL, SLIDING = "full_attention", "sliding_attention"
WINDOW = {"use_sliding_window": True, "sliding_window": 5}
NETWORKS = {
    "llama": LLAMA3,
    "one head of keys for all": LLAMA3 | {"num_key_value_heads": 1},
    "wide heads": LLAMA3 | {"head_dim": 10},
    "looks ahead": LLAMA3 | {"is_causal": False},
    "llama 3.1": LLAMA3 | {"rope_scaling": LLAMA31},
    "new rope": DEEPSEEK | {"rope_parameters": {"rope_type": "default", "rope_theta": 777.0}},
    "old rope beside new": LLAMA3 | {"rope_parameters": {"rope_theta": 777.0}, "rope_scaling": {"type": "default"}},
    "mistral": MISTRAL,
    "sliding": MISTRAL | {"sliding_window": 5},
    "without a window": MISTRAL | {"sliding_window": None},
    "layers of two kinds": MISTRAL | {"sliding_window": 5, "layer_types": [FULL, SLIDING]},
    "ministral": MISTRAL | {"model_type": "ministral", "head_dim": 6, "sliding_window": 5},
    "qwen2": QWEN2,
    "qwen2, saved again": QWEN2 | {"sliding_window": None, "layer_types": [FULL, FULL]},
    "qwen2, sliding": QWEN2 | WINDOW | {"max_window_layers": 1},
    "qwen2, sliding by kind": QWEN2 | WINDOW | {"max_window_layers": 0, "layer_types": [SLIDING, FULL]},
}


def written(folder, config, dtype=torch.float32):
    """The folder of a network with that config, whose tensors are returned."""
    config = config | {"vocab_size": 100, "bos_token_id": None, "eos_token_id": None}
    model = random_model(config)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {f"model.{name}": tensor.to(dtype) for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return config


@pytest.fixture(params=list(NETWORKS))
def pair(request, tmp_path):
    """A decoder, and the same network of Transformers'."""
    written(tmp_path / "net", NETWORKS[request.param])
    checkpoint = Checkpoint.open(tmp_path / "net")
    decoder = read_decoder(checkpoint, torch.float32, None)
    assert decoder is not None
    return decoder, load_backbone(checkpoint)


@torch.inference_mode()
def test_hidden_states_are_those_of_transformers(pair):
    decoder, theirs = pair
    ids = torch.randint(0, 100, (3, 70), generator=torch.manual_seed(0))
    mask = torch.ones_like(ids)
    mask[0, 50:] = mask[1, 7:] = 0
    ours, expected = (network(input_ids=ids, attention_mask=mask)[0] for network in (decoder, theirs))
    for row, length in enumerate((50, 7, 70)):
        torch.testing.assert_close(ours[row, :length], expected[row, :length], atol=2e-5, rtol=2e-5)


@torch.inference_mode()
@pytest.mark.parametrize(
    ("base", "change"),
    [
        (QWEN2, {"head_dim": None}),
        (MISTRAL | {"sliding_window": 5}, {"model_type": "ministral"}),
        (MISTRAL | {"sliding_window": None}, {"model_type": "ministral", "layer_types": [FULL, FULL]}),
    ],
)
def test_what_a_config_leaves_open_is_the_same_for_transformers(tmp_path, base, change):
    config = written(tmp_path / "net", base) | change
    (tmp_path / "net" / "config.json").write_text(json.dumps(config))
    ids = torch.randint(0, 100, (1, 20), generator=torch.manual_seed(0))
    checkpoint = Checkpoint.open(tmp_path / "net")
    decoder = read_decoder(checkpoint, torch.float32, None)
    torch.testing.assert_close(decoder(ids)[0], load_backbone(checkpoint)(ids)[0], atol=2e-5, rtol=2e-5)


@torch.inference_mode()
@pytest.mark.parametrize("prepared", [False, True])
def test_the_states_that_are_read_are_the_same_whichever_else_are(pair, prepared):
    decoder, _ = pair
    network = DecoderNetwork.of(decoder, decoder.config, prepared=prepared)
    ids = torch.randint(0, 100, (30,), generator=torch.manual_seed(2))
    positions, reads = torch.arange(30), torch.tensor([3, 3, 29])

    def attend(layer, query, key, value, tokens, read):
        queries = Queries(positions if read is None else read)
        parts = (part.transpose(0, 1)[None] for part in (query, key, value))
        return network.attention(layer, *parts, queries)[0].transpose(0, 1)

    whole = network.states(ids, positions, attend)
    torch.testing.assert_close(network.states(ids, positions, attend, reads), whole[reads], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(whole, decoder(ids[None])[0][0], atol=1e-5, rtol=1e-5)


@each(
    "change",
    [
        {"model_type": "llama", "layer_types": [FULL, SLIDING]},
        {"model_type": "qwen2", "sliding_window": 5, "layer_types": [FULL, SLIDING]},
        {"model_type": "mistral", "layer_types": [FULL, "chunked_attention"]},
        {"model_type": "mistral", "layer_types": [FULL]},
    ],
)
def test_kinds_of_layers_that_a_network_cannot_have_are_refused(tmp_path, change):
    config = MISTRAL | {"vocab_size": 100} | change
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert decoder_config(config) is None
    with refused():
        load_backbone(Checkpoint.open(tmp_path))


def test_llada_is_a_decoder_that_looks_ahead(tmp_path):
    write_llada(tmp_path / "llada")
    evaluator = load_evaluator(tmp_path / "llada")
    assert isinstance(evaluator.model.model, Decoder)
    assert not evaluator.model.config.is_causal


@each(
    "change",
    [
        {"model_type": "gemma3"},
        {"hidden_act": "gelu"},
        {"attention_bias": True},
        {"mlp_bias": True},
        {"quantization_config": {"bits": 4}},
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
        {"num_hidden_layers": "2"},
        {"num_attention_heads": 5},
        {"max_position_embeddings": None},
        {"rms_norm_eps": None},
        {"model_type": "mistral", "is_causal": False},
    ],
)
def test_an_unknown_network_is_left_to_transformers(change):
    assert decoder_config(LLAMA3 | {"vocab_size": 100}) is not None
    assert decoder_config(LLAMA3 | {"vocab_size": 100} | change) is None


def test_the_mask_of_the_card_counts_unless_the_config_has_another():
    values = LLAMA3 | {"vocab_size": 100}
    assert decoder_config(values, "bidirectional").is_causal is False
    assert decoder_config(values, "causal").is_causal is True
    # For Transformers' loader to refuse.
    assert decoder_config(values | {"is_causal": True}, "bidirectional") is None
    assert decoder_config(values, "sideways") is None


def test_scores_in_bfloat16_are_close_to_those_in_float32(tmp_path):
    """A number keeps 8 bits, so that a rounding is off by 2 ** -9 of it on average; with random weights as large as
    these, some tens of roundings add up."""
    write_token_classifier(tmp_path / "it", "qwen2")
    exact, rough = (load_evaluator(tmp_path / "it", dtype=dtype) for dtype in ("float32", "bfloat16"))
    found = [
        np.concatenate([one.offline.probs for one in Scorer(evaluator).score(TRACES, "offline")])
        for evaluator in (exact, rough)
    ]
    apart = np.abs(found[0] - found[1])
    assert 0 < apart.max() < 0.1
    assert np.median(apart) < 40 * 2**-9


# What a process holds beyond PyTorch and the like is told before and after the weights are loaded and used.
MEASURE = """
import sys
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
def held(key):
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key))
load_evaluator("mini-causal")
before = held("RssAnon:"), held("VmRSS:")
scorer = Scorer(load_evaluator(sys.argv[1], dtype=sys.argv[2]))
scorer.score_one(Trace.of("What is 2 + 3?", ["2 + 3 = 5.", "So 5."]))
print(held("RssAnon:") - before[0], held("VmHWM:") - before[1], "transformers" in sys.modules)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell what a process holds")
@pytest.mark.slow
def test_weights_are_mapped_without_a_second_copy_and_without_transformers(tmp_path):
    shape = {"hidden_size": 1024, "intermediate_size": 8192, "num_hidden_layers": 4, "num_attention_heads": 8}
    model = write_token_classifier(tmp_path / "it", "qwen2", **shape)
    size = 2 * sum(one.numel() for one in model.parameters())
    assert size > 200_000_000
    tensors = {name: tensor.bfloat16() for name, tensor in model.state_dict().items()}
    save_file(tensors, tmp_path / "it" / "model.safetensors", metadata={"format": "pt"})
    del model, tensors

    def measured(dtype):
        command = [sys.executable, "-c", MEASURE, str(tmp_path / "it"), dtype]
        result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
        own, peak, heavy = result.stdout.split()
        return int(own), int(peak), heavy

    own, peak, heavy = measured("bfloat16")
    assert own < 0.2 * size
    assert peak < 1.25 * size
    assert heavy == "False"
    # Another type is one copy, twice as large, beside what is read of the file.
    own, _, _ = measured("float32")
    assert 1.9 * size < own < 2.3 * size


STATES = torch.tensor([[1.0, 2.0], [-1.0, 0.5]])


def test_rows_are_put_in_the_order_of_the_labels():
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    head = linear_head(weight, torch.tensor([0.0, 10.0, 20.0]), (2, 0, 1))
    # neg is class 2: 1 + 2 + 20; neu class 0: 1 + 0; pos class 1: 2 + 10.
    assert head(STATES)[0].tolist() == [23.0, 1.0, 12.0]
    assert linear_head(weight).bias is None
    assert linear_head(weight)(STATES)[0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("bias", [None, torch.tensor([0.5, -0.5])])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_two_classes_leave_nothing_for_redundant(bias, dtype):
    weight = torch.tensor([[1.0, 1.0], [2.0, 0.0]]).to(dtype)
    bias = bias if bias is None else bias.to(dtype)
    probs = linear_head(weight, bias, VALIDITY)(STATES.to(dtype)).float().softmax(-1).detach().numpy()
    shift = 0.0 if bias is None else 1.0
    # The logits are 3 and 2, then -0.5 and -2; with the bias wrong gains 1 on right.
    validity = [1 / (1 + np.exp(3 - 2 + shift)), 1 / (1 + np.exp(-0.5 + 2 + shift))]
    np.testing.assert_allclose(probs[:, 2], validity, rtol=1e-6)
    np.testing.assert_allclose(probs[:, 0] + probs[:, 2], 1, rtol=1e-6)
    assert (probs[:, 1] == 0).all()


def test_rows_of_a_head_give_its_outputs():
    assert outputs_of(THREE_WAY) == outputs_of((2, 0, 1)) == Outputs.THREE_WAY
    assert outputs_of(VALIDITY) == outputs_of((1, None, 0)) == Outputs.VALIDITY
