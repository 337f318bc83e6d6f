import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from stepsight.core.evaluators import loading
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.evaluator import save_evaluator
from stepsight.core.models.location import can_load
from stepsight.core.models.model import StepModel
from stepsight.core.prompts.encoding import Encoder
from stepsight.core.prompts.template import PromptTemplate, Read
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.scoring.scorer import Scorer
from tests.checkpoints import tiny_tokenizer, write_backbone, write_evaluator, write_math_shepherd, write_reasoneval
from tests.core.formats.by_hand import TRACES
from tests.messages import refused


@pytest.fixture
def folder(tmp_path):
    return write_evaluator(tmp_path / "tiny")


def edit_weights(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def edit_json(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_saved_evaluator_comes_back_with_the_same_weights(folder):
    evaluator = load_evaluator(folder)
    assert (evaluator.name, evaluator.attention, evaluator.format) == ("tiny", "bidirectional", "stepsight")
    assert evaluator.provenance == {"made": "by a test"}
    stored = load_file(folder / "model.safetensors")
    for name, tensor in evaluator.model.state_dict().items():
        assert torch.equal(tensor, stored[name]), name


def test_the_fingerprint_follows_weights_template_and_mask(folder, tmp_path):
    original = load_evaluator(folder).fingerprint
    assert load_evaluator(folder).fingerprint == original
    other = load_evaluator(write_evaluator(tmp_path / "causal", is_causal=True)).fingerprint
    edit_weights(folder, lambda tensors: tensors["score.weight"].mul_(1.01))
    changed = load_evaluator(folder).fingerprint
    assert len({original, other, changed}) == 3


def test_the_mask_is_the_only_difference_of_a_pair(folder, tmp_path):
    twin = write_evaluator(tmp_path / "twin", is_causal=True)
    ours, theirs = (json.loads((path / "config.json").read_text()) for path in (folder, twin))
    assert {key for key in ours if ours[key] != theirs[key]} == {"is_causal"}
    assert load_evaluator(twin).attention == "causal"


def test_a_folder_without_an_evaluator_is_refused(tmp_path):
    with refused():
        load_evaluator(tmp_path / "nowhere")
    with refused():
        load_evaluator(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with refused():
        load_evaluator(tmp_path)


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    with refused():
        load_evaluator(folder)


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json", "stepsight.json"])
def test_a_damaged_file_is_named(folder, file):
    (folder / file).write_bytes(b"\x10{not whole")
    with refused():
        load_evaluator(folder)


def test_missing_and_misshapen_tensors_are_named(folder):
    name = "model.layers.1.mlp.up_proj.weight"
    edit_weights(folder, lambda tensors: tensors.update({name: torch.zeros(2, 2)}))
    with refused():
        load_evaluator(folder)
    edit_weights(folder, lambda tensors: tensors.pop(name))
    with refused():
        load_evaluator(folder)


def test_config_and_card_must_agree_on_the_mask(folder):
    edit_json(folder / "stepsight.json", attention="causal")
    with refused():
        load_evaluator(folder)
    edit_json(folder / "stepsight.json", attention="sideways")
    with refused():
        load_evaluator(folder)


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("config.json", {"hidden_size": "abc"}),
        ("config.json", {"num_attention_heads": 5}),
        ("stepsight.json", {"version": 2}),
        ("stepsight.json", {"thresholds": {"valid": 0.5}}),
        ("stepsight.json", {"thresholds": {"validity": 5}}),
        ("stepsight.json", {"thresholds": None}),
        ("stepsight.json", {"template": None}),
        ("stepsight.json", {"template": {"prompt": 3}}),
        ("stepsight.json", {"template": {"separator": "<no>"}}),
        ("config.json", {"num_attention_heads": 1025}),
    ],
)
def test_a_value_that_makes_no_sense_is_named(folder, file, change):
    edit_json(folder / file, **change)
    with refused():
        load_evaluator(folder)


def test_a_folder_with_a_config_can_be_loaded(folder):
    assert can_load(folder)
    assert can_load("mini-bidir")
    assert not can_load("nowhere")
    assert not can_load(folder.parent)


def test_a_recognised_evaluator_is_described_in_a_line(folder):
    evaluator = load_evaluator(folder)
    assert evaluator.outputs == Outputs.THREE_WAY
    assert evaluator.described == (
        "tiny: stepsight format, llama backbone, bidirectional, neg, neu and pos, each step read at the separator, "
        "inputs of up to 256 tokens."
    )


def test_stepsight_json_changes_single_values_of_another_format(tmp_path):
    card = {"template": {"prompt": "Q {problem}\n"}, "thresholds": {"validity": 0.25}, "provenance": {"from": "us"}}
    write_reasoneval(tmp_path / "theirs", card=card)
    evaluator = load_evaluator(tmp_path / "theirs")
    template = evaluator.encoder.template
    assert (template.prompt, template.separator, template.read) == ("Q {problem}\n", "<s>", Read.SECOND_TO_LAST)
    assert evaluator.thresholds == Thresholds(0.25, 0.15)
    assert evaluator.provenance == {"from": "us"}


def test_an_evaluator_that_others_trained_can_be_trained_further_and_saved(tmp_path):
    write_reasoneval(tmp_path / "theirs", size="34B")
    theirs = load_evaluator(tmp_path / "theirs")
    save_evaluator(tmp_path / "ours", theirs.model, theirs.encoder, {})
    ours = load_evaluator(tmp_path / "ours")
    assert (ours.format, ours.encoder.template) == ("stepsight", theirs.encoder.template)
    # The head's bias came along, and the fast pass knows it.
    assert torch.equal(ours.model.score.bias, theirs.model.score.bias)
    first, second = (list(Scorer(one).score(TRACES, "hindsight")) for one in (theirs, ours))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.result.packed, other.result.packed)


