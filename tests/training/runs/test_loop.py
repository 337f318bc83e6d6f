"""The loop: one optimiser step, what several processes make of it, and runs that go wrong."""

import math
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.distributed.checkpoint.filesystem import FileSystemReader

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.runs.loop import complete, is_whole, last_checkpoint, whole_run
from stepsight.training.train import run
from tests.checkpoints import write_llada
from tests.messages import refused
from tests.training.small_runs import (
    CONFIG,
    ONE,
    TRACE,
    forked,
    forked_pair,
    losses,
    make_loop,
    synthetic,
    train_command,
    write_config,
)


def gradients_of(loop):
    """The list of the gradients of each step, as the optimiser gets them."""
    steps, step = [], loop.optimizer.step

    def noted():
        steps.append({name: p.grad.clone() for name, p in loop.model.named_parameters()})
        step()

    loop.optimizer.step = noted
    return steps


def before_losses(loop, act):
    """Call `act` with the model before each part of a step is computed, and add what it returns, if anything, to
    the loss."""
    loss = loop.objective.loss

    def changed(model, batch):
        more = act(model)
        return loss(model, batch) if more is None else loss(model, batch) + more

    loop.objective = replace(loop.objective, loss=changed)


def one_step(config, folder):
    """The loss and the gradients of the first step, and the loop."""
    loop = make_loop(config, folder)
    steps = gradients_of(loop)
    loop.train()
    return loop.history[0]["loss"], steps[0], loop


@pytest.fixture(scope="module")
def whole_step(tmp_path_factory):
    """One batch of 8, computed at once."""
    return one_step(ONE, tmp_path_factory.mktemp("step"))


@pytest.mark.parametrize("accumulation", [2, 8])
def test_a_step_in_parts_is_the_step_at_once(whole_step, tmp_path, accumulation):
    loss, gradients, _ = whole_step
    parted, parted_gradients, _ = one_step(replace(ONE, accumulation=accumulation), tmp_path)
    assert parted == pytest.approx(loss, abs=1e-6)
    assert parted_gradients.keys() == gradients.keys()
    for name, gradient in gradients.items():
        # Of 9 at most, of which float32 tells the seventh digit.
        torch.testing.assert_close(parted_gradients[name], gradient, rtol=1e-6, atol=1e-6, msg=name)
    assert max(float(gradient.abs().max()) for gradient in gradients.values()) > 0.01


def test_a_history_has_a_hundred_rows_or_a_row_for_twenty_steps(tmp_path):
    # 250 steps: 125 rows of two steps, and one more before each odd checkpoint.
    loop = make_loop(replace(ONE, data=synthetic(250), batch_size=1, save_steps=125), tmp_path)
    loop.train()
    assert [row["step"] for row in loop.history] == sorted({*range(2, 251, 2), 125})


def test_activation_checkpointing_gives_the_same_weights(tmp_path):
    config = replace(CONFIG, data=synthetic(40), epochs=1)
    weights = []
    for checkpointing in (False, True):
        loop = make_loop(replace(config, activation_checkpointing=checkpointing), tmp_path / str(checkpointing))
        loop.train()
        assert [layer.gradient_checkpointing for layer in loop.model.model.layers] == [checkpointing] * 2
        weights.append(loop.model.state_dict())
    before = make_loop(config, tmp_path / "before").model.state_dict()
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, rtol=0, atol=1e-6, msg=name)
        assert not torch.equal(before[name], tensor), name


def test_norms_are_not_decayed(tmp_path):
    loop = make_loop(ONE, tmp_path)
    groups = loop.optimizer.param_groups
    names = {id(p): name for name, p in loop.model.named_parameters()}
    decayed, free = ({names[id(p)] for p in group["params"]} for group in groups)
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
    # Two norms in each of two layers, and the last.
    assert len(free) == 5
    assert all("norm" in name for name in free)
    assert {"score.weight", "model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight"} < decayed
    assert all(group["betas"] == (0.9, 0.95) for group in groups)


def test_the_optimiser_never_holds_a_language_modelling_head(tmp_path):
    tensors = write_llada(tmp_path / "llada", with_head=False, max_sequence_length=1024)
    vocabulary, width = tensors["model.transformer.ff_out.weight"].shape
    _, gradients, loop = one_step(replace(ONE, backbone=None, init=str(tmp_path / "llada")), tmp_path)
    # The folder has an output matrix of the embedding's shape; of the latter there are Adam's two moments.
    shapes = [tuple(value.shape) for state in loop.optimizer.state.values() for value in state.values()]
    assert shapes.count((vocabulary, width)) == 2
    assert len([shape for shape in shapes if shape and shape[0] >= vocabulary]) == 2
    large = [name for name, gradient in gradients.items() if gradient.shape[0] >= vocabulary]
    assert large == ["model.embed_tokens.weight"]


