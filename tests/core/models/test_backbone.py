import json

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaModel, RobertaConfig, RobertaModel

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.backbone import context_of, looks_ahead, main_device
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.pretrained import load_backbone
from stepsight.core.scoring.scorer import Scorer
from tests.checkpoints import write_evaluator, write_qwen_prm, write_reasoneval, write_token_classifier
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


def test_a_device_that_is_not_there_is_named(tmp_path):
    write_evaluator(tmp_path)
    with refused():
        load_evaluator(tmp_path, device="cuda:77")


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
