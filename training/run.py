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
from transformers import LlamaConfig, Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_pt_utils import LengthGroupedSampler
from transformers.trainer_utils import get_last_checkpoint

from core.encoding import Encoder, PromptTemplate
from core.errors import UserError
from core.evaluator import save_evaluator
from core.jsonl import parse_trace, read_file
from core.loading import load_backbone, load_evaluator
from core.model import StepModel
from core.trace import Trace
from training.config import Backbone, Data, TrainConfig
from training.examples import Example, build_examples, collate
from training.synth.corpus import generate
from training.tokenizer import SEPARATOR, train_tokenizer

# Traces that the tokenizer is learnt from; more change nothing but the time.
_TOKENIZER_TRACES = 4000


class StepTrainer(Trainer):
    """Transformers' trainer with batches of similar length in an order drawn by the seed."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        examples: Any = self.train_dataset
        lengths = [len(example.ids) for example in examples]
        generator = torch.Generator().manual_seed(self.args.seed)
        return LengthGroupedSampler(self.args.train_batch_size, lengths=lengths, generator=generator)


class StopOnNan(TrainerCallback):
    """Stops a run whose loss is no number, naming the step."""

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if logs and not np.isfinite(logs.get("loss", 0.0)):
            raise UserError(
                f"the loss became {logs['loss']} by step {state.global_step}.",
                "Lower learning_rate or clip, then start again; checkpoints before that step are whole.",
            )


def train(config: TrainConfig, output: Path) -> Path:
    """Train an evaluator and write its folder to `output`; returns it.

    Checkpoints go to `output/checkpoints`; a killed run goes on from the last one. Raises `UserError` where
    `output` holds a run with another configuration, or a data file has a bad line.
    """
    _claim(config, output)
    encoder, model = _build(config)
    examples = build_examples(
        read_traces(config.data),
        encoder,
        config.truncation,
        config.seed,
        model.config.max_position_embeddings,
    )
    if not examples:
        raise UserError("no trace has a label to learn from.", "Check data.files.")
    trainer = StepTrainer(
        model=model,
        args=_arguments(config, output),
        train_dataset=examples,
        data_collator=collate,
        callbacks=[StopOnNan()],
    )
    last: str | None = get_last_checkpoint(str(output / "checkpoints"))  # type: ignore[no-untyped-call]
    trainer.train(resume_from_checkpoint=last)
    history = trainer.state.log_history
    (output / "log_history.json").write_text(json.dumps(history, indent=1) + "\n", encoding="utf-8")
    save_evaluator(output, model, encoder, _provenance(config, examples, history), dtype=torch.float16)
    return output


def read_traces(data: Data) -> Iterator[Trace]:
    """The traces that `data` names, synthetic ones first."""
    if data.synthetic:
        yield from generate(data.seed, data.synthetic)
    for path in data.files:
        for number, row in read_file(path):
            yield parse_trace(row, f"{path} line {number}")


def _claim(config: TrainConfig, output: Path) -> None:
    """Make `output` this run's folder; refuse one that holds a run with another configuration."""
    record = output / "config.used.json"
    text = json.dumps(asdict(config), indent=1) + "\n"
    if record.is_file() and record.read_text(encoding="utf-8") != text:
        raise UserError(f"{output} holds a run with another configuration.", "Choose another --output.")
    (output / "checkpoints").mkdir(parents=True, exist_ok=True)
    record.write_text(text, encoding="utf-8")


def _build(config: TrainConfig) -> tuple[Encoder, StepModel]:
    """Encoder and initial model; the weights are drawn from the seed alone, whatever the mask."""
    if config.init is not None:
        start = load_evaluator(config.init)
        backbone = load_backbone(Path(config.init), attention=None)
        backbone.config.is_causal = config.attention == "causal"
        return start.encoder, StepModel(backbone, start.model.score)
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
        output_dir=str(output / "checkpoints"),
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


def _provenance(config: TrainConfig, examples: list[Example], history: list[dict[str, Any]]) -> dict[str, Any]:
    losses = [row["loss"] for row in history if "loss" in row]
    return {
        "config": {key: value for key, value in asdict(config).items() if key != "notes"},
        "examples": len(examples),
        "tokens": int(sum(len(example.ids) for example in examples)) * config.epochs,
        "final_loss": float(np.mean(losses[-10:])) if losses else None,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "tokenizers": tokenizers.__version__,
        },
    }
