import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.model import StepModel
from stepsight.core.paths import data_files
from stepsight.training.data.sources_config import Data, Source
from stepsight.training.experiments.grid.design import read_design
from stepsight.training.experiments.grid.experiment import Grid
from stepsight.training.synth.corpus import generate
from stepsight.training.train import run
from stepsight.training.train.config import Backbone, Expected, Lora, read_config
from stepsight.training.train.estimate import Estimate, Network, estimate_run
from stepsight.training.train.init import llama_config
from stepsight.training.train.lora import adapted
from stepsight.training.train.run import step_losses
from tests.checkpoints import write_backbone, write_llada
from tests.conftest import ROOT
from tests.messages import refused
from tests.training.small_runs import CONFIG, synthetic

CONFIGS = ROOT / "training" / "configs"
LLADA = read_config(CONFIGS / "llada-prm-8b.yaml")
GPU = 100.0
# Of a million parameters, of which 80,000 look tokens up, in 10 layers.
NETWORK = Network(1_000_000, 80_000, 10, 64, 128, context=1024)


def plan(devices=1, traces=1000, tokens=100.0, **changes):
    return Estimate(replace(CONFIG, **changes), NETWORK, GPU, devices, traces, tokens)


def test_the_papers_own_run_by_hand():
    found = estimate_run(LLADA, CONFIGS)
    # 96,280 / 8 = 12,035 steps of 4 x 2 traces: "about 12k optimizer steps".
    assert (found.steps, found.devices, found.gpu) == (12_035, 4, 96)
    found.check()
    # 7,497,596,928 parameters in float32 over 4 devices, and twice as much of AdamW.
    assert found.memory["weights"] == found.memory["gradients"] == 7_497_596_928
    assert found.memory["optimiser"] == 14_995_193_856
    # 2 x 2,048 tokens: the inputs of 32 layers in float32, one whole layer, and the ends.
    assert found.memory["activations"] == 4096 * (32 * 4 * 4096 + 34 * 4096 + 8 * 12288 + 14 * 4096)


def saved_bytes(hidden, mlp, layers, bf16, lora=None):
    """What PyTorch itself keeps for the backward pass for each token, without the weights and their copies."""
    torch.manual_seed(0)
    tokens = 256
    model = StepModel.from_config(llama_config(Backbone(hidden, layers, 2, mlp), 64, "bidirectional"))
    if lora:
        model.model.to(torch.bfloat16 if bf16 else torch.float32)
        model = adapted(model, lora, 0)
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    seen, alive = {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            seen[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)
        return tensor

    ids = torch.zeros((2, tokens), dtype=torch.long)
    ends = torch.full((2, 1), tokens - 1)
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=bf16, cache_enabled=False),
    ):
        logits = model(ids, torch.ones_like(ids), ends)
        step_losses(logits.float(), torch.zeros((2, 1), dtype=torch.long)).sum()
    copies = 2 * layers * (4 * hidden * hidden + 3 * hidden * mlp) if bf16 and not lora else 0
    return (sum(seen.values()) - copies) / (2 * tokens)


@pytest.mark.parametrize("bf16", [True, False])
@pytest.mark.parametrize("lora", [None, Lora(rank=2)])
def test_activations_are_what_pytorch_keeps(bf16, lora):
    """Beside frozen weights they are a little less than is said."""
    hidden, mlp, layers = 64, 192, 3
    net = Network(1, 1, layers, hidden, mlp, context=1)
    # The dimensions are given, so that the model named is not looked for.
    start = {"lora": lora, "init": "a", "backbone": None} if lora else {}
    config = replace(CONFIG, bf16=bf16, batch_size=1, **start)
    estimated = Estimate(config, net, GPU, 1).memory["activations"]
    assert 0.97 <= estimated / saved_bytes(hidden, mlp, layers, bf16, lora) <= (1.2 if lora else 1.03)


