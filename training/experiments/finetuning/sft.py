"""Fine-tuning a causal language model on a subset of a pool.

    stepsight sft training/configs/mistral-7b-sft.yaml --data subsets/red.jsonl --seed 42 --output runs/red-42
    torchrun --nproc-per-node 4 -m stepsight sft RECIPE.yaml --data FILE --output FOLDER

In addition to the model's own files, the folder has:

    FOLDER/run.json           the inputs of the run, which identify it
    FOLDER/checkpoints        the checkpoints, from which it resumes
    FOLDER/log_history.json   loss, gradient norm and learning rate of each step; training.html shows them
    FOLDER/sft.json           the outcome, written last
"""

import hashlib
import math
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    AutoTokenizer,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    set_seed,
)
from transformers.utils import logging

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json, write_json
from stepsight.core.hubs import checkpoint_files
from stepsight.core.hubs.checkpoint_files import is_hub_id, read_config_file
from stepsight.core.models.checkpoint import Checkpoint, model_name
from stepsight.core.models.checkpoint_resolver import model_folder as folder_of_hub
from stepsight.core.models.devices import torch_dtype
from stepsight.core.models.evaluator import fingerprint
from stepsight.core.models.model import context_of
from stepsight.core.models.placement import Placement
from stepsight.core.models.pretrained import load_weights, read_config
from stepsight.training.data.examples import IGNORED, Example
from stepsight.training.data.sources_config import Data, Source
from stepsight.training.experiments.filtering.run import MANIFEST
from stepsight.training.experiments.finetuning.recipe import CARD, FREE, QUERY, Recipe, read_pairs
from stepsight.training.runs.folder import RunFolder, code_revision, now, versions
from stepsight.training.runs.loop import Batch, Loop, Objective, connect, whole_run, write_history
from stepsight.training.runs.optimisation import Optimisation
from stepsight.training.train.config import Backbone, Expected, TrainConfig
from stepsight.training.train.estimate import CHARACTERS, Estimate, estimate_run
from stepsight.training.train.init import PAD, llama_config, train_tokenizer

_END = "<end>"


def model_folder(spec: str, root: Path = Path()) -> Path:
    """Return the folder of a causal language model.

    `spec` may be a folder in `root`, a folder relative to the current one, or a model on a hub, which is downloaded
    if needed. Only the model's config.json is read. Raises `UserError` if the folder does not exist or does not
    hold a causal language model.
    """
    folder = next((path for path in (root / spec, Path(spec)) if path.is_dir()), None)
    if folder is None and not is_hub_id(spec):
        raise UserError(f"there is no folder {spec!r}.", "Give the folder of a model, or a model hub's OWNER/NAME.")
    folder = folder or folder_of_hub(spec)
    named = read_config_file(folder).get("architectures") or ["no causal language model"]
    if (folder / checkpoint_files.CARD).is_file() or not str(named[0]).endswith(("ForCausalLM", "LMHeadModel")):
        kind = "an evaluator of steps" if (folder / checkpoint_files.CARD).is_file() else f"a {named[0]}"
        raise UserError(f"{folder}: this is {kind}, not a causal language model.", "Give a model that writes text.")
    return folder


def load_model(folder: Path, place: Placement) -> PreTrainedModel:
    """Load the model in a folder with the data type and on the device that `place` specifies. Raises `UserError`,
    naming the tensor, if a tensor is missing or has the wrong shape."""
    checkpoint = Checkpoint.open(folder)
    config = read_config(checkpoint)
    try:
        return load_weights("AutoModelForCausalLM", checkpoint, config, place, attn_implementation="sdpa")
    except ValueError as error:
        raise UserError(f"{folder}: {' '.join(str(error).split()):.300}", "Give a causal language model.") from None


