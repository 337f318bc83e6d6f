"""What training and fine-tuning have in common: the arguments of the Transformers trainer, checkpoints, resuming,
progress, training curves, and errors that say what ran out.
"""

import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import plotly.graph_objects as go
import torch
from accelerate import PartialState
from safetensors import SafetensorError
from transformers import Trainer, TrainerCallback, TrainingArguments

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json
from stepsight.training.runs.optimisation import Optimisation
from stepsight.training.runs.progress import RunProgress

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


class TrainingProgress(TrainerCallback):
    """A trainer callback that shows the optimiser steps and their loss, and logs the seconds spent on the run, with
    those before it was resumed. Only the first process shows them."""

    def __init__(self) -> None:
        self._bar: RunProgress | None = None
        self._begun = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._close()
        self._begun = time.monotonic() - sum(row.get("seconds", 0.0) for row in state.log_history[-1:])
        if state.is_world_process_zero:
            self._bar = RunProgress("steps", state.max_steps, state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # A checkpoint starts a new mean, so that a run which goes on from it logs what an uninterrupted one does;
        # and without the last steps' mean the history would end before the run.
        if control.should_save or state.global_step >= state.max_steps:
            control.should_log = True
        if self._bar is not None:
            self._bar.move(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if logs and "loss" in logs:
            state.log_history[-1]["seconds"] = round(time.monotonic() - self._begun, 2)
            if self._bar is not None:
                self._bar.log(state.global_step, loss=logs["loss"])

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None


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


_CURVES = (("loss", "Cross-entropy"), ("grad_norm", "Gradient norm"), ("learning_rate", "Learning rate"))
_INK, _GRID = "#1f5fa8", "#e3e6ea"
# No button sends a figure to a server.
_PAGE = {"displaylogo": False, "showSendToCloud": False}


def draw_history(rows: Sequence[Mapping[str, Any]], title: str) -> "go.Figure":
    """Plot loss, gradient norm (on a logarithmic axis) and learning rate against the optimiser step.

    In each row, the loss is the mean since the previous row, while the gradient norm and learning rate are those of
    the row's own step.
    """
    # It loads all of Plotly, and pages import this module to link to figures.
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=3, subplot_titles=[name for _, name in _CURVES], horizontal_spacing=0.07)
    steps = [row["step"] for row in rows]
    for column, (key, name) in enumerate(_CURVES, start=1):
        curve = go.Scatter(x=steps, y=[row[key] for row in rows], name=name, line={"color": _INK, "width": 1.5})
        figure.add_trace(curve, row=1, col=column)
        figure.update_xaxes(title_text="Optimiser step", row=1, col=column)
    figure.update_yaxes(type="log", dtick="D2", row=1, col=2)
    figure.update_xaxes(gridcolor=_GRID, zeroline=False)
    figure.update_yaxes(gridcolor=_GRID, zeroline=False)
    figure.update_layout(title=title, showlegend=False, template="plotly_white", width=1200, height=400)
    figure.update_layout(margin={"l": 60, "r": 30, "t": 90, "b": 60})
    return figure


def write_history(rows: Sequence[Mapping[str, Any]], title: str, folder: Path) -> None:
    """Write the curves of `draw_history` to the page `training.html` in a folder."""
    page = folder / "training.html"
    draw_history(rows, title).write_html(page, include_plotlyjs=True, full_html=True, config=_PAGE)
