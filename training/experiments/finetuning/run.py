"""A fine-tuning run, which turns a recipe and a subset into the folder of a language model.

    stepsight sft training/configs/mistral-7b-sft.yaml --data subsets/red.jsonl --seed 42 --output runs/red-42
    torchrun --nproc-per-node 4 -m stepsight sft RECIPE.yaml --data FILE --output FOLDER

In addition to the model's own files, the folder has:

    FOLDER/run.json        the inputs of the run, which identify it
    FOLDER/checkpoints     the checkpoints from which it resumes
    FOLDER/sft.json        the outcome, written last
"""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_json
from stepsight.core.models.devices import torch_dtype
from stepsight.core.models.placement import Placement
from stepsight.training.data.sources_config import Data, Source
from stepsight.training.experiments.finetuning.examples import SubsetFile, TextExample, build_examples, read_subset
from stepsight.training.experiments.finetuning.models import (
    context_of,
    load_model,
    load_text_tokenizer,
    model_fingerprint,
    model_folder,
    no_bars,
)
from stepsight.training.experiments.finetuning.recipe import FREE, Recipe
from stepsight.training.runs import provenance
from stepsight.training.runs.checkpoints import Checkpoints
from stepsight.training.runs.figures import write_history
from stepsight.training.runs.folder import RunFolder
from stepsight.training.train.config import Expected, TrainConfig
from stepsight.training.train.estimate import CHARACTERS, DEFAULT_MEMORY, Estimate, Network, Work, network_of

CARD = "sft.json"
LOG = "log_history.json"
_PACKAGES = ("trl", "datasets", "math_verify")


@dataclass(frozen=True)
class FineTuning:
    """A fine-tuning job: a recipe, the folder of the model to start from, and a subset to learn from."""

    recipe: Recipe
    folder: Path
    subset: SubsetFile

    @classmethod
    def of(cls, recipe: Recipe, root: Path = Path()) -> "FineTuning":
        """Return the job that a recipe describes. Paths in the recipe are resolved in `root`.

        Raises `UserError` if the recipe lacks `init` or `data`, if the model is not a causal language model, or if
        a row of the subset lacks a query or a response.
        """
        if recipe.init is None:
            raise UserError("the recipe names no model to start from.", "Give --init MODEL.")
        if recipe.data is None:
            raise UserError("the recipe names no subset to learn from.", "Give --data SUBSET.jsonl.")
        data = root / recipe.data if (root / recipe.data).is_file() else Path(recipe.data)
        return cls(recipe, model_folder(recipe.init, root), read_subset(data))

    def values(self) -> dict[str, Any]:
        """Return the settings that determine the result. They contain no information about the machine."""
        used = {key: value for key, value in asdict(self.recipe).items() if key not in ("init", "notes", "plan")}
        model = {"name": model_name(self.folder), "fingerprint": model_fingerprint(self.folder, self.recipe.prompt)}
        # The data is identified by its content rather than its path.
        return json.loads(json.dumps(used | {"data": self.subset.as_json(), "init": model}))  # type: ignore[no-any-return]


def fine_tune(job: FineTuning, output: Path, draw: bool = True) -> Path:
    """Fine-tune the model, write it to the folder `output`, and return this folder.

    The folder also gets `sft.json`, `log_history.json` and, if `draw` is True, the training curves,
    `training.html`. A killed run resumes from the last complete checkpoint, and a finished run is not repeated.

    Raises `UserError` if TRL is not installed, if `output` belongs to a different run or is in use by a different
    process, if every row is too long, or if memory or disk space runs out.
    """
    check_installed()
    folder, values = RunFolder(output, free=FREE), job.values()
    folder.check(values)
    if (output / CARD).is_file():
        print(f"{output} is fine-tuned already; remove it to do it again.", file=sys.stderr)
        return output
    with folder.lock():
        _fine_tune(job, folder, values, draw)
    return output


def _fine_tune(job: FineTuning, folder: RunFolder, values: dict[str, Any], draw: bool) -> None:
    from stepsight.training.experiments.finetuning.trainer import FineTuner, arguments_of

    checkpoints = Checkpoints(folder.path / "checkpoints")
    arguments = arguments_of(job.recipe, checkpoints.folder)
    tokenizer = load_text_tokenizer(job.folder)
    model = load_model(job.folder, Placement(dtype="float32"))
    examples, left_out = _examples(job, tokenizer, context_of(model))
    if arguments.should_save:
        folder.begin(values)
        checkpoints.clear()
        if left_out:
            print(f"{left_out:,} rows left out: over {job.recipe.max_length:,} tokens.", file=sys.stderr)
    trainer = FineTuner(model, tokenizer, examples, arguments, checkpoints)
    learnt = f"{len(examples):,} rows of {job.subset.name}, {_tokens(examples):,} tokens"
    with trainer.whole_run(learnt, job.recipe.batch_size), no_bars():
        trainer.finish()
        _save(trainer, tokenizer, job, folder.path, values | _outcome(trainer, examples, left_out), draw)


def read_card(folder: Path) -> dict[str, Any]:
    """Return the information in a folder's `sft.json`, or an empty dictionary if the folder has no such file."""
    return read_json(folder / CARD) if (folder / CARD).is_file() else {}


