"""What both trainers share; what they do with it is tested with each."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from transformers import TrainingArguments

from stepsight.training.runs.training import Safeguard, arguments_for, last_checkpoint, logging_steps
from tests.messages import refused
from tests.training.small_runs import CONFIG


def test_a_history_has_a_hundred_rows_or_a_row_for_twenty_steps():
    steps = {1: 1, 99: 1, 199: 1, 200: 2, 750: 7, 1999: 19, 2000: 20, 12_000: 20}
    assert {of: logging_steps(of) for of in steps} == steps


def test_one_process_is_too_few_to_shard(tmp_path):
    with refused():
        arguments_for(TrainingArguments, replace(CONFIG, fsdp=True), tmp_path, "sft")


@pytest.mark.parametrize("fsdp", [False, True])
def test_activation_checkpointing_is_requested_once(tmp_path, monkeypatch, fsdp):
    """With FSDP it is FSDP's own."""
    monkeypatch.setattr(TrainingArguments, "world_size", 2)
    config = replace(CONFIG, fsdp=fsdp, activation_checkpointing=True)
    made = arguments_for(TrainingArguments, config, tmp_path, "train")
    assert (made.activation_checkpointing, made.fsdp_config["activation_checkpointing"]) == (not fsdp, True)


def write(folder, step):
    checkpoint = folder / f"checkpoint-{step}"
    (checkpoint / "optimizer_0").mkdir(parents=True, exist_ok=True)
    (checkpoint / "model.safetensors").write_bytes(b"1234")
    (checkpoint / "optimizer_0" / "0.distcp").write_bytes(b"12345")
    arguments = SimpleNamespace(should_save=True, output_dir=folder)
    Safeguard().on_save(arguments, SimpleNamespace(global_step=step), None)
    return checkpoint


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer_0/0.distcp", "contents.json"])
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
