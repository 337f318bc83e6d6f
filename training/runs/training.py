"""What training and fine-tuning have in common: the arguments of the Transformers trainer, checkpoints, resuming,
and errors that say what ran out."""

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from accelerate import PartialState
from safetensors import SafetensorError
from transformers import Trainer, TrainerCallback, TrainingArguments

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json
from stepsight.training.runs.optimisation import Optimisation

# The least number of rows of a history, and the most steps per row.
_ROWS, _STEPS_A_ROW = 100, 20
# The number of last rows whose mean is the final loss.
_LAST_ROWS = 10
_NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
_NOT_WRITTEN = ("pytorchstreamwriter", "no space left", "file write failed")
# Names and sizes in bytes of a checkpoint's files, written last.
_CONTENTS = "contents.json"
_PREFIX = "checkpoint-"

Arguments = TypeVar("Arguments", bound=TrainingArguments)


def arguments_for(
    kind: type[Arguments], config: Optimisation, folder: Path, command: str, **more: Any
) -> Arguments:
    """Translate a configuration into arguments of the class `kind`, with checkpoints in `folder`.

    As a side effect, this connects processes that were launched together. Raises `UserError` if `fsdp` is set but
    there is only one process; its hint shows how to launch `command`.
    """
    values: dict[str, Any] = {
        "output_dir": str(folder),
        "gradient_accumulation_steps": config.accumulation,
        "num_train_epochs": config.epochs,
        "learning_rate": config.learning_rate,
        "adam_beta1": config.betas[0],
        "adam_beta2": config.betas[1],
        "weight_decay": config.weight_decay,
        "lr_scheduler_type": "cosine",
        "warmup_steps": config.warmup_steps,
        "max_grad_norm": config.clip,
        "use_cpu": not torch.cuda.is_available(),
        "bf16": config.bf16,
        "seed": config.seed,
        "logging_nan_inf_filter": False,
        "save_steps": config.save_steps,
        "save_total_limit": 2,
        "report_to": "none",
        "remove_unused_columns": False,
        "disable_tqdm": True,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "ddp_find_unused_parameters": False,
        # With FSDP, its own checkpointing is used, which gathers the weights only once.
        "activation_checkpointing": config.activation_checkpointing and not config.fsdp,
        "fsdp": config.fsdp or None,
        "fsdp_config": {
            "version": 2,
            "state_dict_type": "SHARDED_STATE_DICT",
            "activation_checkpointing": config.activation_checkpointing,
        },
    }
    arguments = kind(**values, **more)
    # Each process uses one device.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    if config.fsdp and arguments.world_size == 1:
        raise UserError(
            "fsdp is true, but there is one process only.",
            f"Launch several: torchrun --nproc-per-node N -m stepsight {command} …, or set fsdp: false.",
        )
    return arguments


