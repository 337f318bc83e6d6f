from dataclasses import replace
from pathlib import Path

import pytest
import torch

from stepsight.core.models.model import StepModel
from stepsight.training.data.sources_config import Data, Source
from stepsight.training.synth.corpus import generate
from stepsight.training.train.config import Backbone, Expected, Lora, read_config
from stepsight.training.train.estimate import Estimate, Network, Work, estimate_run, work_of
from stepsight.training.train.init import llama_config
from stepsight.training.train.lora import adapted
from tests.conftest import ROOT
from tests.messages import refused
from tests.training.small_runs import CONFIG, synthetic

CONFIGS = ROOT / "training" / "configs"
LLADA = read_config(CONFIGS / "llada-prm-8b.yaml")
GPU = 100.0
# Of a million parameters, of which 80,000 look tokens up, in 10 layers.
NETWORK = Network(1_000_000, 80_000, 10, 64, 128, context=1024)


def plan(devices=1, traces=1000, tokens=100.0, **changes):
    return Estimate(replace(CONFIG, **changes), NETWORK, Work(traces, tokens, counted=True), GPU, devices)


def test_the_papers_own_run_by_hand():
    found = estimate_run(LLADA, CONFIGS)
    # 96,280 / 8 = 12,035 steps of 4 x 2 traces: "about 12k optimizer steps".
    assert (found.steps, found.devices, found.per_device, found.gpu) == (12_035, 4, 2, 96)
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
        model(ids, torch.ones_like(ids), ends, torch.zeros((2, 1), dtype=torch.long))
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
    estimated = Estimate(config, net, Work(1, 1, counted=True), GPU, 1).memory["activations"]
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


def test_a_run_that_does_not_fit_says_what_would_help():
    small = replace(plan(batch_size=64), gpu=0.05)
    with refused():
        small.check()
    small.check(activations=False)


def test_one_gpu_is_too_small_for_the_8b_evaluator_and_four_are_not():
    estimate_run(LLADA, CONFIGS, 80).check()
    with refused():
        estimate_run(LLADA, CONFIGS, 80, 1).check()


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
    assert f"and {adapters:,} in adapters; {adapters + 3 * 3584:,} are trained" in str(found)
    # Trained whole it needs several, or adapters.
    with refused():
        estimate_run(replace(recipe, lora=None), CONFIGS).check()


def test_without_the_recipes_word_the_traces_are_counted():
    config = replace(CONFIG, data=synthetic(12, seed=3), plan=None, attention="causal")
    characters = [len(t.problem) + sum(map(len, t.substeps)) for t in generate(3, 12)]
    found = work_of(config, Path())
    assert (found.traces, found.counted) == (12, True)
    assert found.tokens == pytest.approx(sum(characters) / 12 / 3)
    told = work_of(replace(config, plan=Expected(traces=5, tokens=7)), Path())
    assert (told.traces, told.tokens, told.counted) == (5, 7.0, False)
    with refused():
        work_of(replace(config, data=Data((Source("synthetic", size=2, seed=3, weight=1e-9),))), Path())


def test_it_is_told_in_lines():
    lines = str(estimate_run(LLADA, CONFIGS)).splitlines()
    assert lines[0] == "parameters    7,497,596,928"
    assert lines[1] == "data          96,280 traces of 200 tokens (as the recipe says)"
    assert lines[2] == "batch         8 traces = 4 devices x 2 traces x 1 parts"
    assert lines[3] == "steps         12,035 in 1 epochs, 19,256,000 tokens"
    assert lines[-1] == "fits          yes"
