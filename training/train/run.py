"""A training run, which turns a configuration into the folder of an evaluator.

stepsight train training/configs/mini-bidir.yaml --output runs/mini-bidir
torchrun --nproc-per-node 4 -m stepsight train CONFIG.yaml --output FOLDER      (with `fsdp: true`, or without)
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm
from transformers import PretrainedConfig

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import CARD
from stepsight.core.models.evaluator import save_evaluator
from stepsight.core.models.model import StepModel, context_of
from stepsight.core.prompts.encoding import Encoder
from stepsight.core.trace import Label
from stepsight.training.data.examples import IGNORED, SOFT, Example, build_examples
from stepsight.training.data.mixture import Mixture
from stepsight.training.runs.folder import RunFolder, code_revision, now, versions, without_places
from stepsight.training.runs.loop import Batch, Loop, Objective, connect, whole_run, write_history
from stepsight.training.train.config import TrainConfig
from stepsight.training.train.init import initial_model, longest_input
from stepsight.training.train.lora import AdapterBase, adapted, check_peft, save_adapter

RECORD = "config.used.json"
# Keys that may differ when a run is resumed, since they do not affect what is learnt. A different tokenizer would
# change the hash of the examples.
_FREE = ("notes", "accumulation", "activation_checkpointing", "plan", "tokenizer")
# The key for the hash of the examples, beside those of the configuration.
_EXAMPLES = "examples_sha256"
# Up to this width, plain matrix products are faster on a processor than fused attention, whose backward pass is
# slow there; their memory grows with the square of the width.
_NARROW = 256


def train(config: TrainConfig, output: Path, root: Path = Path(), db: str | None = None) -> Path:
    """Train an evaluator, write it to the folder `output`, and return this folder.

    Paths in `config` are resolved in `root`, and its datasets are in the store at `db`. The folder also gets
    `log_history.json` and the training curves, `training.html`. Checkpoints go to `output/checkpoints`. A killed
    run resumes from the last complete checkpoint, and a finished run is not repeated.

    Raises `UserError` if `output` cannot be written, belongs to a run with different settings or traces, or is in
    use by a different process. Also raises `UserError` if a data file has a bad line, if memory or disk space runs
    out, or if the loss is not finite.
    """
    if config.lora is not None:
        check_peft()
    folder = RunFolder(output, RECORD, _FREE)
    folder.check(settings(config), free=[_EXAMPLES])
    if (output / CARD).is_file():
        print(f"{output} is already trained; remove it to train again.", file=sys.stderr)
        return output
    with folder.lock():
        _train(config, folder, root, db)
    return output


def _train(config: TrainConfig, folder: RunFolder, root: Path, db: str | None) -> None:
    accelerator = connect(config, "train")
    is_main = accelerator.is_main_process
    mixture = Mixture(config.data, root, config.truncation, config.seed, db)
    encoder, model, origin, start = initial_model(config, mixture, root)
    examples, left_out = _examples(config, mixture, encoder, model, is_main)
    base = None
    if is_main:
        _begin(folder, config, examples)
        if config.lora and config.init and start:
            base = AdapterBase.of(config.init, start, folder.path)
    trained: Any = adapted(model, config.lora, config.seed) if config.lora else model
    objective = step_objective(config, model, trained, examples)
    loop = Loop(accelerator, config, objective, folder.path / "checkpoints")
    if is_main:
        print(f"{len(examples):,} traces, {_tokens(examples):,} tokens; {loop.describe()}", file=sys.stderr)
    with whole_run(loop, folder.path):
        loop.train()
        # Every process takes part in gathering the weights.
        weights = loop.trained_weights()
        if not is_main:
            return
        record = _sources(config, origin, mixture, examples, left_out) | {"parameters": loop.parameters}
        record |= {} if loop.trained == loop.parameters else {"trained_parameters": loop.trained}
        record |= loop.outcome()
        # The evaluator's description marks completion and comes last.
        write_history(loop.history, folder.path)
        dtype = _saved_dtype(weights.values(), config.saved_dtype)
        if base is not None:
            adapter = trained.active_peft_config
            save_adapter(folder.path, model, adapter, weights, encoder, base, record, dtype)
        else:
            whole = assembled(model.config, weights) if config.fsdp else model
            save_evaluator(folder.path, whole, encoder, record, dtype=dtype)


def step_objective(
    config: TrainConfig, model: StepModel, trained: nn.Module, examples: Sequence[Example]
) -> Objective:
    """Return the objective of training `model` on `examples`. `trained` is the model itself, or the model with
    adapters.

    The loss of an optimiser step is the mean cross-entropy over its labelled step ends or, if the loss is per
    example, the mean of the examples' means.
    """

    def loss(network: nn.Module, batch: Batch) -> Tensor:
        if batch["input_ids"].device.type == "cpu":
            attention = "eager" if batch["input_ids"].shape[1] <= _NARROW else "sdpa"
            if model.model.config._attn_implementation != attention:
                model.model.set_attn_implementation(attention)
        logits = network(batch["input_ids"], batch["attention_mask"], batch["ends"])
        losses = step_losses(logits.float(), batch["labels"], batch.get("shares"))
        if config.loss == "example":
            losses = losses.sum(1) / (batch["labels"] != IGNORED).sum(1).clamp(min=1)
        return losses.sum()

    def count(batch: Batch) -> Tensor:
        labelled = batch["labels"] != IGNORED
        return labelled.any(1).sum() if config.loss == "example" else labelled.sum()

    return Objective(trained, examples, loss, count, context_of(model.model), config.order)


def step_losses(logits: Tensor, labels: Tensor, shares: Tensor | None = None) -> Tensor:
    """Return the loss at each step end, with the shape (batch, steps): the cross-entropy of its label or, where the
    label is `SOFT`, that of validity against its share; 0 where it is `IGNORED`. `logits` has the shape (batch,
    steps, 3), `labels` and `shares` (batch, steps)."""
    hard = labels.masked_fill(labels == SOFT, IGNORED)
    losses = functional.cross_entropy(logits.transpose(1, 2), hard, ignore_index=IGNORED, reduction="none")
    return losses if shares is None else torch.where(labels == SOFT, _soft_losses(logits, shares), losses)


def _soft_losses(logits: Tensor, shares: Tensor) -> Tensor:
    """Return the cross-entropy of validity against a share `s`: `-s log v - (1 - s) log(1 - v)`, with `v = p_neu +
    p_pos`.

    A share says nothing about redundancy, so the odds between neu and pos are left alone: the gradients only move
    both up or down in proportion to their probabilities.
    """
    logs = logits.log_softmax(-1)
    valid = logs[..., [Label.NEU, Label.POS]].logsumexp(-1)
    return -(shares * valid + (1 - shares) * logs[..., Label.NEG])


def assembled(config: PretrainedConfig, weights: Mapping[str, Tensor]) -> StepModel:
    """Build a model from its weights. The head gets a bias if the weights include one. If `weights` is empty, the
    model's tensors are left without data (on the meta device)."""
    with torch.device("meta"):
        whole = StepModel.from_config(config)
        if "score.bias" in weights:
            whole.score = nn.Linear(int(config.hidden_size), len(Label))
    if weights:
        whole.load_state_dict(weights, assign=True)
    return whole