def test_devices_share_out_states_and_work():
    one, four = plan(), plan(devices=4, fsdp=True)
    assert (one.memory["weights"], one.memory["optimiser"]) == (4_000_000, 8_000_000)
    assert (four.memory["weights"], plan(devices=4).memory["weights"]) == (1_000_000, 4_000_000)
    # 1,000 traces in batches of 8 are 125 steps, in 2 epochs 250.
    assert one.steps == 250
    assert plan(activation_checkpointing=True).memory["activations"] < one.memory["activations"]
    # What a trace may have at most, and what the network takes at most.
    assert plan(max_length=512).memory["activations"] == one.memory["activations"] / 2


def test_four_gpus_are_enough_for_the_8b_evaluator_and_one_is_not():
    estimate_run(LLADA, CONFIGS, 80).check()
    with refused():
        estimate_run(LLADA, CONFIGS, 80, 1).check()
    # Without its activations a run may fit that otherwise does not.
    replace(plan(batch_size=64), gpu=0.05).check(activations=False)


def test_a_7b_backbone_with_adapters_on_one_small_gpu():
    recipe = read_config(CONFIGS / "qwen-7b-lora.yaml")
    found = estimate_run(recipe, CONFIGS)
    found.check()
    # Seven layers in each of 28 blocks, rank 16: as many rows as inputs, as many columns as outputs.
    adapters = 28 * 16 * (2 * (3584 + 3584) + 2 * (3584 + 512) + 3 * (3584 + 18944))
    assert (found.network.adapters, found.network.head) == (adapters, 3 * 3584)
    frozen = found.network.parameters - 3 * 3584
    assert found.memory["weights"] == 2 * frozen + 4 * (adapters + 3 * 3584)
    # What stays has neither gradient nor moments.
    assert found.memory["gradients"] == 4 * (adapters + 3 * 3584)
    assert found.memory["optimiser"] == 8 * (adapters + 3 * 3584)
    assert f", of which {adapters + 3 * 3584:,} are trained" in str(found)
    # Trained whole it needs several, or adapters.
    with refused():
        estimate_run(replace(recipe, lora=None), CONFIGS).check()


def test_without_the_recipes_word_the_traces_are_counted():
    config = replace(CONFIG, data=synthetic(12, seed=3), plan=None, attention="causal")
    characters = [len(t.problem) + sum(map(len, t.substeps)) for t in generate(3, 12)]
    counted, stated = (
        estimate_run(replace(config, plan=plan), Path()) for plan in (None, Expected(traces=5, tokens=7))
    )
    assert (counted.traces, counted.tokens) == (12, pytest.approx(sum(characters) / 12 / 3))
    assert (stated.traces, stated.tokens) == (5, 7)
    with refused():
        estimate_run(replace(config, data=Data((Source("synthetic", size=2, seed=3, weight=1e-9),))), Path())


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "init", "attention", "batch"),
    [("llada-prm-8b", "llada", "bidirectional", 8), ("wizardmath-control-held-out", "wizard", "causal", 8)],
)
def test_a_recipe_trains_an_evaluator(root, name, init, attention, batch):
    # One process, which fsdp refuses.
    path = extended(root, name, init=init, fsdp=False)
    output = run.train(read_config(path), root / "out", root)
    evaluator = load_evaluator(output)
    assert evaluator.attention == attention
    about = evaluator.provenance
    assert (about["examples"] < RECORDS) == name.endswith("held-out")
    assert about["config"]["loss"] == "example"
    assert about["steps"] == math.ceil(about["examples"] / batch)
    assert len(json.loads((output / "log_history.json").read_text())) == about["steps"]


def test_the_grid_does_a_run(root):
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
    result = Grid(design, path, root / "out", str(root / "store.db")).run(
        [design.run_named("1B-1k-bidirectional-13")]
    )
    assert result.keys == [("PRM800K", "offline"), ("PRM800K", "online")]
    (of_run,) = result.runs
    assert (of_run.about["examples"], of_run.about["steps"]) == (8, 6)
    # Of the first four records those with a balance ratio of one half.
    assert 0 < of_run.tests["PRM800K"]["offline"]["traces"] <= 4
