"""Studies of data filtering: choosing subsets of a pool, fine-tuning a model on each, and measuring the models.

A study's YAML file names a pool, the evaluators that choose subsets of the pool, the model to fine-tune on each
subset with each seed, and the problems that the fine-tuned models answer. Its folder has:

    FOLDER/study.json                      the record that identifies the study
    FOLDER/recipe.yaml                     the recipe of its fine-tuning runs
    FOLDER/start                           the model from scratch, if the study has one
    FOLDER/pool.db                         the store of the pool and its scores
    FOLDER/EVALUATOR/subsets               what `stepsight filter` writes
    FOLDER/EVALUATOR/SUBSET-SEED           what `stepsight sft` writes
    FOLDER/EVALUATOR/math500/SUBSET-SEED   what `stepsight math500` writes
    FOLDER/logs                            the output of these commands
    FOLDER/report.html, tables             the output of `stepsight report filtering FOLDER`
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, PositiveInt
from pydantic.dataclasses import dataclass

from stepsight.core.errors import UserError, located
from stepsight.core.files.whole_files import write_json
from stepsight.core.files.yaml_files import read_yaml, validate_yaml
from stepsight.core.paths import data_files
from stepsight.core.validation import STRICT, ListOf, Record, choice, distinct, validate
from stepsight.training.experiments.answers import Grader
from stepsight.training.experiments.filtering.pool import SUBSETS
from stepsight.training.experiments.filtering.run import MANIFEST
from stepsight.training.experiments.finetuning.math500 import FILE, MATH500, read_result
from stepsight.training.experiments.finetuning.recipe import CARD, FREE, Recipe, read_pairs
from stepsight.training.experiments.finetuning.sft import model_folder, write_scratch_model
from stepsight.training.report.tables import slug
from stepsight.training.runs.folder import RunFolder
from stepsight.training.runs.optimisation import Precision, Seed
from stepsight.training.runs.processes import MachineShare, PlannedRun, RunFailures, launcher, run_in_processes
from stepsight.training.train.config import Backbone

# Keys of a study that do not affect its results, and those whose effect shows in the recipe that is recorded.
_FREE = ("notes", "keep_models", "threads", "processes", "recipe", "settings")


def _check_evaluators(evaluators: tuple[str, ...]) -> tuple[str, ...]:
    """Check that the evaluators have distinct names, because the folders of the results are named after them."""
    distinct(tuple(folder_name(evaluator) for evaluator in evaluators))
    return evaluators


def folder_name(evaluator: str) -> str:
    """Return the name of an evaluator's folder, which is the last part of a path or of a hub id."""
    return slug(Path(evaluator).resolve().name)


@dataclass(frozen=True, config=STRICT)
class ScratchModel(Record):
    """A small, randomly initialised model. The model has the dimensions of `backbone`, a tokenizer of `vocabulary`
    tokens trained on the subsets, and weights initialised with `seed`."""

    backbone: Backbone
    vocabulary: PositiveInt = 1024
    seed: Seed = 13


@dataclass(frozen=True, config=STRICT)
class Study(Record):
    """A study of data filtering, whose keys `docs/choose.md` explains. Every run starts from the same model: the
    one that the recipe names, or `start`."""

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
    problems: str = MATH500
    tokens: PositiveInt = 2048
    batch: PositiveInt = 32
    dtype: Precision = "float32"
    processes: PositiveInt = 1
    threads: PositiveInt = 1
    keep_models: bool = False
    notes: str = field(default="", compare=False)

    def recipe_for(self, root: Path) -> Recipe:
        """Return the recipe that all runs share, apart from data and seed. `root` is the folder of the study."""
        values = read_yaml(root / self.recipe) if self.recipe else {}
        if not isinstance(values, dict):
            raise UserError(f"{self.recipe}: {type(values).__name__} found, expected keys with values.")
        for key in ("data", "seed", *(["init"] if self.start else [])):
            if key in self.settings:
                raise UserError(f"settings.{key} is set by the study itself.", "Remove it.")
        recipe = validate(Recipe, values | self.settings)
        if self.start is None and recipe.init is None:
            raise UserError("there is no model to train.", "Give start, or settings.init.")
        return recipe


