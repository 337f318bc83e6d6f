"""One optimiser step, and runs that go wrong."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional
from transformers import TrainerCallback, TrainingArguments

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.model import IGNORED, SOFT, StepModel, linear_head
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.data.examples import build_examples, collate
from stepsight.training.data.mixture import Mixture
from stepsight.training.runs.training import arguments_for, finish, is_whole, whole_run
from stepsight.training.train import run
from stepsight.training.train.init import initial_model, llama_config
from stepsight.training.train.trainer import StepTrainer, assembled
from tests.checkpoints import write_llada
from tests.messages import refused
from tests.training.small_runs import CONFIG, TRACE, forked, forked_pair, synthetic, train_command, write_config

# One step, not clipped.
ONE = replace(CONFIG, data=synthetic(8), epochs=1, warmup_steps=0, clip=1e9)


def make(config, folder, callback=None):
    """A trainer as a run makes it."""
    mixture = Mixture(config.data, Path(), config.truncation, config.seed)
    encoder, model, *_ = initial_model(config, mixture, Path())
    examples, _ = build_examples(mixture, encoder, config.truncation, config.seed, config.max_length or 1024)
    arguments = arguments_for(TrainingArguments, config, folder / "checkpoints", "train")
    trainer = StepTrainer(config, model, examples, arguments)
    if callback is not None:
        trainer.add_callback(callback)
    return trainer


class Gradients(TrainerCallback):
    """Keeps the gradients of each step, and the weights before it."""

    def __init__(self):
        self.steps, self.weights = [], []

    def on_pre_optimizer_step(self, args, state, control, model=None, **_):
        self.steps.append({name: p.grad.clone() for name, p in model.named_parameters()})
        self.weights.append({name: p.detach().clone() for name, p in model.named_parameters()})


def one_step(config, folder):
    """The loss and the gradients of the first step, and the trainer."""
    kept = Gradients()
    trainer = make(config, folder, kept)
    history = finish(trainer)
    return history[0]["loss"], kept.steps[0], trainer


def cross_entropies(model, examples):
    """Of each supervised step end."""
    with torch.no_grad():
        batch = collate(examples)
        logits, labels = model(**{k: v for k, v in batch.items() if k != "labels"})["logits"], batch["labels"]
    logits, labels = logits.flatten(0, 1), labels.flatten()
    return functional.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="none")[labels != IGNORED]


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


def test_a_step_s_loss_is_the_mean_over_its_supervised_ends(whole_step, tmp_path):
    loss, _, trainer = whole_step
    fresh = make(ONE, tmp_path)
    examples = list(trainer.train_dataset)[:-1]
    losses = cross_entropies(fresh.model, examples)
    assert loss == pytest.approx(float(losses.mean()), abs=1e-6)
    # The mean of the traces' means is another number: their ends differ in count.
    means = [float(cross_entropies(fresh.model, [example]).mean()) for example in examples]
    assert abs(float(np.mean(means)) - loss) > 1e-3


PER_EXAMPLE = replace(ONE, loss="example")


def test_the_paper_s_loss_is_the_mean_over_each_trace_s_ends(tmp_path):
    """Two traces, of one end that is pos and of nine that are neg, by hand."""
    model = make(ONE, tmp_path).model
    # Logits 0, 0 and the sum s of the states: -log p is log(2 + e^s) of neg, and s less of pos.
    model.score = linear_head(torch.zeros(3, CONFIG.backbone.hidden).index_fill(0, torch.tensor([2]), 1))
    labels = torch.tensor([[2] + 8 * [IGNORED], 9 * [0]])
    ids, mask, ends = torch.full((2, 20), 5), torch.ones(2, 20, dtype=torch.long), torch.arange(9).expand(2, -1)
    with torch.no_grad():
        sums = model.states(input_ids=ids, attention_mask=mask)[:, :9].sum(-1).tolist()
        one = math.log(2 + math.exp(sums[0][0])) - sums[0][0]
        nine = [math.log(2 + math.exp(value)) for value in sums[1]]
        pooled, mean = (one + sum(nine)) / 10, (one + sum(nine) / 9) / 2
        assert abs(pooled - mean) > 0.01
        for model.per_example, expected in ((False, pooled), (True, mean)):
            assert float(model(ids, mask, ends, labels)["loss"]) == pytest.approx(expected, abs=1e-5)


def test_the_loss_of_a_share_is_the_cross_entropy_of_validity(tmp_path):
    model = make(ONE, tmp_path).model
    ids, mask, ends = torch.full((1, 20), 5), torch.ones(1, 20, dtype=torch.long), torch.arange(3)[None]
    labels, shares = torch.tensor([[SOFT, 0, IGNORED]]), torch.tensor([[0.25, 0.9, 0.9]])
    found = model(ids, mask, ends, labels, shares=shares)
    neg, neu, pos = found["logits"][0, 0].softmax(-1)
    soft = -(0.25 * (neu + pos).log() + 0.75 * neg.log())
    hard = -found["logits"][0, 1].log_softmax(-1)[0]
    torch.testing.assert_close(found["loss"], (soft + hard) / 2)
    # The gradient of neu and pos is in the proportion of their probabilities.
    (gradient,) = torch.autograd.grad(soft, found["logits"])
    torch.testing.assert_close(gradient[0, 0, 1] / gradient[0, 0, 2], neu / pos)


def mean_of_means(config, folder):
    """The paper's loss in the first step, one trace after the other."""
    fresh = make(config, folder)
    examples = list(fresh.train_dataset)
    means = [cross_entropies(fresh.model, [examples[place]]).mean() for place in fresh.batches.steps()[0]]
    return float(torch.stack(means).mean())