def check_installed() -> None:
    """Raise `UserError` if a package that fine-tuning needs is missing."""
    missing = [name for name in ("trl", "datasets") if find_spec(name) is None]
    if missing:
        raise UserError(f"{missing[0]} is not installed.", "Install stepsight[sft].")


def model_name(folder: Path) -> str:
    """Return the name of a model's folder or, in a hub's cache, the name of the model.

    In a cache, the folder is `models--OWNER--NAME/snapshots/HASH`.
    """
    folder = folder.resolve()
    kept = folder.parent.parent.name
    return kept.split("--")[-1] if folder.parent.name == "snapshots" and "--" in kept else folder.name


def _examples(job: FineTuning, tokenizer: Any, context: int) -> tuple[list[TextExample], int]:
    recipe, longest = job.recipe, min(job.recipe.max_length, context)
    examples, left_out = build_examples(job.subset.rows, tokenizer, recipe.prompt, recipe.loss == "all", longest)
    if not examples:
        raise UserError(f"no row of {job.subset.name} has at most {longest:,} tokens.", "Raise max_length.")
    return examples, left_out


def _tokens(examples: Sequence[TextExample]) -> int:
    return sum(len(example.ids) for example in examples)


def _outcome(trainer: Any, examples: Sequence[TextExample], left_out: int) -> dict[str, Any]:
    record: dict[str, Any] = {
        "made": provenance.now(),
        "code": provenance.code_revision(),
        "versions": provenance.versions() | _versions(),
        "examples": len(examples),
        "left_out": left_out,
        "tokens": _tokens(examples) * int(trainer.args.num_train_epochs),
    }
    record |= trainer.outcome()
    return record


def _versions() -> dict[str, str]:
    return {name: version(name) for name in _PACKAGES if find_spec(name)}


def _save(trainer: Any, tokenizer: Any, job: FineTuning, output: Path, card: dict[str, Any], draw: bool) -> None:
    """Write the model, the log and the training curves. Every process must call this function, because all
    processes take part in gathering the weights."""
    weights = trainer.whole_weights()
    if not trainer.args.should_save:
        return
    made, rows = trainer.checkpoints.partial, trainer.state.log_history
    dtype = torch_dtype(job.recipe.saved_dtype)
    try:
        trainer.checkpoints.clear()
        model = trainer.plain_model()
        model.config.dtype = dtype
        held = {name: weight.to("cpu", dtype).contiguous() for name, weight in weights.items()}
        model.save_pretrained(made, state_dict=_untied(held, model))
        tokenizer.save_pretrained(made)
        (made / LOG).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        if draw:
            write_history(rows, output.resolve().name, made)
        (made / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
        trainer.checkpoints.adopt(output, last=CARD)
    except OSError as error:
        trainer.checkpoints.clear()
        raise UserError(
            f"{output}: the model cannot be written ({error}).", "Make room; the same command writes it."
        ) from None
    # Checkpoints are several times as large as the model, and the run is finished.
    shutil.rmtree(trainer.checkpoints.folder, ignore_errors=True)


def _untied(weights: dict[str, torch.Tensor], model: Any) -> dict[str, torch.Tensor]:
    """Return the weights. The language-modelling head is omitted if it is tied to the embedding."""
    if not getattr(model.config, "tie_word_embeddings", False):
        return weights
    return {name: weight for name, weight in weights.items() if name != "lm_head.weight"}


def estimate_fine_tuning(
    recipe: Recipe, root: Path, gpu: float | None = None, devices: int | None = None
) -> Estimate:
    """Estimate the needs of a run of a recipe in the folder `root`.

    `gpu` is the memory of each of the `devices` in GiB; both default to the recipe's. Raises `UserError` if neither
    the recipe nor its files tell the amount of data or the size of the model.
    """
    config = _as_training(recipe)
    expected = recipe.plan or Expected()
    memory, count = gpu or expected.gpu or DEFAULT_MEMORY, devices or expected.devices
    return Estimate(config, _with_head(network_of(config, root)), _work(recipe, root), memory, count)


def _as_training(recipe: Recipe) -> TrainConfig:
    """Return a training configuration with the same memory and time needs, for estimating them."""
    if recipe.init is None:
        raise UserError("the recipe names no model to start from.", "Give --init MODEL.")
    return TrainConfig(
        attention="causal",
        data=Data((Source("jsonl", path=recipe.data or "-"),)),
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
    """Return the size of a network with a language-modelling head in place of the score head."""
    more = network.embedding - 3 * network.hidden
    return replace(network, parameters=network.parameters + more)


def _work(recipe: Recipe, root: Path) -> Work:
    if recipe.plan and recipe.plan.traces and recipe.plan.tokens:
        return Work(recipe.plan.traces, float(recipe.plan.tokens), counted=False)
    if recipe.data is None:
        raise UserError("neither the recipe nor --data shows the amount of data.", "Give --data SUBSET.jsonl.")
    rows = read_subset(root / recipe.data if (root / recipe.data).is_file() else Path(recipe.data)).rows
    characters = sum(len(query) + len(response) for query, response in rows)
    return Work(len(rows), characters / len(rows) / CHARACTERS, counted=True)
