import pytest

from stepsight.core.errors import UserError
from stepsight.core.validation import update
from stepsight.training.experiments.finetuning.recipe import read_recipe
from tests.conftest import ROOT
from tests.training.experiments.finetuning.small import RECIPE


def test_the_papers_recipe_is_appendix_a5():
    recipe = read_recipe(ROOT / "training" / "configs" / "mistral-7b-sft.yaml")
    assert (recipe.epochs, recipe.batch_size, recipe.max_length) == (4, 32, 2048)
    assert (recipe.learning_rate, recipe.warmup_steps, recipe.seed) == (5e-7, 16, 42)
    assert recipe.fsdp
    # Four devices, each with two rows at once: 4 x 2 x 4 = 32.
    assert recipe.plan.devices * 2 * recipe.accumulation == recipe.batch_size
    assert recipe.init == "mistralai/Mistral-7B-v0.1"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt": "Q:"}, r"prompt: 'Q:' found, expected \{query\} in it once"),
        ({"loss": "answer"}, "loss is 'answer', expected one of response, all"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 8, "accumulation": 3}, "no multiple of accumulation 3"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"seed": -1}, "seed is -1"),
        ({"saved_dtype": "int8"}, "saved_dtype"),
    ],
)
def test_meaningless_recipes_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        update(RECIPE, **changes)


def test_a_key_that_is_not_known_is_told_with_its_file(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("epoch: 4\n")
    with pytest.raises(UserError, match=r"recipe\.yaml: unknown key epoch\. Did you mean epochs\?"):
        read_recipe(path)
