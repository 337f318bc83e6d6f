import json
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file

from stepsight.training.experiments.grid.design import read_design
from stepsight.training.train.config import Expected, read_config
from stepsight.training.train.estimate import network_of
from tests.checkpoints import write_backbone, write_evaluator
from tests.conftest import ROOT
from tests.messages import refused
from tests.training.small_runs import CONFIG

CONFIGS = ROOT / "training" / "configs"


def by_hand(hidden, layers, mlp, vocabulary, keys=None):
    """Embedding, layers of four square matrices (keys and values may be narrower), three of the feed-forward layer
    and two norms, the last norm and a head of three rows."""
    narrow = keys or hidden
    layer = 2 * hidden * hidden + 2 * hidden * narrow + 3 * hidden * mlp + 2 * hidden
    return vocabulary * hidden + layers * layer + hidden + 3 * hidden


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        # The paper's table of dimensions, with 126,464 tokens.
        ("1B", by_hand(2048, 16, 5504, 126_464)),
        ("2B", by_hand(2560, 24, 6912, 126_464)),
        ("3B", by_hand(2816, 26, 7168, 126_464)),
    ],
)
def test_the_sizes_of_the_papers_grid(size, expected):
    design = read_design(CONFIGS / "grid.yaml")
    run = next(run for run in design.runs() if run.size == size)
    assert network_of(design.config(run), CONFIGS).parameters == expected
    assert round(expected / 1e9, 1) == {"1B": 1.1, "2B": 2.2, "3B": 2.8}[size]


def test_the_8b_evaluators_are_told_by_their_recipes_where_they_are_not_here():
    llada = network_of(read_config(CONFIGS / "llada-prm-8b.yaml"), CONFIGS)
    # LLaDA-8B has 8.02 billion weights, of which 126,464 x 4,096 are the language-modelling head that is dropped.
    assert llada.parameters == by_hand(4096, 32, 12288, 126_464) == 7_497_596_928
    assert (llada.embedding, llada.layers, llada.hidden, llada.mlp) == (126_464 * 4096, 32, 4096, 12288)
    # Mistral's 8 heads of keys and values of 128.
    wizard = network_of(read_config(CONFIGS / "wizardmath-control.yaml"), CONFIGS)
    assert wizard.parameters == by_hand(4096, 32, 14336, 32_001, keys=1024)


def test_a_folder_that_is_here_tells_its_own_dimensions(tmp_path):
    folder = write_evaluator(tmp_path / "start")
    values = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    found = network_of(replace(CONFIG, backbone=None, init="start"), tmp_path)
    assert (found.hidden, found.mlp) == (values["hidden_size"], values["intermediate_size"])
    assert found.parameters == sum(tensor.numel() for tensor in weights.values())


@pytest.mark.parametrize(("kind", "mlp"), [("bert", 40), ("gpt2", 96)])
def test_a_backbone_of_another_kind_than_llama(tmp_path, kind, mlp):
    """GPT-2 makes its feed-forward layer four times as wide."""
    backbone = write_backbone(tmp_path / "plain", kind)
    found = network_of(replace(CONFIG, backbone=None, init="plain"), tmp_path)
    assert (found.layers, found.hidden, found.mlp) == (2, 24, mlp)
    assert found.embedding == backbone.config.vocab_size * 24
    assert found.parameters == sum(parameter.numel() for parameter in backbone.parameters()) + 3 * 24


def test_one_that_nobody_tells_of_is_refused():
    config = replace(CONFIG, backbone=None, init="nowhere/at-all", plan=Expected())
    with refused():
        network_of(config, Path())
