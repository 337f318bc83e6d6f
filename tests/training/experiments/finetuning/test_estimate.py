from dataclasses import replace

from stepsight.training.experiments.finetuning.recipe import read_recipe
from stepsight.training.experiments.finetuning.run import estimate_fine_tuning
from tests.conftest import ROOT
from tests.messages import refused
from tests.training.experiments.finetuning.small import RECIPE

CONFIGS = ROOT / "training" / "configs"


def test_the_papers_run_is_7b_on_four_gpus():
    plan = estimate_fine_tuning(read_recipe(CONFIGS / "mistral-7b-sft.yaml"), CONFIGS)
    # Mistral-7B-v0.1: 32 layers of 2 x 4096 x 4096 + 2 x 4096 x 1024 + 3 x 4096 x 14336 + 2 x 4096 weights, a last
    # norm of 4096, and 32,000 x 4096 weights in the embedding and once more in the head.
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096
    assert plan.network.parameters == 32 * layer + 4096 + 2 * 32000 * 4096 == 7_241_732_096
    # 5,222 rows in batches of 32 are 164 steps, four times.
    assert plan.steps == 4 * 164
    assert (plan.devices, plan.per_device, plan.fits) == (4, 2, True)
    assert not estimate_fine_tuning(read_recipe(CONFIGS / "mistral-7b-sft.yaml"), CONFIGS, 24, 4).fits


def test_rows_are_counted_where_they_are_here(start, subset):
    plan = estimate_fine_tuning(replace(RECIPE, init=str(start), data=str(subset)), CONFIGS)
    assert (plan.work.traces, plan.work.counted, plan.steps) == (24, True, 6)
    with refused():
        estimate_fine_tuning(replace(RECIPE, init=str(start)), CONFIGS)
    with refused():
        estimate_fine_tuning(RECIPE, CONFIGS)
