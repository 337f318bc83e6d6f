"""Fine-tuning runs: whole, stopped, killed, refused."""

import fcntl
import json
import os
import shutil
import signal
import socket
from dataclasses import replace
from functools import partial

import pytest
import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file

from stepsight.core.models.placement import Placement
from stepsight.training.experiments.finetuning import trainer
from stepsight.training.experiments.finetuning.examples import build_examples
from stepsight.training.experiments.finetuning.models import load_model, load_text_tokenizer
from stepsight.training.experiments.finetuning.run import CARD, FineTuning, fine_tune, read_card
from tests.messages import refused
from tests.training.experiments.finetuning import forks
from tests.training.experiments.finetuning.small import RECIPE, ROWS, fine_tuning


@pytest.fixture(scope="module")
def whole(start, tmp_path_factory):
    """The folder of an uninterrupted run; not to be changed."""
    folder = tmp_path_factory.mktemp("runs")
    path = folder / "red.jsonl"
    path.write_text("".join(json.dumps({"query": query, "response": response}) + "\n" for query, response in ROWS))
    return fine_tune(fine_tuning(start, path), folder / "whole")


def history(output):
    rows = json.loads((output / "log_history.json").read_text())
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def assert_same_run(left, right):
    assert history(left) == history(right)
    ours, theirs = load_file(left / "model.safetensors"), load_file(right / "model.safetensors")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_run_writes_a_language_model(whole, start):
    model, tokenizer = load_model(whole, Placement(dtype="float32")), load_text_tokenizer(whole)
    before = load_file(start / "model.safetensors")
    after = load_file(whole / "model.safetensors")
    assert before.keys() == after.keys()
    assert not any(torch.equal(before[name], after[name]) for name in ("lm_head.weight", "model.norm.weight"))
    assert tokenizer.eos_token == "<end>"
    assert model.config.eos_token_id == tokenizer.eos_token_id
    assert [row["step"] for row in history(whole)] == [1, 2, 3, 4, 5, 6]
    losses = [row["loss"] for row in history(whole)]
    assert losses[-1] < losses[0]
    assert not (whole / "checkpoints").exists()
    card = read_card(whole)
    assert (card["examples"], card["left_out"], card["steps"], card["seed"]) == (24, 0, 6, 42)
    assert (card["data"]["name"], card["data"]["rows"]) == ("red", 24)
    assert card["init"]["name"] == "start"
    assert str(start.parent) not in (whole / CARD).read_text()


def test_the_first_loss_is_the_mean_over_the_tokens_that_are_learnt(whole, start, subset):
    # One step of all rows from the same weights: no order, no dropout.
    output = fine_tune(fine_tuning(start, subset, batch_size=24, epochs=1), whole.parent / "one-step")
    tokenizer, model = load_text_tokenizer(start), load_model(start, Placement(dtype="float32"))
    examples, _ = build_examples(ROWS, tokenizer, RECIPE.prompt, False, 128)
    total = learnt = 0
    for example in examples:
        ids, labels = torch.tensor([example.ids]), torch.tensor(example.labels)
        with torch.inference_mode():
            logits = model(input_ids=ids).logits[0]
        total += float(torch.nn.functional.cross_entropy(logits[:-1], labels[1:], reduction="sum"))
        learnt += int((labels[1:] != -100).sum())
    assert history(output)[0]["loss"] == pytest.approx(total / learnt, abs=1e-4)
    # The same in three parts, one after the other.
    parts = fine_tune(fine_tuning(start, subset, batch_size=24, epochs=1, accumulation=3), whole.parent / "parts")
    assert history(parts)[0]["loss"] == pytest.approx(total / learnt, abs=1e-4)


def test_a_finished_run_is_left_as_it_is(whole, start, tmp_path, capsys):
    copy = shutil.copytree(whole, tmp_path / "whole")
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    fine_tune(fine_tuning(start, whole.parent / "red.jsonl", save_steps=3, accumulation=2), copy)
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before
    assert "whole is fine-tuned already" in capsys.readouterr().err


def test_a_folder_with_another_run_is_refused(whole, start, subset):
    rows = subset.read_text().splitlines()
    subset.write_text("\n".join(rows[1:]))
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    for job in (
        fine_tuning(start, whole.parent / "red.jsonl", seed=43),
        fine_tuning(start, subset),
        fine_tuning(whole, whole.parent / "red.jsonl"),
    ):
        with refused():
            fine_tune(job, whole)
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*")} == before


