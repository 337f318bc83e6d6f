import pytest

from stepsight.core.validation import update
from stepsight.training.experiments.finetuning.recipe import read_pairs, read_recipe
from tests.conftest import ROOT
from tests.messages import refused
from tests.training.experiments.finetuning.small import RECIPE


def test_the_papers_recipe_is_appendix_a5():
    recipe = read_recipe(ROOT / "training" / "configs" / "mistral-7b-sft.yaml")
    assert (recipe.epochs, recipe.batch_size, recipe.max_length) == (4, 32, 2048)
    assert (recipe.learning_rate, recipe.warmup_steps, recipe.seed) == (5e-7, 16, 42)
    assert (recipe.init, recipe.fsdp) == ("mistralai/Mistral-7B-v0.1", True)
    # Four devices, each with two rows at once: 4 x 2 x 4 = 32.
    assert recipe.plan.devices * 2 * recipe.accumulation == recipe.batch_size


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": "Q:"},
        {"loss": "answer"},
        {"epochs": 0},
        {"batch_size": 8, "accumulation": 3},
        {"betas": (0.9, 1.0)},
        {"learning_rate": float("nan")},
        {"seed": -1},
        {"saved_dtype": "int8"},
        {"epoch": 4},
    ],
)
def test_meaningless_recipes_are_refused(changes):
    with refused():
        update(RECIPE, **changes)


@pytest.mark.parametrize("text", ['{"query": "2 + 2?"}\n', '\n{"query": "2?", "response": " "}\n', "\n"])
def test_a_row_without_one_of_its_texts_is_named(tmp_path, text):
    (tmp_path / "rows.jsonl").write_text(text)
    with refused():
        read_pairs(tmp_path / "rows.jsonl", "query", "response")
