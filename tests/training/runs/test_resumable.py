"""What both trainers share; what they do with it is tested with each."""

import dataclasses

import pytest

from stepsight.training.experiments.finetuning.recipe import Recipe
from stepsight.training.runs.resumable import arguments_for, check_processes, logging_steps
from stepsight.training.train.config import TrainConfig
from tests.messages import refused


def test_a_history_has_a_hundred_rows_or_a_row_for_twenty_steps():
    assert [logging_steps(steps) for steps in (1, 99, 199, 200, 750, 1999, 2000, 12_000)] == [
        1,
        1,
        1,
        2,
        7,
        19,
        20,
        20,
    ]


def test_one_process_is_too_few_to_shard():
    sharded = dataclasses.make_dataclass("Sharded", [("fsdp", bool)])(fsdp=True)
    check_processes(sharded, 2, "sft")
    with refused():
        check_processes(sharded, 1, "sft")


@pytest.mark.parametrize("kind", [TrainConfig, Recipe])
def test_both_configurations_have_every_key(kind):
    keys = {field.name for field in dataclasses.fields(kind)}
    assert {"accumulation", "betas", "clip", "save_steps", "activation_checkpointing", "fsdp"} <= keys


def test_activation_checkpointing_is_asked_for_once(tmp_path):
    def asked(fsdp):
        keys = {field.name: None for field in dataclasses.fields(TrainConfig)}
        keys |= {"betas": (0.9, 0.95), "activation_checkpointing": True, "fsdp": fsdp}
        found = arguments_for(dataclasses.make_dataclass("Some", list(keys))(**keys), tmp_path)
        return found["activation_checkpointing"], found["fsdp_config"]["activation_checkpointing"]

    # With FSDP it is FSDP's own.
    assert (asked(False), asked(True)) == ((True, True), (False, True))