def settings(config: TrainConfig) -> dict[str, Any]:
    """Return a configuration as JSON values."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    return values


def _begin(folder: RunFolder, config: TrainConfig, examples: Sequence[Example]) -> None:
    """Claim the folder for this run. Raises `UserError` if the folder's run was started with different examples."""
    digest = _digest(examples)
    if folder.has_run() and folder.record().get(_EXAMPLES, digest) != digest:
        raise UserError(
            f"{folder.path} holds a run on other traces: a file, or the code that reads them, has changed.",
            "Choose another --output.",
        )
    folder.begin(settings(config) | {_EXAMPLES: digest})


def _examples(
    config: TrainConfig, mixture: Mixture, encoder: Encoder, model: StepModel, shown: bool
) -> tuple[list[Example], int]:
    """Return the examples, and the number of traces left out because they are too long or have no label."""
    longest = min(longest_input(model.model, config.init), config.max_length or sys.maxsize)
    traces = tqdm(mixture, "encoding", mixture.expected, delay=2, disable=None if shown else True)
    cut = config.too_long == "truncate"
    examples, left_out = build_examples(traces, encoder, config.truncation, config.seed, longest, cut=cut)
    within = f"within {longest:,} tokens"
    if not examples:
        raise UserError(f"no trace has a label to learn from {within}.", "Check data.sources.")
    notices = mixture.notices()
    if left_out:
        notices.append(
            f"{left_out:,} traces left out: "
            + (f"no label {within}." if cut else f"over {longest:,} tokens, or without a label.")
        )
    for notice in notices if shown else ():
        print(notice, file=sys.stderr)
    return examples, left_out


def _digest(examples: Sequence[Example]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        arrays: list[NDArray[Any]] = [example.ids, example.ends, example.labels]
        for array in arrays if example.shares is None else [*arrays, example.shares]:
            digest.update(f"{len(array)} ".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def _sources(
    config: TrainConfig,
    origin: dict[str, str] | None,
    mixture: Mixture,
    examples: Sequence[Example],
    left_out: int,
) -> dict[str, Any]:
    """Return a description of the evaluator's training data, for its provenance. It reveals nothing about the
    machine."""
    used = settings(config)
    del used["notes"], used["plan"]
    return {
        "made": now(),
        "config": without_places(used),
        "init": origin,
        "data": without_places(mixture.record),
        "code": code_revision(),
        "versions": versions(),
        "examples": len(examples),
        "left_out": left_out,
        "tokens": _tokens(examples) * config.epochs,
    }


def _tokens(examples: Sequence[Example]) -> int:
    return sum(len(example.ids) for example in examples)


def _saved_dtype(weights: Iterable[Tensor], name: str) -> torch.dtype:
    """Return the torch type called `name`, or float32 if a weight exceeds the range of that type."""
    dtype: torch.dtype = getattr(torch, name)
    largest = max(float(weight.detach().abs().max()) for weight in weights)
    if largest <= torch.finfo(dtype).max:
        return dtype
    print(f"The weights are saved in float32: {name} cannot hold {largest:g}.", file=sys.stderr)
    return torch.float32