@pytest.mark.parametrize("accumulation", [1, 8])
def test_every_trace_counts_alike_however_a_step_is_parted(tmp_path, accumulation):
    # 11 traces are a batch of 8 and one of 3, which has fewer than parts.
    config = replace(PER_EXAMPLE, data=synthetic(11), accumulation=accumulation)
    trainer = make(config, tmp_path / "run")
    history = finish(trainer)
    first, second = (row["loss"] for row in history)
    assert first == pytest.approx(mean_of_means(config, tmp_path / "fresh"), abs=1e-6)
    if accumulation > 1:
        whole = make(replace(config, accumulation=1), tmp_path / "whole")
        history = finish(whole)
        assert second == pytest.approx(history[1]["loss"], abs=1e-6)


@pytest.mark.slow
def test_every_trace_counts_alike_in_two_processes(tmp_path):
    config = replace(PER_EXAMPLE, data=synthetic(11), accumulation=2)
    pair = forked_pair("train", write_config(tmp_path / "config.yaml", config), "--output", tmp_path / "pair")
    assert [process.returncode for process in pair] == [0, 0], pair[0].stderr
    assert losses(tmp_path / "pair")[0] == pytest.approx(mean_of_means(config, tmp_path / "fresh"), abs=1e-5)
    assert losses(tmp_path / "pair") == pytest.approx(losses(run.train(config, tmp_path / "one")), abs=1e-5)


def test_a_batch_with_fewer_traces_than_parts_is_exact_too(tmp_path):
    losses = []
    for accumulation in (1, 8):
        config = replace(ONE, data=synthetic(11), accumulation=accumulation)
        trainer = make(config, tmp_path / str(accumulation))
        history = finish(trainer)
        losses.append([row["loss"] for row in history])
    # 11 traces are a batch of 8 and one of 3.
    assert len(losses[0]) == 2
    assert losses[1] == pytest.approx(losses[0], abs=1e-6)


def test_activation_checkpointing_gives_the_same_weights(tmp_path):
    config = replace(CONFIG, data=synthetic(40), epochs=1)
    weights = []
    for checkpointing in (False, True):
        trainer = make(replace(config, activation_checkpointing=checkpointing), tmp_path / str(checkpointing))
        finish(trainer)
        assert [layer.gradient_checkpointing for layer in trainer.model.model.layers] == [checkpointing] * 2
        weights.append(trainer.model.state_dict())
    before = make(config, tmp_path / "before").model.state_dict()
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, rtol=0, atol=1e-6, msg=name)
        assert not torch.equal(before[name], tensor), name


def test_norms_are_not_decayed(tmp_path):
    trainer = make(ONE, tmp_path)
    optimizer = trainer.create_optimizer()
    names = {id(p): name for name, p in trainer.model.named_parameters()}
    decayed, free = ({names[id(p)] for p in group["params"]} for group in optimizer.param_groups)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]
    # Two norms in each of two layers, and the last.
    assert len(free) == 5
    assert all("norm" in name for name in free)
    assert {"score.weight", "model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight"} < decayed
    assert all(group["betas"] == (0.9, 0.95) for group in optimizer.param_groups)


