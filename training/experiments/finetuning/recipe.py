"""The recipe of a fine-tuning run: a YAML file, checked before any work."""

from dataclasses import dataclass, field
from pathlib import Path

from stepsight.core.errors import UserError
from stepsight.core.yaml_config import above_zero, build, one_of, read_yaml
from stepsight.training.train.config import Expected, check_learning

LOSSES = ("response", "all")
QUERY = "{query}"
PROMPT = f"Question:\n{QUERY}\nAnswer:\n"
"""What stands before an answer where nothing else is said."""
FREE = ("accumulation", "activation_checkpointing", "save_steps")
"""Keys that may differ when a run goes on, for they change nothing of what is learnt."""


@dataclass(frozen=True)
class Recipe:
    """One fine-tuning run of a causal language model.

    `init` is the folder or hub id of the model and `data` a subset, JSON Lines with `query` and `response`; both
    may be left to the command line. `prompt` is what stands before a response, with `{query}` once. `loss` response
    teaches the response and the token that ends it; all teaches the prompt too. Rows of more than `max_length`
    tokens are left out and counted, never cut.

    `batch_size` is the rows of one optimiser step, over all devices; `accumulation` the parts that a device
    computes its share in. `fsdp` shards weights, gradients and optimiser state over the devices. `bf16` computes in
    bfloat16 and keeps the weights in float32; `saved_dtype` is what the model is written in. `plan` changes nothing
    of what is learnt.
    """

    init: str | None = None
    data: str | None = None
    prompt: str = PROMPT
    loss: str = LOSSES[0]
    epochs: int = 4
    batch_size: int = 32
    learning_rate: float = 5e-7
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    warmup_steps: int = 16
    clip: float = 1.0
    seed: int = 42
    max_length: int = 2048
    accumulation: int = 1
    activation_checkpointing: bool = False
    fsdp: bool = False
    bf16: bool = False
    saved_dtype: str = "bfloat16"
    save_steps: int = 200
    notes: str = field(default="", compare=False)
    plan: Expected | None = field(default=None, compare=False)


def read_recipe(path: str | Path) -> Recipe:
    """Read and check a YAML file. Raises `UserError` naming the file and key."""
    values = read_yaml(path)
    try:
        return recipe_of(values)
    except UserError as error:
        raise error.at(str(path)) from None


def recipe_of(values: object) -> Recipe:
    """A recipe from the keys and values of a YAML file; raises `UserError` as `read_recipe`, without the file."""
    recipe: Recipe = build(Recipe, values)
    check_recipe(recipe)
    return recipe


def check_recipe(recipe: Recipe) -> None:
    """Raises `UserError` naming the first key whose value means nothing."""
    check_prompt(recipe.prompt)
    one_of("loss", recipe.loss, LOSSES)
    above_zero(recipe, ("max_length",))
    check_learning(recipe, "rows")


def check_prompt(prompt: str) -> None:
    """Raises `UserError` where the query has not exactly one place in it."""
    if prompt.count(QUERY) != 1:
        raise UserError(f"prompt is {prompt!r:.80}, expected {QUERY} in it once.")