def read_study(path: Path) -> Study:
    """Read and check the study in a YAML file. Raises `UserError`, naming file and key, if it is invalid."""
    study = validate_yaml(Study, path)
    with located(str(path)):
        study.recipe_for(path.parent)
    return study


def run_study(study: Study, root: Path, folder: Path, jobs: int) -> None:
    """Do the unfinished parts of a study, `jobs` commands at a time. `root` is the folder of the study's file.

    A failed run does not stop the others. Raises `UserError` if the folder belongs to a different study, if a file
    or package is missing or, at the end, if any run failed.
    """
    Grader()
    recipe, problems = study.recipe_for(root), data_files(study.problems, root)[0][1]
    pool = [path for name in study.pool for _, path in data_files(name, root)]
    start = folder / "start" if study.start else model_folder(str(recipe.init), root)
    record = RunFolder(folder, "study.json", free=_FREE)
    record.begin(
        asdict(study) | {f"recipe.{key}": value for key, value in asdict(recipe).items() if key not in FREE}
    )
    write_json(folder / "recipe.yaml", asdict(recipe))

    def run_all(planned: Sequence[PlannedRun], jobs: int = jobs) -> RunFailures:
        missing = [run for run in planned if not run.result.is_file()]
        return run_in_processes(missing, MachineShare(study.processes, study.threads), jobs, _announce)

    def plan(result: Path, *arguments: object) -> PlannedRun:
        name = str(result.parent.relative_to(folder))
        return PlannedRun(name, result, tuple(map(str, arguments)), folder / "logs" / f"{name}.txt")

    options = [f"--by={name}" for name in study.subsets] + [f"--where={condition}" for condition in study.where]
    options += [f"--match={study.match}"] if study.match else []
    options += [f"--sample={study.sample}"] if study.sample else []
    options += ["--skip-bad"] if study.skip_bad else []
    options += [f"--benchmark={problems}"] if study.leave_out_problems else []
    homes = {evaluator: folder / folder_name(evaluator) for evaluator in study.evaluators}
    # One evaluator at a time, because the first imports the pool.
    filtered = [
        plan(
            home / "subsets" / MANIFEST, "-m", "stepsight", "filter", *pool, "--dataset", study.name,
            "--db", folder / "pool.db", "--evaluator", evaluator,
            "--output", home / "subsets", "--seed", study.filter_seed, "--device", "auto", *options,
        )
        for evaluator, home in homes.items()
    ]  # fmt: skip
    run_all(filtered, 1).check()
    subsets = [home / "subsets" / f"{name}.jsonl" for home in homes.values() for name in study.subsets]
    if study.start and not (start / "config.json").is_file():
        texts = (text for path in subsets for pair in read_pairs(path, "query", "response") for text in pair)
        write_scratch_model(start, texts, study.start.backbone, study.start.vocabulary, study.start.seed)
    failures = []
    # All subsets of a seed come first, so that they can be compared early.
    for seed in study.seeds:
        models = {path.parents[1] / f"{path.stem}-{seed}": path for path in subsets}
        failures.append(run_all([
            plan(
                model / CARD, *launcher(study.processes), "-m", "stepsight", "sft", folder / "recipe.yaml",
                "--init", start, "--data", path, "--seed", seed, "--output", model,
            )
            for model, path in models.items()
        ]))  # fmt: skip
        failures.append(run_all([
            plan(
                model.parent / "math500" / model.name / FILE, "-m", "stepsight", "math500", model,
                "--problems", problems, "--output", model.parent / "math500", "--tokens", study.tokens,
                "--batch", study.batch, "--dtype", study.dtype, "--device", "auto",
            )
            for model in models
            if (model / CARD).is_file()
        ]))  # fmt: skip
        for model in models:
            if not study.keep_models and (model.parent / "math500" / model.name / FILE).is_file():
                for weights in model.glob("*.safetensors"):
                    weights.unlink()
    for failure in failures:
        failure.check()


def _announce(run: PlannedRun, number: int, total: int) -> None:
    result = read_result(run.result) if run.result.name == FILE else None
    outcome = (
        f": {sum(result.correct)} of {len(result.correct)} right, {result.length:.0f} tokens" if result else ""
    )
    print(f"{number} of {total}: {run.name}{outcome}", file=sys.stderr)