def test_the_optimiser_never_holds_a_language_modelling_head(tmp_path):
    tensors = write_llada(tmp_path / "llada", with_head=False, max_sequence_length=1024)
    vocabulary, width = tensors["model.transformer.ff_out.weight"].shape
    _, gradients, trainer = one_step(replace(ONE, backbone=None, init=str(tmp_path / "llada")), tmp_path)
    # The folder has an output matrix of the embedding's shape; of the latter there are Adam's two moments.
    shapes = [tuple(value.shape) for state in trainer.optimizer.state.values() for value in state.values()]
    assert shapes.count((vocabulary, width)) == 2
    assert len([shape for shape in shapes if shape and shape[0] >= vocabulary]) == 2
    large = [name for name, gradient in gradients.items() if gradient.shape[0] >= vocabulary]
    assert large == ["model.embed_tokens.weight"]


def test_the_rate_warms_up_and_falls_as_a_cosine(tmp_path):
    trainer = make(replace(CONFIG, data=synthetic(160), epochs=1, warmup_steps=4), tmp_path)
    history = finish(trainer)
    rates = [row["learning_rate"] for row in history]
    # 20 steps, the first at rate 0: 0, 1/4 … 3/4 of the peak, then half a cosine over the other 16.
    expected = [1e-3 * step / 4 for step in range(4)]
    expected += [1e-3 * 0.5 * (1 + math.cos(math.pi * (step - 4) / 16)) for step in range(4, 20)]
    assert rates == pytest.approx(expected, abs=1e-9)


def test_gradients_are_clipped_to_the_norm(tmp_path):
    kept = Gradients()
    trainer = make(replace(ONE, clip=0.5), tmp_path, kept)
    history = finish(trainer)
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in kept.steps[0].values()))
    assert history[0]["grad_norm"] > 1
    assert norm == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize("bias", [None, torch.tensor([1.0, 2.0, 3.0])])
def test_shards_of_a_head_are_put_together_as_it_was(bias):
    config = llama_config(CONFIG.backbone, 400, "causal")
    model = StepModel(StepModel.from_config(config).model, linear_head(torch.ones(3, 32), bias))
    whole = assembled(config, model.state_dict())
    assert whole.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(tensor, whole.state_dict()[name]) for name, tensor in model.state_dict().items())
    assert ("score.bias" in whole.state_dict()) == (bias is not None)


class Poison(Gradients):
    """Makes a weight, and so the loss, no number before the step after `step`."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def on_step_begin(self, args, state, control, model=None, **_):
        if state.global_step == self.step:
            model.score.weight.data[0, 0] = math.nan


def test_cudnn_computes_no_attention_while_training(tmp_path):
    class Attention(TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            seen.append(torch.backends.cuda.cudnn_sdp_enabled())

    seen = []
    made = make(ONE, tmp_path, Attention())
    with whole_run(made, tmp_path):
        finish(made)
    assert seen == [False] * len(seen) != []
    assert torch.backends.cuda.cudnn_sdp_enabled()


def test_a_loss_that_is_no_number_stops_the_run_and_names_the_step(tmp_path):
    trainer = make(CONFIG, tmp_path, Poison(13))
    with refused():
        finish(trainer)


def test_a_gradient_that_is_no_number_stops_the_run_before_it_is_saved(tmp_path):
    # The first step's update is as large as the rate; after it the loss is still a number, its gradient is not.
    with refused():
        finish(make(replace(CONFIG, learning_rate=1e30, warmup_steps=0, save_steps=2), tmp_path))
    assert list((tmp_path / "checkpoints").glob("checkpoint-*")) == []


LIMITED = """
import resource, sys
from pathlib import Path
from stepsight.training.train import run, trainer
from stepsight.training.train.config import read_config
from stepsight.app.commands.cli import main

class Limit(trainer.TrainingProgress):
    def on_step_begin(self, args, state, control, **_):
        if state.global_step == {step}:
            {limit}

trainer.TrainingProgress = Limit
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
    assert told.endswith("File too large (os error 27)). Make room; the same command goes on from step 20.")
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


def losses(folder):
    return [row["loss"] for row in json.loads((folder / "log_history.json").read_text())]


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
    shards = sorted((sharded / "checkpoints" / "checkpoint-10" / "pytorch_model_fsdp_0").glob("*.distcp"))
    weights = sum(tensor.numel() * 4 for tensor in load_file(one / "model.safetensors").values())
    assert len(shards) == 2
    for shard in shards:
        assert 0.4 * weights < shard.stat().st_size < 0.8 * weights


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


def test_shards_need_several_processes(tmp_path):
    with refused():
        run.train(SHARDED, tmp_path / "out")
    assert not (tmp_path / "out").exists()
