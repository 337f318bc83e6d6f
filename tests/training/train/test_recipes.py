"""The paper's recipes from end to end: the shipped files, on tiny weights and the first records of PRM800K."""

import json
import math

import pytest
import yaml

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.paths import data_files
from stepsight.training.experiments.grid.design import read_design
from stepsight.training.experiments.grid.experiment import Grid
from stepsight.training.train import run
from stepsight.training.train.config import read_config
from tests.checkpoints import write_backbone, write_llada
from tests.conftest import ROOT

CONFIGS = ROOT / "training" / "configs"
RECORDS = 24


@pytest.fixture
def root(tmp_path, data):
    """A folder with weights, and files where the recipes look for them."""
    write_llada(tmp_path / "llada", with_head=False, max_sequence_length=2048)
    small = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    write_backbone(tmp_path / "wizard", "mistral", intermediate_size=32, max_position_embeddings=2048, **small)
    lines = (data / "prm800k" / "train.jsonl").read_text(encoding="utf-8").splitlines()[:RECORDS]
    (tmp_path / "prm800k").mkdir()
    (tmp_path / "prm800k" / "phase2_train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    # The first four problems are benchmarks' too.
    (tmp_path / "prm800k" / "phase2_test.jsonl").write_text("\n".join(lines[:4]) + "\n", encoding="utf-8")
    for name in ("mr-math_invalid_errors.json", "mr-math_redundant_errors.json"):
        ((_, path),) = data_files(f"mr-math/{name}", data)
        (tmp_path / "mr-math").mkdir(exist_ok=True)
        (tmp_path / "mr-math" / name).write_bytes(path.read_bytes())
    return tmp_path


def extended(root, name, **changes):
    path = root / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"extends": str(CONFIGS / f"{name}.yaml")} | changes), encoding="utf-8")
    return path


_SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "held_out", "init", "attention", "batch"),
    [
        ("llada-prm-8b", "", "llada", "bidirectional", 8),
        pytest.param("llada-prm-8b", "-held-out", "llada", "bidirectional", 8, marks=_SLOW),
        pytest.param("llada-prm-8b-bs64", "", "llada", "bidirectional", 64, marks=_SLOW),
        pytest.param("llada-prm-8b-bs64", "-held-out", "llada", "bidirectional", 64, marks=_SLOW),
        pytest.param("wizardmath-control", "", "wizard", "causal", 8, marks=_SLOW),
        ("wizardmath-control", "-held-out", "wizard", "causal", 8),
    ],
)
def test_a_recipe_trains_an_evaluator(root, name, held_out, init, attention, batch):
    # One process, which fsdp refuses.
    path = extended(root, f"{name}{held_out}", init=init, fsdp=False)
    output = run.train(read_config(path), root / "out", root)
    evaluator = load_evaluator(output)
    assert evaluator.attention == attention
    about = evaluator.provenance
    assert (about["examples"] < RECORDS) == bool(held_out)
    assert about["config"]["loss"] == "example"
    assert about["steps"] == math.ceil(about["examples"] / batch)
    assert len(json.loads((output / "log_history.json").read_text())) == about["steps"]


@pytest.mark.parametrize("mask", ["bidirectional", "causal"])
def test_the_grid_does_a_run(root, mask):
    tiny = {"batch_size": 4, "backbone": {"hidden": 16, "layers": 1, "heads": 2, "mlp": 24, "context": 2048}}
    sources = [{"kind": "prm800k", "path": "prm800k/phase2_train.jsonl", "sample": 8}]
    path = extended(
        root,
        "grid",
        processes=1,
        base={"fsdp": False, "tokenizer": "llada", "vocabulary": 1000, "bf16": False},
        sizes={"1B": tiny},
        data={"1k": {"data": {"sources": sources}}},
    )
    design = read_design(path)
    result = Grid(design, path, root / "out", str(root / "store.db")).run([design.run_named(f"1B-1k-{mask}-13")])
    assert result.keys == [("PRM800K", "offline"), ("PRM800K", "online")]
    (of_run,) = result.runs
    assert (of_run.about["examples"], of_run.about["steps"]) == (8, 6)
    # Of the first four records those with a balance ratio of one half.
    assert 0 < of_run.tests["PRM800K"]["offline"].traces <= 4