def load_text_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer in a folder. If the tokenizer has no pad token, its end token is used for padding. Raises
    `UserError` if there is no tokenizer, or if the tokenizer has no end token."""
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, ImportError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{folder}: the tokenizer cannot be read ({reason:.200}).", "Copy it again.") from None
    if tokenizer.eos_token_id is None:
        raise UserError(
            f"{folder}: the tokenizer has no eos_token, which ends an answer.", "Name one in its config."
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer  # type: ignore[no-any-return]


def prompt_ids(tokenizer: PreTrainedTokenizerBase, prompt: str) -> list[int]:
    """Return the token ids that precede an answer, beginning with the tokenizer's start token if it has one. They
    are the same in training and in generation."""
    ids = tokenizer(prompt)["input_ids"]
    # Some tokenizers end every text with an end token, but here the answer follows.
    return list(ids[:-1] if ids and ids[-1] == tokenizer.eos_token_id else ids)


def write_scratch_model(folder: Path, texts: Iterable[str], backbone: Backbone, vocabulary: int, seed: int) -> None:
    """Write a Llama with random weights, and a byte-level tokenizer trained on `texts`, to a folder.

    The weights are initialised with `seed`. The tokenizer has `vocabulary` tokens plus an end token. The model's
    config.json is written last.
    """
    trained = train_tokenizer(texts, vocabulary)
    trained.add_special_tokens([_END])
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=trained, eos_token=_END, pad_token=PAD, model_max_length=backbone.context
    )
    config = llama_config(backbone, trained.get_vocab_size(), "causal")
    config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
    set_seed(seed)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer.save_pretrained(folder)
    LlamaForCausalLM(config).save_pretrained(folder)


def fine_tune(recipe: Recipe, root: Path, output: Path) -> None:
    """Fine-tune the model that a recipe names and write it to the folder `output`. Paths in the recipe are resolved
    in `root`.

    A killed run resumes from the last complete checkpoint, and a finished run is not repeated. Raises `UserError`
    if `output` belongs to a different run or is in use by a different process, if every row is too long, if the
    loss or the gradient is not finite, or if memory or disk space runs out.
    """
    data, rows = _read_subset(recipe, root)
    start, manifest = model_folder(str(recipe.init), root), data.with_name(MANIFEST)
    evaluator = read_json(manifest).get("evaluator", {}) if manifest.is_file() else {}
    # Model and data are identified by their content rather than their paths.
    hashed = fingerprint(Checkpoint.open(start), {"prompt": recipe.prompt}, "causal")
    settings = asdict(recipe) | {
        "init": {"name": model_name(start), "fingerprint": hashed},
        "data": {
            "name": data.stem,
            "rows": len(rows),
            "sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
            "scorer": evaluator.get("name", ""),
        },
    }
    folder = RunFolder(output, free=FREE)
    folder.check(settings)
    if (output / CARD).is_file():
        print(f"{output} is already fine-tuned; remove it to fine-tune again.", file=sys.stderr)
        return
    with folder.lock():
        accelerator = connect(recipe, "sft")
        tokenizer, model = load_text_tokenizer(start), load_model(start, Placement(dtype="float32"))
        longest = min(recipe.max_length, context_of(model) or sys.maxsize)
        encoded = [_encode(tokenizer, recipe, query, response) for query, response in rows]
        examples = [example for example in encoded if len(example.ids) <= longest]
        if not examples:
            raise UserError(f"no row of {data.stem} has at most {longest:,} tokens.", "Raise max_length.")
        counts = {"examples": len(examples), "left_out": len(rows) - len(examples)}
        if accelerator.is_main_process:
            folder.begin(settings)
            print(f"Fine-tuning into {output}; if it is stopped, the same command resumes.", file=sys.stderr)
            print("{examples:,} rows to learn from, {left_out:,} left out".format(**counts), file=sys.stderr)
        loop = Loop(accelerator, recipe, text_objective(model, examples), output / "checkpoints")
        with whole_run(loop, output):
            loop.train()
            # All processes take part in gathering the weights.
            weights = loop.trained_weights()
            if accelerator.is_main_process:
                _save(loop, model, tokenizer, weights, torch_dtype(recipe.saved_dtype), output, settings | counts)


def _read_subset(recipe: Recipe, root: Path) -> tuple[Path, list[tuple[str, str]]]:
    """Return the path of a recipe's subset, and its pairs of a query and a response. Raises `UserError` if the
    recipe names no subset or no model to start from."""
    if recipe.init is None:
        raise UserError("the recipe names no model to start from.", "Give --init MODEL.")
    if recipe.data is None:
        raise UserError("the recipe names no subset to learn from.", "Give --data SUBSET.jsonl.")
    path = root / recipe.data if (root / recipe.data).is_file() else Path(recipe.data)
    return path, read_pairs(path, "query", "response")


def _encode(tokenizer: Any, recipe: Recipe, query: str, response: str) -> Example:
    """Encode a row, with the tokens to learn as labels of the places before them. The prompt and the response are
    encoded separately, so that the response begins with a new token, as in generation."""
    before = prompt_ids(tokenizer, recipe.prompt.replace(QUERY, query))
    after = [*tokenizer(response, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    ids = np.array(before + after)
    # Nothing precedes the first token, so it cannot be learnt.
    first = 1 if recipe.loss == "all" else max(1, len(before))
    return Example(ids, np.arange(first - 1, len(ids) - 1), ids[first:])


def text_objective(model: PreTrainedModel, examples: Sequence[Example]) -> Objective:
    """Return the objective of training a causal language model on examples from `_encode`. The loss of an optimiser
    step is the mean cross-entropy over its tokens to learn."""

    def loss(network: nn.Module, batch: Batch) -> Tensor:
        logits = network(batch["input_ids"], batch["attention_mask"], use_cache=False).logits
        row, place = (batch["labels"] != IGNORED).nonzero(as_tuple=True)
        learnt = logits[row, batch["ends"][row, place]]
        return functional.cross_entropy(learnt.float(), batch["labels"][row, place], reduction="sum")

    def count(batch: Batch) -> Tensor:
        return (batch["labels"] != IGNORED).sum()

    return Objective(model, examples, loss, count, context_of(model), "shuffled")


def _save(
    loop: Loop, model: Any, tokenizer: Any, weights: dict[str, Tensor], dtype: torch.dtype, output: Path,
    card: dict[str, Any],
) -> None:  # fmt: skip
    """Write the model, the log, the training curves and, last, the card."""
    model.config.dtype = dtype
    if model.config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model.save_pretrained(output, state_dict={name: part.to("cpu", dtype) for name, part in weights.items()})
    tokenizer.save_pretrained(output)
    write_history(loop.history, output)
    made = {
        "made": now(),
        "code": code_revision(),
        "versions": versions(),
        "parameters": sum(weight.numel() for weight in weights.values()),
    }
    write_json(output / CARD, card | made | loop.outcome())
    # Checkpoints are several times as large as the model, and the run is finished.
    shutil.rmtree(output / "checkpoints", ignore_errors=True)


def estimate_fine_tuning(recipe: Recipe, root: Path, gpu: float | None, devices: int | None) -> Estimate:
    """Estimate the needs of a run of a recipe in the folder `root`, as `estimate_run` does for training. Raises
    `UserError` if neither the recipe nor its files tell the amount of data or the size of the model."""
    plan = recipe.plan or Expected()
    if not (plan.traces and plan.tokens):
        rows = _read_subset(recipe, root)[1]
        characters = sum(len(query) + len(response) for query, response in rows)
        plan = replace(plan, traces=len(rows), tokens=math.ceil(characters / len(rows) / CHARACTERS))
    values: dict[str, Any] = {item.name: getattr(recipe, item.name) for item in fields(Optimisation)}
    values |= {"init": recipe.init, "max_length": recipe.max_length, "data": Data((Source("jsonl", path="-"),))}
    estimate = estimate_run(TrainConfig(attention="causal", plan=plan, **values), root, gpu, devices)
    # A language-modelling head takes the place of the score head.
    network = estimate.network
    network = replace(network, parameters=network.parameters + network.embedding - 3 * network.hidden)
    return replace(estimate, network=network)
