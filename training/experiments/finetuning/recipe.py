"""The recipe of a fine-tuning run: a YAML file that is validated before any work is done."""

from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass

from stepsight.core.errors import UserError, located
from stepsight.core.files.jsonl import read_file
from stepsight.core.files.yaml_files import validate_yaml
from stepsight.core.validation import STRICT, invalid
from stepsight.storage.importers.rows.fields import text
from stepsight.training.runs.optimisation import Betas, Optimisation, Precision, Seed
from stepsight.training.train.config import Expected

CARD = "sft.json"
"""The file of a fine-tuned model's folder that says how it came about."""
QUERY = "{query}"
PROMPT = f"Question:\n{QUERY}\nAnswer:\n"
"""The default text before an answer."""
FREE = ("accumulation", "activation_checkpointing", "save_steps", "notes", "plan")
"""Keys that may differ when a run is resumed, since they do not affect what is learnt."""


def _check_prompt(prompt: str) -> str:
    if prompt.count(QUERY) != 1:
        raise invalid(f"{prompt!r:.80} found, expected {QUERY} in it once.")
    return prompt


Prompt = Annotated[str, AfterValidator(_check_prompt)]
"""The text before an answer, with the query in it once."""


@dataclass(frozen=True, config=STRICT)
class Recipe(Optimisation):
    """A recipe for fine-tuning a causal language model, whose keys `docs/choose.md` explains. `init` and `data` can
    be given on the command line instead."""

    init: str | None = None
    data: str | None = None
    prompt: Prompt = PROMPT
    loss: Literal["response", "all"] = "response"
    epochs: PositiveInt = 4
    learning_rate: PositiveFloat = 5e-7
    betas: Betas = (0.9, 0.999)
    weight_decay: NonNegativeFloat = 0.0
    warmup_steps: NonNegativeInt = 16
    seed: Seed = 42
    max_length: PositiveInt = 2048
    saved_dtype: Precision = "bfloat16"
    notes: str = field(default="", compare=False)
    plan: Expected | None = field(default=None, compare=False)


def read_recipe(path: str | Path) -> Recipe:
    """Read the recipe in a YAML file. Raises `UserError`, naming the file and the key, if the recipe is invalid."""
    return validate_yaml(Recipe, path)


def read_pairs(path: Path, first: str, second: str) -> list[tuple[str, str]]:
    """Read two texts, such as `query` and `response`, from each row of a JSON Lines file. Raises `UserError`,
    naming the line, if a row lacks one of them, or if there are no rows."""
    pairs = []
    for number, row in read_file(path):
        with located(f"{path} line {number}"):
            pairs.append((text(row, first), text(row, second)))
    if not pairs:
        raise UserError(f"{path}: there are no rows.", f"Write one object with {first} and {second} per line.")
    return pairs