@pytest.mark.parametrize(
    ("kind", "prefix", "causal"),
    [("bert", "bert", False), ("roberta", "roberta", False), ("gpt2", "transformer", True)],
)
def test_one_on_any_backbone_comes_back(tmp_path, kind, prefix, causal):
    model = StepModel.with_new_head(write_backbone(tmp_path / "plain", kind)).eval()
    model.config.is_causal = causal
    encoder = Encoder(tiny_tokenizer(), PromptTemplate())
    save_evaluator(tmp_path / "ours", model, encoder, {})
    names = load_file(tmp_path / "ours" / "model.safetensors")
    assert {name.split(".")[0] for name in names} == {prefix, "score"}
    ours = load_evaluator(tmp_path / "ours")
    assert ours.attention == ("causal" if causal else "bidirectional")
    state = ours.model.state_dict()
    assert state.keys() == model.state_dict().keys()
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    assert len(list(Scorer(ours).score(TRACES, "offline"))) == len(TRACES)


def test_a_head_of_two_classes_cannot_be_saved_as_one_of_three(tmp_path):
    write_math_shepherd(tmp_path / "math-shepherd-mistral-7b-prm")
    theirs = load_evaluator(tmp_path / "math-shepherd-mistral-7b-prm")
    with refused():
        save_evaluator(tmp_path / "ours", theirs.model, Encoder(tiny_tokenizer(), PromptTemplate()), {})
    assert not (tmp_path / "ours").exists()


def test_a_config_without_a_context_is_refused(tmp_path):
    folder = write_evaluator(tmp_path / "endless")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": None}))
    with refused():
        load_evaluator(folder)


def test_a_large_evaluator_is_identified_when_that_is_needed(folder, monkeypatch):
    """Reading all of its weights takes longer than judging a trace."""
    expected = load_evaluator(folder).fingerprint
    read = []
    real = loading.fingerprint
    monkeypatch.setattr(loading, "fingerprint", lambda *args: read.append(args) or real(*args))
    monkeypatch.setattr(loading, "_SMALL", 0)
    evaluator = load_evaluator(folder)
    Scorer(evaluator).score_one(TRACES[0])
    assert read == []
    # Once, whatever it is called.
    assert evaluator.fingerprint == replace(evaluator, name="other").fingerprint == expected
    assert len(read) == 1
    late = load_evaluator(folder)
    edit_weights(folder, lambda tensors: tensors["score.weight"].mul_(1.01))
    with refused():
        _ = late.fingerprint
