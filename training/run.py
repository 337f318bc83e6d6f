"""One training run: from a configuration to an evaluator's folder.

stepsight train training/configs/mini-bidir.yaml --output runs/mini-bidir
"""

import json
import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers
from torch.utils.data import Sampler
from tqdm import tqdm
from transformers import LlamaConfig, Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_callback import PrinterCallback
from transformers.trainer_pt_utils import LengthGroupedSampler

from core.checkpoint import read_json
from core.encoding import Encoder, PromptTemplate
from core.errors import UserError
from core.evaluator import save_evaluator
from core.jsonl import parse_trace, read_file
from core.loading import load_evaluator
from core.model import StepModel
from core.trace import Trace
from training.config import Backbone, Data, TrainConfig
from training.examples import Example, build_examples, collate
from training.synth.corpus import generate
from training.tokenizer import SEPARATOR, train_tokenizer

# Traces that the tokenizer is learnt from; more change nothing but the time.
_TOKENIZER_TRACES = 4000
_CHECKPOINTS = "checkpoints"
_RECORD = "config.used.json"


class EpochSampler(LengthGroupedSampler):
    """Batches of similar length, in an order drawn from the seed and the epoch alone: a resumed run meets the
    order that an uninterrupted one does."""

    def __init__(self, batch_size: int, lengths: list[int], seed: int) -> None:
        super().__init__(batch_size, lengths=lengths, generator=torch.Generator())
        self.seed = seed
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Called by the trainer before each epoch."""
        self.generator.manual_seed(self.seed + epoch)


class StepTrainer(Trainer):
    """Transformers' trainer with batches of similar length."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        examples: Any = self.train_dataset
        lengths = [len(example.ids) for example in examples]
        return EpochSampler(self.args.train_batch_size, lengths, self.args.seed)


class StopOnNan(TrainerCallback):
    """Stops a run whose loss is no number, naming the step."""

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        # The mean over the run, logged at its end, tells of the steps after the last regular log.
        losses = [logs[key] for key in ("loss", "train_loss") if key in logs] if logs else []
        if not np.isfinite(losses).all():
            raise UserError(
                f"the loss became {losses[0]} by step {state.global_step}.",
                "Lower learning_rate or clip, then start again; checkpoints before that step are whole.",
            )


class Tell(TrainerCallback):
    """A line on stderr per log, where there is no terminal for a progress bar."""

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if args.disable_tqdm and logs and "loss" in logs:
            print(f"step {state.global_step} of {state.max_steps}, loss {logs['loss']}", file=sys.stderr)


def train(config: TrainConfig, output: Path) -> Path:
    """Train an evaluator and write its folder to `output`; returns it.

    Checkpoints go to `output/checkpoints`; a killed run goes on from the last one. Raises `UserError` where
    `output` cannot be written or holds a run with another configuration, or a data file has a bad line.
    """
    _check_output(config, output)
    encoder, model = _build(config)
    longest = model.config.max_position_embeddings
    traces = tqdm(read_traces(config.data), "encoding", config.data.synthetic or None, delay=2, disable=None)
    examples, dropped = build_examples(traces, encoder, config.truncation, config.seed, longest)
    if not examples:
        raise UserError("no trace has a label to learn from.", "Check data.files.")
    if dropped:
        print(f"{dropped:,} traces left out: over {longest:,} tokens, or without a label.", file=sys.stderr)
    _claim(config, output)
    trainer = StepTrainer(
        model=model,
        args=_arguments(config, output),
        train_dataset=examples,
        data_collator=collate,
        callbacks=[StopOnNan(), Tell()],
    )
    # It prints to standard output, where the path of the evaluator belongs.
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=_last_checkpoint(output))
    history = trainer.state.log_history
    (output / "log_history.json").write_text(json.dumps(history, indent=1) + "\n", encoding="utf-8")
    save_evaluator(output, model, encoder, _provenance(config, examples, dropped, history), dtype=torch.float16)
    return output


def read_traces(data: Data) -> Iterator[Trace]:
    """The traces that `data` names, synthetic ones first."""
    if data.synthetic:
        yield from generate(data.seed, data.synthetic)
    for path in data.files:
        for number, row in read_file(path):
            yield parse_trace(row, f"{path} line {number}")


