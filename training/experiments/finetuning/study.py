"""Studies of data filtering, each described in a YAML file.

The file names a pool, the evaluators that choose subsets of the pool, the model to fine-tune on each subset with
each seed, and the problems that the fine-tuned models answer.
"""

import dataclasses
import json
import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, PositiveInt
from pydantic.dataclasses import dataclass

from stepsight.core.errors import UserError
from stepsight.core.files.yaml_files import read_yaml, validate_yaml
from stepsight.core.validation import STRICT, ListOf, Record, choice, distinct, invalid, validate
from stepsight.training.experiments.filtering.subsets import SUBSETS
from stepsight.training.experiments.finetuning.recipe import FREE, Recipe
from stepsight.training.experiments.finetuning.run import model_name
from stepsight.training.runs.folder import RunFolder
from stepsight.training.runs.optimisation import Precision, Seed
from stepsight.training.train.config import Backbone

RECORD = "study.json"
"""The file of a study's folder that identifies the study."""
# Keys of a recipe that the study itself sets.
_OWN = ("data", "seed")
# Keys of a study that do not affect its results, and keys whose effect shows in the recipe's values.
_FREE = ("notes", "keep_models", "threads", "processes")
_OF_RECIPE = ("recipe", "settings")
_UNSAFE = re.compile(r"[^\w.+-]+")


def slug(name: str) -> str:
    """Turn a name into text that is safe as a folder name."""
    return _UNSAFE.sub("-", name).strip("-.") or "evaluator"


def _check_evaluators(evaluators: tuple[str, ...]) -> tuple[str, ...]:
    """Check that the evaluators have distinct names, because the folders of the results are named after them."""
    distinct(tuple(slug(spec) for spec in evaluators))
    specs: dict[str, str] = {}
    for spec in evaluators:
        name = model_name(Path(spec))
        if name in specs:
            raise invalid(
                f"{specs[name]} and {spec} are both called {name}.",
                "Rename the folder of one: results bear its name.",
            )
        specs[name] = spec
    return evaluators


@dataclass(frozen=True, config=STRICT)
class ScratchModel(Record):
    """A small, randomly initialised model. The model has the dimensions of `backbone`, a tokenizer of `vocabulary`
    tokens trained on the pool, and weights initialised with `seed`."""

    backbone: Backbone
    vocabulary: PositiveInt = 1024
    seed: Seed = 13


@dataclasses.dataclass(frozen=True)
class StudyRun:
    """A run of a study, in which the model is fine-tuned on the `subset` chosen by `evaluator`, with one seed."""

    evaluator: str
    subset: str
    seed: int

    @property
    def name(self) -> str:
        """The name of the run's folder, such as `mini-bidir/val+red-42`."""
        return f"{slug(self.evaluator)}/{self.subset}-{self.seed}"


@dataclass(frozen=True, config=STRICT)
class Study(Record):
    """A study of data filtering.

    `pool` lists files, which are looked up in the study's folder, then in the data folder. `where` holds conditions
    that rows must meet. `sample` of the rows that meet them are chosen at random, using `filter_seed`
    (`training.experiments.filtering.pool`). `skip_bad` leaves out rows that do not hold a solution or are too
    long for an evaluator. `leave_out_problems` leaves out rows whose query is one of the problems. `match` is the
    size of the subsets (default: the size of val+red), which are chosen with `filter_seed`.

    Every run starts from the same model: the model that the recipe names, or `start`. `recipe` is a file next to
    the study, and `settings` overrides keys of the recipe. Every model answers `problems` (default: MATH-500),
    `batch` at a time and with at most `tokens` tokens per answer. `dtype` is the data type of the weights when
    models answer.

    A run uses `processes` processes with `threads` threads each. Models are deleted once they have been measured,
    unless `keep_models` is set.
    """

    name: str
    pool: Annotated[ListOf[str], AfterValidator(distinct)]
    evaluators: Annotated[ListOf[str], AfterValidator(_check_evaluators)]
    recipe: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    start: ScratchModel | None = None
    subsets: Annotated[ListOf[Annotated[str, choice(SUBSETS)]], AfterValidator(distinct)] = SUBSETS
    seeds: Annotated[ListOf[Seed], AfterValidator(distinct)] = (42, 43, 44)
    match: PositiveInt | None = None
    filter_seed: Seed = 0
    skip_bad: bool = False
    leave_out_problems: bool = True
    where: ListOf[str] = ()
    sample: PositiveInt | None = None
    problems: str | None = None
    tokens: PositiveInt = 2048
    batch: PositiveInt = 32
    engine: Literal["auto", "vllm", "transformers"] = "auto"
    dtype: Precision = "float32"
    processes: PositiveInt = 1
    threads: PositiveInt = 1
    keep_models: bool = False
    notes: str = field(default="", compare=False)

    def runs(self) -> Iterator[StudyRun]:
        """Yield all runs. For each evaluator, all subsets with one seed come first, so that they can be compared
        early."""
        for evaluator in self.evaluators:
            for seed in self.seeds:
                yield from (StudyRun(evaluator, subset, seed) for subset in self.subsets)

    def run_named(self, name: str) -> StudyRun:
        """Return the run called `name`. Raises `UserError` if the study has no such run."""
        for run in self.runs():
            if run.name == name:
                return run
        raise UserError(f"{self.name} has no run {name!r}.", "See the folder's study.json.")

    def recipe_for(self, root: Path) -> Recipe:
        """Return the recipe that all runs share, apart from the seed. `root` is the folder of the study."""
        values = read_yaml(root / self.recipe) if self.recipe else {}
        if not isinstance(values, dict):
            raise UserError(f"{self.recipe}: {type(values).__name__} found, expected keys with values.")
        taken = [key for key in (*_OWN, "init") if key in self.settings and (key in _OWN or self.start)]
        if taken:
            raise UserError(f"settings.{taken[0]} is set by the study itself.", "Remove it.")
        recipe = validate(Recipe, values | self.settings)
        if self.start is None and recipe.init is None:
            raise UserError("there is no model to train.", "Give start, or settings.init.")
        return recipe

    @property
    def problems_file(self) -> Path | None:
        """The file of problems, or None to use MATH-500."""
        return Path(self.problems) if self.problems else None

    def values(self, root: Path) -> dict[str, Any]:
        """Return the settings that determine the results, as JSON values.

        The result contains the study's own keys and the keys of its recipe, such as `recipe.epochs`, but not the
        contents of other files that the study names. `root` is the folder of the study.
        """
        own = dataclasses.asdict(self)
        recipe = dataclasses.asdict(self.recipe_for(root))
        values = {key: own[key] for key in own if key not in (*_FREE, *_OF_RECIPE)}
        values |= {f"recipe.{key}": recipe[key] for key in recipe if key not in (*_OWN, *FREE, "notes", "plan")}
        return json.loads(json.dumps(values))  # type: ignore[no-any-return]


def read_study(path: Path) -> Study:
    """Read and check the study in a YAML file. Raises `UserError`, naming file and key, if it is invalid."""
    study = validate_yaml(Study, path)
    try:
        study.recipe_for(path.parent)
    except UserError as error:
        raise error.at(str(path)) from None
    return study


def study_folder(folder: Path) -> RunFolder:
    """Return the `RunFolder` for a study's results. The record in this folder identifies the study."""
    return RunFolder(folder, RECORD, free=(*_FREE, *_OF_RECIPE))