def logging_steps(steps: int) -> int:
    """Return the number of optimiser steps that each row of the history covers in a run of `steps` steps."""
    return max(1, min(_STEPS_A_ROW, steps // _ROWS))


class Safeguard(TrainerCallback):
    """A trainer callback that keeps a run's checkpoints sound.

    It ends the run with `UserError` if the loss or the gradient of a step is not finite, before a checkpoint of
    that step is saved, and writes the sizes of a checkpoint's files into it once it is complete.
    """

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        for key in ("loss", "grad_norm"):
            if not math.isfinite(kwargs["logs"].get(key, 0.0)):
                raise UserError(
                    f"{key} became {kwargs['logs'][key]} in step {state.global_step}.",
                    "Lower learning_rate or clip, then start again with another --output.",
                )

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # All processes write to it.
        PartialState().wait_for_everyone()
        if args.should_save:
            folder = Path(args.output_dir) / f"{_PREFIX}{state.global_step}"
            sizes = {str(p.relative_to(folder)): p.stat().st_size for p in sorted(folder.rglob("*")) if p.is_file()}
            sizes.pop(_CONTENTS, None)
            (folder / _CONTENTS).write_text(json.dumps(sizes, indent=1) + "\n", encoding="utf-8")


def is_whole(checkpoint: Path) -> bool:
    """True if a checkpoint was completed, and each of its files still has its original size."""
    try:
        sizes = read_json(checkpoint / _CONTENTS)
    except UserError:
        return False
    files = {name: checkpoint / name for name in sizes}
    return all(path.is_file() and path.stat().st_size == sizes[name] for name, path in files.items())


def last_checkpoint(folder: Path) -> tuple[int, Path | None]:
    """Return the step and the path of the newest complete checkpoint in a folder, or 0 and None if there is none. A
    checkpoint that a crash of the machine cut short is passed over."""
    numbers = (path.name.removeprefix(_PREFIX) for path in folder.glob(f"{_PREFIX}*"))
    for step in sorted((int(number) for number in numbers if number.isdecimal()), reverse=True):
        if is_whole(folder / f"{_PREFIX}{step}"):
            return step, folder / f"{_PREFIX}{step}"
    return 0, None


@contextmanager
def whole_run(trainer: Trainer, output: Path) -> Iterator[None]:
    """A context manager in which a trainer trains and its model is written to the folder `output`.

    If interrupted, it prints how to resume the run. Raises `UserError` if memory or disk space runs out; the last
    checkpoint is kept. At the end, processes that were launched together wait for one another.
    """
    arguments, checkpoints = trainer.args, Path(str(trainer.args.output_dir))
    try:
        with without_cudnn_attention():
            yield
    except KeyboardInterrupt:
        if arguments.should_save:
            step, steps = last_checkpoint(checkpoints)[0], trainer.state.max_steps
            print(f"\nThe same command goes on from step {step:,} of {steps:,}.", file=sys.stderr)
        raise
    except (MemoryError, RuntimeError, OSError, SafetensorError) as error:
        text, step = " ".join(str(error).split()), trainer.state.global_step
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or _has(text, _NO_MEMORY):
            raise UserError(
                f"memory ran out in step {step + 1}.",
                "Raise accumulation, or set activation_checkpointing: true or bf16: true, or lower max_length; "
                "the first two go on with the same run.",
            ) from None
        if isinstance(error, RuntimeError) and not _has(text, _NOT_WRITTEN):
            raise
        reason = getattr(error, "strerror", None) or text
        raise UserError(
            f"{output}: cannot be written in step {step} ({reason:.200}).",
            f"Make room; the same command goes on from step {last_checkpoint(checkpoints)[0]}.",
        ) from None
    if arguments.world_size > 1:
        # A process that exits while another still writes would end the group's threads.
        trainer.accelerator.wait_for_everyone()
        trainer.accelerator.end_training()


def _has(text: str, parts: Sequence[str]) -> bool:
    return any(part in text.lower() for part in parts)


def finish(trainer: Trainer) -> list[dict[str, Any]]:
    """Train to the end, starting from the last complete checkpoint if there is one, and return the history."""
    _, last = last_checkpoint(Path(str(trainer.args.output_dir)))
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    return [row for row in trainer.state.log_history if "loss" in row]


def devices(trainer: Trainer) -> str:
    """Return the devices in use, such as `2 x cuda`."""
    return f"{trainer.args.world_size} x {trainer.args.device.type}"


def outcome(trainer: Trainer, history: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the outcome of a run for its record. `final_loss` is the mean of the last ten rows of the history, and
    `seconds` includes the time before the run was resumed."""
    losses = [row["loss"] for row in history[-_LAST_ROWS:]]
    return {
        "steps": trainer.state.global_step,
        "final_loss": round(float(np.mean(losses)), 6) if losses else None,
        "seconds": history[-1]["seconds"],
        "devices": devices(trainer),
    }


@contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """A context manager in which PyTorch does not choose cuDNN for attention.

    With a mask, cuDNN's gradients are not numbers for some lengths of inputs, on an H100 with PyTorch 2.11 to 2.13
    (github.com/pytorch/pytorch, issue 196678). The other implementations accept the same inputs.
    """
    before = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