def test_the_rate_warms_up_and_falls_as_a_cosine(tmp_path):
    loop = make_loop(replace(CONFIG, data=synthetic(160), epochs=1, warmup_steps=4), tmp_path)
    loop.train()
    rates = [row["learning_rate"] for row in loop.history]
    # 20 steps, the first at rate 0: 0, 1/4 … 3/4 of the peak, then half a cosine over the other 16.
    expected = [1e-3 * step / 4 for step in range(4)]
    expected += [1e-3 * 0.5 * (1 + math.cos(math.pi * (step - 4) / 16)) for step in range(4, 20)]
    assert rates == pytest.approx(expected, abs=1e-9)


def test_gradients_are_clipped_to_the_norm(tmp_path):
    _, gradients, loop = one_step(replace(ONE, clip=0.5), tmp_path)
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients.values()))
    assert loop.history[0]["grad_norm"] > 1
    assert norm == pytest.approx(0.5, rel=1e-4)


def test_cudnn_computes_no_attention_while_training(tmp_path):
    loop, seen = make_loop(ONE, tmp_path), []
    before_losses(loop, lambda _: seen.append(torch.backends.cuda.cudnn_sdp_enabled()))
    with whole_run(loop, tmp_path):
        loop.train()
    assert seen == [False] * len(seen) != []
    assert torch.backends.cuda.cudnn_sdp_enabled()


def test_a_loss_that_is_no_number_stops_the_run_and_names_the_step(tmp_path):
    loop = make_loop(CONFIG, tmp_path)

    def poison(model):
        if loop.step == 13:
            model.score.weight.data[0, 0] = math.nan

    before_losses(loop, poison)
    with refused():
        loop.train()


def test_a_gradient_that_is_no_number_reaches_neither_the_weights_nor_a_checkpoint(tmp_path):
    loop = make_loop(replace(CONFIG, save_steps=1), tmp_path)
    # The root of nothing: the loss stays as it is, its gradient is not a number.
    before_losses(loop, lambda model: model.score.weight.square().sum().mul(0).sqrt() if loop.step == 3 else None)
    with refused():
        loop.train()
    step, checkpoint = last_checkpoint(tmp_path / "checkpoints")
    state = torch.load(checkpoint / "state.pt", weights_only=True)
    assert step == 3
    for name, weight in loop.model.named_parameters():
        assert torch.equal(weight, state["model"][name])
        assert bool(weight.isfinite().all())


LIMITED = """
import resource, sys
from pathlib import Path
from stepsight.training.runs import loop
from stepsight.app.commands.cli import main

class Limit(loop.RunProgress):
    def move(self, done):
        if done == {step}:
            {limit}

loop.RunProgress = Limit
sys.exit(main(["train", *sys.argv[1:]]))
"""
# Files of at most 100 kB: the weights' 122 kB no longer fit. Memory: what there is, and 30 MB more.
DISK = "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))"
MEMORY = """
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 30_000_000, resource.RLIM_INFINITY))
"""


