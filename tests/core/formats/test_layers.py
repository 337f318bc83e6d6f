"""Heads that read any layer, or a mixture of all, against the layers run one by one."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.evaluator import save_evaluator
from stepsight.core.models.model import LayerMixture, StepModel
from stepsight.core.prompts.encoding import Encoder
from stepsight.core.prompts.template import PromptTemplate
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.scorer import fastest_forward
from tests.checkpoints import GEMMA3, random_model, tiny_tokenizer, write_backbone, write_evaluator
from tests.core.formats.by_hand import check_modes, softmax
from tests.messages import refused


@torch.inference_mode()
def after_layers(backbone, ids):
    """The states after each layer, the last as it leaves the layer, and the backbone's own result, (tokens, hidden)
    each."""
    states = []

    def keep(module, inputs, output):
        states.append((output if isinstance(output, torch.Tensor) else output[0])[0])

    handles = [layer.register_forward_hook(keep) for layer in backbone.layers]
    last = backbone(input_ids=torch.tensor([ids]))[0][0]
    for handle in handles:
        handle.remove()
    return states, last


def scaled(states):
    return states / (states.square().mean(-1, keepdim=True) + 1e-6).sqrt()


def rows_of(folder, evaluator, read):
    """The rows for `check_modes`: `read(layers, last)` turns the states of all layers into those for the head."""
    backbone = AutoModel.from_pretrained(folder).eval()
    backbone.config.is_causal = evaluator.attention == "causal"
    head = load_file(folder / "model.safetensors")["score.weight"]

    def rows(trace, j):
        encoded = evaluator.encode(trace)
        states = read(*after_layers(backbone, encoded.ids[: encoded.reads[j] + 1].tolist()))
        return softmax((states[encoded.reads[: j + 1]] @ head.T).numpy())

    return rows


def mixture_of(folder):
    shares = load_file(folder / "model.safetensors")["mixture.weight"].softmax(0)
    return lambda layers, last: sum(
        share * scaled(states) for share, states in zip(shares, [*layers[:-1], last], strict=True)
    )


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_a_mixture_of_layers(tmp_path, is_causal, layers):
    write_evaluator(tmp_path, layers=layers + 1, mixed=True, is_causal=is_causal)
    evaluator = load_evaluator(tmp_path)
    assert isinstance(fastest_forward(evaluator), PackedForward)
    check_modes(evaluator, rows_of(tmp_path, evaluator, mixture_of(tmp_path)))
    assert json.loads((tmp_path / "stepsight.json").read_text())["head"] == {"layers": "mixture"}


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("layer", [1, 2, 3])
def test_any_layer(tmp_path, is_causal, layer):
    write_evaluator(tmp_path, layers=3, is_causal=is_causal)
    whole = load_evaluator(tmp_path)
    card = json.loads((tmp_path / "stepsight.json").read_text())
    (tmp_path / "stepsight.json").write_text(json.dumps(card | {"head": {"layers": layer}}))
    evaluator = load_evaluator(tmp_path)
    assert len(evaluator.model.model.layers) == layer
    assert evaluator.fingerprint != whole.fingerprint
    norm = load_file(tmp_path / "model.safetensors")["model.norm.weight"]
    check_modes(evaluator, rows_of(tmp_path, evaluator, lambda layers, last: norm * scaled(layers[layer - 1])))


def write(folder, config, *, mixed):
    """An evaluator of ours on another backbone."""
    tokenizer = tiny_tokenizer()
    backbone = random_model(config | {"vocab_size": tokenizer.get_vocab_size()})
    model = StepModel(backbone, None, LayerMixture(config["num_hidden_layers"]) if mixed else None)
    torch.manual_seed(3)
    torch.nn.init.normal_(model.score.weight)
    if mixed:
        torch.nn.init.normal_(model.mixture.weight)
    save_evaluator(folder, model, Encoder(tokenizer, PromptTemplate()), {})
    return load_evaluator(folder)


def test_backbones_whose_layers_only_transformers_runs(tmp_path):
    evaluator = write(tmp_path, GEMMA3, mixed=True)
    assert not isinstance(fastest_forward(evaluator), PackedForward)
    check_modes(evaluator, rows_of(tmp_path, evaluator, mixture_of(tmp_path)))


def test_layers_of_several_kinds_are_left_out_with_their_kinds(tmp_path):
    write(tmp_path, GEMMA3, mixed=False)
    card = json.loads((tmp_path / "stepsight.json").read_text())
    (tmp_path / "stepsight.json").write_text(json.dumps(card | {"head": {"layers": 2}}))
    evaluator = load_evaluator(tmp_path)
    assert evaluator.model.config.layer_types == ["sliding_attention", "full_attention"]
    norm = load_file(tmp_path / "model.safetensors")["model.norm.weight"]
    # Gemma's norms multiply by one more than their weight.
    check_modes(evaluator, rows_of(tmp_path, evaluator, lambda layers, last: (1 + norm) * scaled(layers[1])))


def test_an_encoder_s_layers_can_be_mixed(tmp_path):
    backbone = write_backbone(tmp_path / "bert", "bert")
    mixture = LayerMixture(2)
    torch.nn.init.normal_(mixture.weight)
    model = StepModel(backbone, None, mixture)
    ids = torch.arange(5, 12)[None]
    with torch.inference_mode():
        states = backbone(input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True)
        read = model.states(input_ids=ids, attention_mask=torch.ones_like(ids))
        shares = mixture.weight.softmax(0)
        expected = sum(share * scaled(one) for share, one in zip(shares, states.hidden_states[1:], strict=True))
    torch.testing.assert_close(read, expected)


@pytest.mark.parametrize("head", [{"layers": 3}, {"layers": 0}, {"layers": True}, "first", {"layers": "mixture"}])
def test_a_head_that_makes_no_sense_is_named(tmp_path, head):
    write_evaluator(tmp_path)
    card = json.loads((tmp_path / "stepsight.json").read_text())
    (tmp_path / "stepsight.json").write_text(json.dumps(card | {"head": head}))
    with refused():
        load_evaluator(tmp_path)


def test_a_mixture_of_another_number_of_layers_is_named(tmp_path):
    write_evaluator(tmp_path, mixed=True)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["mixture.weight"] = torch.zeros(5)
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with refused():
        load_evaluator(tmp_path)


def test_a_mixture_begins_as_the_mean_of_all_layers():
    states = [torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 20.0]])]
    # The root mean squares are 5 / √2 and 20 / √2.
    expected = (np.array([3.0, 4.0]) / 5 + np.array([0.0, 1.0])) * np.sqrt(2) / 2
    np.testing.assert_allclose(LayerMixture(2)(states)[0].detach(), expected, rtol=1e-5)