def _check_output(config: TrainConfig, output: Path) -> None:
    """Refuse a folder that holds a run with another configuration; notes are no part of it."""
    record = output / _RECORD
    if record.is_file():
        used = read_json(record)
        if {key: value for key, value in used.items() if key != "notes"} != _settings(config):
            raise UserError(f"{output} holds a run with another configuration.", "Choose another --output.")


def _claim(config: TrainConfig, output: Path) -> None:
    """Make `output` this run's folder."""
    try:
        (output / _CHECKPOINTS).mkdir(parents=True, exist_ok=True)
        text = json.dumps(_settings(config) | {"notes": config.notes}, indent=1)
        (output / _RECORD).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{output}: cannot be written ({error.strerror}).", "Choose another --output.") from None


def _settings(config: TrainConfig) -> dict[str, Any]:
    """The configuration without its notes, as JSON gives it back."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    del values["notes"]
    return values


def _last_checkpoint(output: Path) -> str | None:
    """The newest whole checkpoint. A kill may cut one short; its state is written last."""
    found = (output / _CHECKPOINTS).glob("checkpoint-*/trainer_state.json")
    by_step = sorted(found, key=lambda state: int(state.parent.name.partition("-")[2]))
    return next((str(state.parent) for state in reversed(by_step) if _is_whole(state)), None)


def _is_whole(state: Path) -> bool:
    try:
        read_json(state)
    except UserError:
        return False
    return True


def _build(config: TrainConfig) -> tuple[Encoder, StepModel]:
    """Encoder and initial model; the weights are drawn from the seed alone, whatever the mask."""
    if config.init is not None:
        start = load_evaluator(config.init)
        start.model.config.is_causal = config.attention == "causal"
        return start.encoder, start.model
    assert config.backbone is not None
    tokenizer = train_tokenizer(_texts(read_traces(config.data)), config.vocabulary)
    encoder = Encoder(tokenizer, PromptTemplate(separator=SEPARATOR))
    set_seed(config.seed)
    return encoder, StepModel.from_config(
        llama_config(config.backbone, tokenizer.get_vocab_size(), config.attention)
    )


def llama_config(backbone: Backbone, vocabulary: int, attention: str) -> LlamaConfig:
    """A Llama configuration of the given dimensions; the mask is `is_causal` and nothing else."""
    values: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": backbone.hidden,
        "num_hidden_layers": backbone.layers,
        "num_attention_heads": backbone.heads,
        "num_key_value_heads": backbone.heads,
        "intermediate_size": backbone.mlp,
        "max_position_embeddings": backbone.context,
        "rms_norm_eps": 1e-5,
        "initializer_range": 0.02,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "is_causal": attention == "causal",
    }
    return LlamaConfig(**values)


def _texts(traces: Iterable[Trace]) -> Iterator[str]:
    for trace in islice(traces, _TOKENIZER_TRACES):
        yield trace.problem
        yield from trace.substeps


def _arguments(config: TrainConfig, output: Path) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(output / _CHECKPOINTS),
        per_device_train_batch_size=config.batch_size,
        num_train_epochs=config.epochs,
        learning_rate=config.learning_rate,
        adam_beta1=config.betas[0],
        adam_beta2=config.betas[1],
        weight_decay=config.weight_decay,
        lr_scheduler_type="cosine",
        warmup_steps=config.warmup_steps,
        max_grad_norm=config.clip,
        use_cpu=not torch.cuda.is_available(),
        bf16=config.bf16,
        seed=config.seed,
        logging_steps=20,
        logging_nan_inf_filter=False,
        save_steps=config.save_steps,
        save_total_limit=2,
        report_to="none",
        remove_unused_columns=False,
        disable_tqdm=not sys.stderr.isatty(),
        dataloader_pin_memory=torch.cuda.is_available(),
    )


def _provenance(
    config: TrainConfig, examples: list[Example], dropped: int, history: list[dict[str, Any]]
) -> dict[str, Any]:
    losses = [row["loss"] for row in history if "loss" in row]
    return {
        "config": _settings(config),
        "examples": len(examples),
        "left_out": dropped,
        "tokens": int(sum(len(example.ids) for example in examples)) * config.epochs,
        "final_loss": float(np.mean(losses[-10:])) if losses else None,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "tokenizers": tokenizers.__version__,
        },
    }