@pytest.mark.slow
def test_a_full_disk_leaves_the_last_checkpoint_whole(whole, tmp_path):
    config, output = write_config(tmp_path / "config.yaml"), tmp_path / "whole"
    stopped = forked(LIMITED.format(step=25, limit=DISK), config, "--output", output)
    assert stopped.returncode == 2
    told = stopped.stderr.splitlines()[-1]
    assert f"{output}: cannot be written in step 30 (" in told
    assert told.endswith("(File too large). Free some space; the same command continues from step 20.")
    kept = sorted((output / "checkpoints").iterdir())
    assert {path.name: is_whole(path) for path in kept} == {
        "checkpoint-10": True, "checkpoint-20": True, "checkpoint-30": False
    }  # fmt: skip
    run.train(CONFIG, output)
    assert (output / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_memory_that_runs_out_leaves_the_last_checkpoint(tmp_path):
    # 16 traces of 200 tokens by 2,000 floats of 4 bytes are 26 MB, eight times over in two layers.
    wide = replace(CONFIG.backbone, mlp=2000)
    whole = replace(CONFIG, backbone=wide, data=synthetic(120), batch_size=16)
    config, output = write_config(tmp_path / "config.yaml", whole), tmp_path / "out"
    stopped = forked(LIMITED.format(step=12, limit=MEMORY), config, "--output", output)
    assert stopped.returncode == 2, stopped.stderr
    told = stopped.stderr.splitlines()[-1]
    # The limit comes at step 12; what the allocator keeps from before may last for another step.
    assert re.match(
        r"stepsight train: memory ran out in step 1[3-9]\. Raise accumulation, or set activation_ch", told
    )
    assert [path.name for path in (output / "checkpoints").iterdir()] == ["checkpoint-10"]
    assert is_whole(output / "checkpoints" / "checkpoint-10")


# Ten steps, checkpoints at 5 and 10.
SHORT = replace(CONFIG, data=synthetic(80, seed=3), epochs=1, save_steps=5)
SHARDED = replace(SHORT, fsdp=True)
ACCELERATE = ("-m", "accelerate.commands.launch", "--use_fsdp", "--fsdp_version", "2", "--num_processes", "2")
ACCELERATE += ("--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no")
ACCELERATE += ("--main_process_port", "0")


def validity(folder):
    return Scorer(load_evaluator(folder)).score_one(TRACE).hindsight.offline.validity


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    """The folder of a run in two processes, each with half of the weights and its own layers' activations."""
    folder = tmp_path_factory.mktemp("sharded")
    config = replace(SHARDED, accumulation=2, activation_checkpointing=True)
    done = train_command(write_config(folder / "config.yaml", config), folder / "whole", *ACCELERATE)
    assert done.returncode == 0, done.stderr
    # One process speaks.
    assert done.stdout.splitlines() == [str(folder / "whole")]
    assert done.stderr.count("Training into ") == 1
    return folder / "whole"


@pytest.mark.slow
def test_two_processes_with_shards_give_what_one_gives(sharded, tmp_path):
    one = run.train(SHORT, tmp_path / "one")
    assert len(losses(one)) == 10
    np.testing.assert_allclose(losses(sharded), losses(one), rtol=0, atol=1e-4)
    np.testing.assert_allclose(validity(sharded), validity(one), rtol=0, atol=1e-4)
    assert load_evaluator(sharded).provenance["devices"] == "2 x cpu"
    # Accelerate can leave FSDP out without a word; each process has written its own half of the weights.
    shards = sorted((sharded / "checkpoints" / "checkpoint-10").glob("*.distcp"))
    # Each weight has two moments.
    weights = 3 * sum(tensor.numel() * 4 for tensor in load_file(one / "model.safetensors").values())
    assert len(shards) == 2
    for shard in shards:
        assert 0.5 * weights < shard.stat().st_size < weights


@pytest.mark.slow
def test_a_run_with_shards_goes_on_from_its_checkpoint(sharded, tmp_path):
    output = tmp_path / "whole"
    for kept in ("config.used.json", "checkpoints/checkpoint-5"):
        source, target = sharded / kept, output / kept
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    first, second = forked_pair("train", write_config(tmp_path / "config.yaml", SHARDED), "--output", output)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "going on from step 5." in first.stderr
    np.testing.assert_allclose(losses(output), losses(sharded), rtol=0, atol=1e-5)
    np.testing.assert_allclose(validity(output), validity(sharded), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_shards_are_computed_in_bfloat16_and_kept_in_float32(tmp_path):
    one = run.train(replace(SHORT, bf16=True), tmp_path / "one")
    path = write_config(tmp_path / "config.yaml", replace(SHARDED, bf16=True))
    first, second = forked_pair("train", path, "--output", tmp_path / "two")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(one), rtol=0, atol=0.01)
    about = FileSystemReader(tmp_path / "two" / "checkpoints" / "checkpoint-10").read_metadata().state_dict_metadata
    tensors = [kept.properties.dtype for kept in about.values() if hasattr(kept, "properties")]
    assert set(tensors) == {torch.float32}


def write(folder, step):
    checkpoint = folder / f"checkpoint-{step}"
    (checkpoint / "parts").mkdir(parents=True, exist_ok=True)
    (checkpoint / "state.pt").write_bytes(b"1234")
    (checkpoint / "parts" / "0.distcp").write_bytes(b"12345")
    complete(checkpoint, [])
    return checkpoint


@pytest.mark.parametrize("file", ["state.pt", "parts/0.distcp", "contents.json"])
@pytest.mark.parametrize("damage", ["shorter", "longer", "missing"])
def test_the_newest_whole_checkpoint_is_the_last(tmp_path, file, damage):
    assert last_checkpoint(tmp_path / "none") == (0, None)
    # 100 comes after 15, though not in the alphabet.
    first, second = write(tmp_path, 15), write(tmp_path, 100)
    (tmp_path / "checkpoint-old").mkdir()
    assert last_checkpoint(tmp_path) == (100, second)
    content = (second / file).read_bytes()
    (second / file).unlink()
    if damage != "missing":
        (second / file).write_bytes(content[:-3] if damage == "shorter" else content + b"!")
    assert last_checkpoint(tmp_path) == (15, first)
    write(tmp_path, 100)
    assert last_checkpoint(tmp_path) == (100, second)