def test_a_folder_that_another_process_is_at_is_left_to_it(start, subset, tmp_path):
    output = tmp_path / "out"
    (output / "checkpoints" / "partial").mkdir(parents=True)
    job = fine_tuning(start, subset)
    (output / "run.json").write_text(json.dumps(job.values()))
    with open(output / "running.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with refused():
            fine_tune(job, output)
    # What that one writes is still there.
    assert (output / "checkpoints" / "partial").is_dir()


def dies_at(step, job, output):
    """A run that is killed before the step after `step`."""

    class Die(trainer.TrainingProgress):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == step:
                os.kill(os.getpid(), signal.SIGKILL)

    trainer.TrainingProgress = Die
    fine_tune(job, output)


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nothing_had_happened(whole, start, tmp_path):
    job, output = fine_tuning(start, whole.parent / "red.jsonl"), tmp_path / "whole"
    assert forks.ended(forks.start(lambda: dies_at(5, job, output))) == -signal.SIGKILL
    assert not (output / CARD).exists()
    assert sorted(path.name for path in (output / "checkpoints").iterdir()) == ["checkpoint-2", "checkpoint-4"]
    fine_tune(job, output)
    assert_same_run(output, whole)


def one_of_two(rank, port, job, output):
    """A run in one of two processes that train together, as torchrun starts them."""
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    # It remembers that this process was alone.
    AcceleratorState._reset_state(reset_partial_state=True)
    fine_tune(job, output)


# In batches of 8, 17 rows leave one to the last step, so that one of two processes has none; 19 leave three, which
# in two parts are two and one.
@pytest.mark.parametrize(("fsdp", "rows", "accumulation"), [(True, 17, 1), (False, 19, 2)])
@pytest.mark.slow
def test_two_processes_learn_what_one_does(start, subset, tmp_path, fsdp, rows, accumulation):
    subset.write_text("".join(subset.read_text().splitlines(keepends=True)[:rows]))
    one = fine_tune(fine_tuning(start, subset), tmp_path / "one")
    job, output = fine_tuning(start, subset, fsdp=fsdp, accumulation=accumulation), tmp_path / "two"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [forks.start(partial(one_of_two, rank, port, job, output)) for rank in range(2)]
    assert [forks.ended(child) for child in children] == [0, 0]
    assert_same_learning(output, one)
    assert [row["step"] for row in history(output)] == [1, 2, 3, 4, 5, 6]
    assert read_card(output)["devices"] == "2 x cpu"


def assert_same_learning(left, right):
    """Two runs that computed the same steps in other parts."""
    ours, theirs = history(left), history(right)
    assert [row["loss"] for row in ours] == pytest.approx([row["loss"] for row in theirs], abs=1e-4)
    assert [row["num_tokens"] for row in ours] == [row["num_tokens"] for row in theirs]
    # Every row once an epoch, and nothing twice.
    assert ours[-1]["num_tokens"] == read_card(left)["tokens"]
    # The mean over parts, of which the last step's may be of fewer rows.
    accuracies = [[row["mean_token_accuracy"] for row in rows] for rows in (ours, theirs)]
    assert accuracies[0] == pytest.approx(accuracies[1], abs=0.1)
    weights, others = (load_file(folder / "model.safetensors") for folder in (left, right))
    assert weights.keys() == others.keys()
    for name, weight in weights.items():
        torch.testing.assert_close(weight, others[name], rtol=0, atol=2e-3, msg=name)


def test_parts_of_a_step_learn_what_it_does(start, subset, tmp_path):
    # 17 rows in batches of 8: the last step's second part has no row.
    subset.write_text("".join(subset.read_text().splitlines(keepends=True)[:17]))
    one = fine_tune(fine_tuning(start, subset), tmp_path / "one")
    two = fine_tune(fine_tuning(start, subset, accumulation=2), tmp_path / "two")
    assert_same_learning(two, one)
    assert history(two)[2]["mean_token_accuracy"] == pytest.approx(history(one)[2]["mean_token_accuracy"], abs=0.01)


def test_an_interrupt_says_how_to_go_on(start, subset, tmp_path, monkeypatch, capsys):
    class Stop(trainer.TrainingProgress):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(trainer, "TrainingProgress", Stop)
    with pytest.raises(KeyboardInterrupt):
        fine_tune(fine_tuning(start, subset), tmp_path / "out")
    assert "The same command goes on from step 2 of 6." in capsys.readouterr().err


def test_an_impossible_run_is_refused_before_the_folder_is_claimed(start, subset, tmp_path):
    output = tmp_path / "out"
    with refused():
        fine_tune(fine_tuning(start, subset, max_length=5), output)
    with refused():
        fine_tune(fine_tuning(start, subset, fsdp=True), output)
    assert not output.exists()
    for missing in ("init", "data"):
        with refused():
            FineTuning.of(replace(RECIPE, **({"init": str(start), "data": str(subset)} | {missing: None})))


def test_a_loss_that_is_no_number_ends_the_run(start, subset, tmp_path):
    with refused():
        fine_tune(fine_tuning(start, subset, learning_rate=1e30, clip=1e30), tmp_path / "out")
