"""What a fine-tuning run takes, before anything is loaded, by the plan of a training run."""

from dataclasses import replace
from pathlib import Path

from core.errors import UserError
from training.config import TrainConfig
from training.data import Data
from training.finetuning.recipe import Recipe
from training.finetuning.subset import read_subset
from training.hardware import DEFAULT, find_gpu
from training.network import Network, network_of
from training.plan import Plan, Work

# Characters for each token, where no tokenizer has counted them.
_CHARACTERS = 3


def forecast(recipe: Recipe, root: Path, gpu: str | None = None, devices: int | None = None) -> Plan:
    """The plan of a recipe in the folder `root`, on the devices that are given, or that it is written for.

    Raises `UserError` where the GPU is not known, or neither the recipe nor its files tell how much is learnt from
    or how large the model is.
    """
    config = _as_training(recipe)
    expected = recipe.plan
    count = devices or (expected.devices if expected else 1)
    found = find_gpu(gpu or (expected and expected.gpu) or DEFAULT)
    return Plan(config, _with_head(network_of(config, root)), _work(recipe, root), found, count)


def _as_training(recipe: Recipe) -> TrainConfig:
    """A training run of the same size: what a plan looks at is alike in both."""
    if recipe.init is None:
        raise UserError("the recipe names no model to start from.", "Give --init MODEL.")
    return TrainConfig(
        attention="causal",
        data=Data(()),
        init=recipe.init,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        max_length=recipe.max_length,
        accumulation=recipe.accumulation,
        activation_checkpointing=recipe.activation_checkpointing,
        fsdp=recipe.fsdp,
        bf16=recipe.bf16,
        plan=recipe.plan,
    )


def _with_head(network: Network) -> Network:
    """The network with the head that writes text, as large as its embedding, for the head that scores steps."""
    more = network.embedding - 3 * network.hidden
    return replace(network, parameters=network.parameters + more, rest=network.rest + more)


def _work(recipe: Recipe, root: Path) -> Work:
    if recipe.plan and recipe.plan.traces and recipe.plan.tokens:
        return Work(recipe.plan.traces, float(recipe.plan.tokens), counted=False)
    if recipe.data is None:
        raise UserError("neither the recipe nor --data tells how much is learnt from.", "Give --data SUBSET.jsonl.")
    rows = read_subset(root / recipe.data if (root / recipe.data).is_file() else Path(recipe.data)).rows
    characters = sum(len(query) + len(response) for query, response in rows)
    return Work(len(rows), characters / len(rows) / _CHARACTERS, counted=True)
