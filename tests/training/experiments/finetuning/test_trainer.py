from dataclasses import replace

from stepsight.training.experiments.finetuning.recipe import read_recipe
from stepsight.training.experiments.finetuning.trainer import arguments_of
from tests.conftest import ROOT
from tests.messages import refused
from tests.training.experiments.finetuning.small import RECIPE


def test_the_trainer_gets_what_the_recipe_says(tmp_path):
    recipe = read_recipe(ROOT / "training" / "configs" / "mistral-7b-sft.yaml")
    # On one device here: 32 rows in 4 parts are 8 at once.
    arguments = arguments_of(replace(recipe, fsdp=False), tmp_path)
    assert (arguments.per_device_train_batch_size, arguments.gradient_accumulation_steps) == (8, 4)
    assert (arguments.learning_rate, arguments.lr_scheduler_type, arguments.warmup_steps) == (5e-7, "cosine", 16)
    assert (arguments.num_train_epochs, arguments.seed, arguments.bf16) == (4, 42, True)
    assert (arguments.weight_decay, arguments.max_grad_norm) == (0.0, 1.0)
    assert (arguments.adam_beta1, arguments.adam_beta2, arguments.optim) == (0.9, 0.999, "adamw_torch_fused")
    assert arguments.activation_checkpointing
    assert not arguments_of(RECIPE, tmp_path).activation_checkpointing
    assert not arguments.packing


def test_a_step_that_cannot_be_shared_out_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("trl.trainer.sft_config.SFTConfig.world_size", 3)
    with refused():
        arguments_of(RECIPE, tmp_path)
