"""The loss of labels and shares at the ends of steps, by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from stepsight.core.models.model import StepModel, linear_head
from stepsight.training.data.examples import IGNORED, SOFT, collate
from stepsight.training.train import run
from stepsight.training.train.init import llama_config
from stepsight.training.train.run import assembled, step_losses, step_objective
from tests.training.small_runs import CONFIG, ONE, forked_pair, losses, make_loop, synthetic, write_config

PER_EXAMPLE = replace(ONE, loss="example")


def cross_entropies(model, examples):
    """Of each supervised step end."""
    batch = collate(examples)
    with torch.no_grad():
        logits = model(batch["input_ids"], batch["attention_mask"], batch["ends"]).flatten(0, 1)
    labels = batch["labels"].flatten()
    return functional.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="none")[labels != IGNORED]


def test_a_step_s_loss_is_the_mean_over_its_supervised_ends(tmp_path):
    loop = make_loop(ONE, tmp_path)
    expected = cross_entropies(loop.model, loop.objective.examples).mean()
    # The mean of the traces' means is another number: their ends differ in count.
    means = [float(cross_entropies(loop.model, [example]).mean()) for example in loop.objective.examples]
    loop.train()
    loss = loop.history[0]["loss"]
    assert loss == pytest.approx(float(expected), abs=1e-6)
    assert abs(float(np.mean(means)) - loss) > 1e-3


def test_the_paper_s_loss_is_the_mean_over_each_trace_s_ends(tmp_path):
    """Two traces, of one end that is pos and of nine that are neg, by hand."""
    model = make_loop(ONE, tmp_path).model
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
    batch = {"input_ids": ids, "attention_mask": mask, "ends": ends, "labels": labels}
    for config, expected in ((ONE, pooled), (PER_EXAMPLE, mean)):
        objective = step_objective(config, model, model, [])
        loss = objective.loss(model, batch) / objective.count(batch)
        assert loss.item() == pytest.approx(expected, abs=1e-5)


def test_the_loss_of_a_share_is_the_cross_entropy_of_validity():
    logits = torch.randn(1, 3, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    labels, shares = torch.tensor([[SOFT, 0, IGNORED]]), torch.tensor([[0.25, 0.9, 0.9]])
    neg, neu, pos = logits[0, 0].softmax(-1)
    soft = -(0.25 * (neu + pos).log() + 0.75 * neg.log())
    hard = -logits[0, 1].log_softmax(-1)[0]
    torch.testing.assert_close(step_losses(logits, labels, shares)[0], torch.stack([soft, hard, torch.tensor(0.0)]))
    # The gradient of neu and pos is in the proportion of their probabilities.
    (gradient,) = torch.autograd.grad(step_losses(logits, labels, shares)[0, 0], logits)
    torch.testing.assert_close(gradient[0, 0, 1] / gradient[0, 0, 2], neu / pos)


def mean_of_means(config, folder):
    """The paper's loss in the first step, one trace after the other."""
    loop = make_loop(config, folder)
    first = loop.batches.steps(0)[0]
    return float(
        torch.stack([cross_entropies(loop.model, [loop.objective.examples[i]]).mean() for i in first]).mean()
    )


@pytest.mark.parametrize("loss", ["pooled", "example"])
def test_a_step_is_the_same_however_it_is_parted(tmp_path, loss):
    # 11 traces are a batch of 8 and one of 3, which has fewer than parts.
    config = replace(ONE, loss=loss, data=synthetic(11))
    found = []
    for accumulation in (1, 8):
        loop = make_loop(replace(config, accumulation=accumulation), tmp_path / str(accumulation))
        loop.train()
        found.append([row["loss"] for row in loop.history])
    assert len(found[0]) == 2
    assert found[1] == pytest.approx(found[0], abs=1e-6)
    if loss == "example":
        assert found[0][0] == pytest.approx(mean_of_means(config, tmp_path / "fresh"), abs=1e-6)


@pytest.mark.slow
def test_every_trace_counts_alike_in_two_processes(tmp_path):
    config = replace(PER_EXAMPLE, data=synthetic(11), accumulation=2)
    pair = forked_pair("train", write_config(tmp_path / "config.yaml", config), "--output", tmp_path / "pair")
    assert [process.returncode for process in pair] == [0, 0], pair[0].stderr
    assert losses(tmp_path / "pair")[0] == pytest.approx(mean_of_means(config, tmp_path / "fresh"), abs=1e-5)
    assert losses(tmp_path / "pair") == pytest.approx(losses(run.train(config, tmp_path / "one")), abs=1e-5)


@pytest.mark.parametrize("bias", [None, torch.tensor([1.0, 2.0, 3.0])])
def test_shards_of_a_head_are_put_together_as_it_was(bias):
    config = llama_config(CONFIG.backbone, 400, "causal")
    model = StepModel(StepModel.from_config(config).model, linear_head(torch.ones(3, 32), bias))
    whole = assembled(config, model.state_dict())
    assert whole.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(tensor, whole.state_dict()[name]) for name, tensor in model.state_dict().items())
    assert ("score.bias" in whole.state_dict()) == (bias is not None)
