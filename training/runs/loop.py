"""The loop that trains: evaluators and language models, on one device or on several; and the history of a run.

A run continues from its last complete checkpoint as if it had never stopped. What an optimiser step learns depends
neither on the number of micro-batches in which it is computed nor on the number of processes.

    FOLDER/checkpoint-N/state.pt        the trained weights and AdamW's moments; with `fsdp`, each process writes
                                        its part of them to a file of its own
    FOLDER/checkpoint-N/contents.json   names and sizes in bytes of the other files, and what was logged up to step
                                        N; written last
    FOLDER/log_history.json             the rows of the history
    FOLDER/training.html                their curves
"""

import json
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import plotly.graph_objects as go
import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.checkpoint.state_dict_loader import load as load_shards
from torch.distributed.checkpoint.state_dict_saver import save as save_shards
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json
from stepsight.training.data.examples import EMPTY, Batches, Example, collate
from stepsight.training.runs.optimisation import Optimisation
from stepsight.training.runs.progress import RunProgress

# The smallest number of rows in a history, and the largest number of steps per row.
_ROWS, _STEPS_A_ROW = 100, 20
# The number of rows at the end whose mean is the final loss.
_LAST_ROWS = 10
_NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
_NOT_WRITTEN = ("pytorchstreamwriter", "no space left", "file write failed", "file too large")
_PREFIX = "checkpoint-"
_STATE, _CONTENTS = "state.pt", "contents.json"
# The number of checkpoints to keep.
_KEPT = 2

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class Objective:
    """What a run learns: the weights of `model` that require gradients, from `examples`.

    `loss` computes, with the model that it is given, the sum of a batch's losses, and `count` their number. `limit`
    is the longest input of the model, and `order` an order of `Batches`.
    """

    model: nn.Module
    examples: Sequence[Example]
    loss: Callable[[nn.Module, Batch], Tensor]
    count: Callable[[Batch], Tensor]
    limit: int | None
    order: str


def connect(config: Optimisation, command: str) -> Accelerator:
    """Connect the processes that were launched together, each of which uses one device. Raises `UserError` if
    `fsdp` is set but there is only one process; its hint shows how to launch `command`."""
    accelerator = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision="no")
    if config.fsdp and accelerator.num_processes == 1:
        raise UserError(
            "fsdp is true, but there is only one process.",
            f"Launch several: torchrun --nproc-per-node N -m stepsight {command} …, or set fsdp: false.",
        )
    return accelerator


class Loop:
    """A run for `objective` from the last complete checkpoint in `folder` on, or from the start if there is none.

    `steps` is the number of optimiser steps in all epochs, and `step` the number of those that are done. Each row
    of `history` has the mean `loss` of the steps since the row before, the norm of the gradient and the learning
    rate of its own `step`, and the `seconds` spent so far, with those before the run was resumed.
    """

    def __init__(self, accelerator: Accelerator, config: Optimisation, objective: Objective, folder: Path) -> None:
        self.accelerator, self.config, self.objective, self.folder = accelerator, config, objective, folder
        self.batches = Batches(
            [len(example.ids) for example in objective.examples],
            config.batch_size,
            config.seed,
            accumulation=config.accumulation,
            processes=accelerator.num_processes,
            process=accelerator.process_index,
            order=objective.order,
        )
        self.steps = len(self.batches) * config.epochs
        self.parameters = sum(weight.numel() for weight in objective.model.parameters())
        self.trained = sum(weight.numel() for weight in objective.model.parameters() if weight.requires_grad)
        objective.model.train()
        if config.activation_checkpointing:
            # Models from Transformers have this method, and modules wrapped around them pass the call on.
            enable: Any = objective.model.activation_checkpointing_enable
            enable()
        if config.fsdp:
            self.model: nn.Module = _shard(objective.model, accelerator, config.bf16)
        else:
            self.model = accelerator.prepare_model(objective.model)
        self.weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        # Norms and biases, which are vectors, are not decayed.
        groups = [
            {"params": [weight for weight in self.weights if weight.ndim > 1], "weight_decay": config.weight_decay},
            {"params": [weight for weight in self.weights if weight.ndim <= 1], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, config.learning_rate, config.betas, fused=True)
        self.history: list[dict[str, Any]] = []
        self.step, self._checkpoint = last_checkpoint(folder)

    def describe(self) -> str:
        """Describe the run in a line: its steps, parameters and devices, and where it resumes."""
        epochs = "epoch" if self.config.epochs == 1 else "epochs"
        some = f", {self.trained:,} trained" if self.trained != self.parameters else ""
        text = f"{self.steps:,} steps of {self.config.batch_size} in {self.config.epochs:,} {epochs}"
        text += f"; {self.parameters:,} parameters{some}; {self.devices}"
        return text + (f"; going on from step {self.step:,}." if self.step else ".")

    @property
    def devices(self) -> str:
        """The devices in use, such as `2 x cuda`."""
        return f"{self.accelerator.num_processes} x {self.accelerator.device.type}"

    def train(self) -> None:
        """Train to the end, showing the progress in the main process. Raises `UserError` if the loss or the
        gradient is not finite; neither the weights nor a checkpoint has anything of such a step."""
        config, accelerator, device = self.config, self.accelerator, self.accelerator.device
        if self._checkpoint is not None:
            self._load(self._checkpoint)
        steps_a_row = max(1, min(_STEPS_A_ROW, self.steps // _ROWS))
        begun = time.monotonic() - (self.history[-1]["seconds"] if self.history else 0.0)
        progress = RunProgress("steps", self.steps, self.step) if accelerator.is_main_process else None
        total_loss, logged = torch.zeros((), device=device), self.step
        while self.step < self.steps:
            epoch, first = divmod(self.step, len(self.batches))
            for parts in self.batches.parts(epoch)[first:]:
                # The random numbers of dropout depend only on the step, not on what was drawn before.
                drawn = (config.seed, self.step, accelerator.process_index)
                torch.manual_seed(int(np.random.SeedSequence(drawn).generate_state(1)[0]))
                examples = [[self.objective.examples[place] for place in part] or [EMPTY] for part in parts]
                batches = [collate(part, self.objective.limit) for part in examples]
                counts = torch.stack([self.objective.count(batch) for batch in batches])
                count = accelerator.reduce(counts.sum().to(device), "sum")
                for number, batch in enumerate(batches, 1):
                    # Processes exchange gradients once per step. With sharding, they do so after every backward
                    # pass, since each process keeps only its own part.
                    with nullcontext() if number == len(batches) else accelerator.no_sync(self.model):
                        with torch.autocast(device.type, torch.bfloat16, enabled=config.bf16):
                            moved = {name: values.to(device) for name, values in batch.items()}
                            loss = self.objective.loss(self.model, moved) / count
                        # The gradients of the processes are averaged, but their sum is needed.
                        accelerator.backward(loss * accelerator.num_processes)
                    total_loss += loss.detach()
                norm = torch.nn.utils.clip_grad_norm_(self.weights, config.clip)
                norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
                is_saved = (self.step + 1) % config.save_steps == 0 or self.step + 1 == self.steps
                # A checkpoint starts a new mean, so that a run resumed from it logs the same values as an
                # uninterrupted one.
                is_logged = is_saved or (self.step + 1) % steps_a_row == 0
                row: dict[str, Any] = {"grad_norm": float(norm)}
                if is_logged or not math.isfinite(row["grad_norm"]):
                    mean = float(accelerator.reduce(total_loss, "sum")) / (self.step + 1 - logged)
                    row = {"loss": mean, **row}
                for name, value in row.items():
                    if not math.isfinite(value):
                        raise UserError(
                            f"{name} became {value} in step {self.step + 1}.",
                            "Lower learning_rate or clip, then start again with another --output.",
                        )
                row["learning_rate"] = self._learning_rate()
                for group in self.optimizer.param_groups:
                    group["lr"] = row["learning_rate"]
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.step += 1
                if progress is not None:
                    progress.move(self.step)
                if is_logged:
                    seconds = round(time.monotonic() - begun, 2)
                    row |= {"epoch": self.step / len(self.batches), "step": self.step, "seconds": seconds}
                    self.history.append(row)
                    total_loss, logged = torch.zeros_like(total_loss), self.step
                    if progress is not None:
                        progress.log(self.step, loss=row["loss"])
                if is_saved:
                    self._save()
        if progress is not None:
            progress.close()

    def _learning_rate(self) -> float:
        """Return the rate of the next step, which rises to its peak in a line and then falls as half a cosine."""
        peak, warmup = self.config.learning_rate, self.config.warmup_steps
        if self.step < warmup:
            return peak * (self.step / warmup)
        done = (self.step - warmup) / max(1, self.steps - warmup)
        return peak * max(0.0, 0.5 * (1.0 + math.cos(math.pi * done)))

    def _save(self) -> None:
        """Write a checkpoint, and remove all but the newest ones."""
        folder, is_main = self.folder / f"{_PREFIX}{self.step}", self.accelerator.is_main_process
        if is_main:
            # A run that was killed while writing this checkpoint may have left part of it behind.
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self.accelerator.wait_for_everyone()
        state = self._state()
        if self.config.fsdp:
            save_shards(state, checkpoint_id=folder)
        elif is_main:
            # Given a path, PyTorch would not say why it cannot write.
            with (folder / _STATE).open("wb") as file:
                torch.save(state, file)
        self.accelerator.wait_for_everyone()
        if is_main:
            complete(folder, self.history)
            whole = [checkpoint for _, checkpoint in checkpoints(self.folder) if is_whole(checkpoint)]
            for _, checkpoint in checkpoints(self.folder):
                if checkpoint not in whole[:_KEPT]:
                    shutil.rmtree(checkpoint)

    def _load(self, folder: Path) -> None:
        """Put weights, optimiser and history into the state that a checkpoint holds."""
        if self.config.fsdp:
            state = self._state()
            load_shards(state, checkpoint_id=folder)
        else:
            state = torch.load(folder / _STATE, map_location="cpu", weights_only=True)
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
            # Frozen weights are not in the checkpoint.
            options=StateDictOptions(strict=False),
        )
        self.history = read_json(folder / _CONTENTS)["history"]

    def _state(self) -> dict[str, Any]:
        options = StateDictOptions(ignore_frozen_params=True)
        model, optimizer = get_state_dict(self.model, self.optimizer, options=options)
        return {"model": model, "optimizer": optimizer}

    def trained_weights(self) -> dict[str, Tensor]:
        """Return the trained weights by their names in the objective's model, gathered in the main process if they
        are sharded. Every process must call this."""
        options = StateDictOptions(
            full_state_dict=self.config.fsdp, cpu_offload=self.config.fsdp, ignore_frozen_params=True
        )
        return cast(dict[str, Tensor], get_model_state_dict(self.model, options=options))

    def outcome(self) -> dict[str, Any]:
        """Return the outcome of the run for its record. `final_loss` is the mean of the last ten rows of the
        history."""
        losses = [row["loss"] for row in self.history[-_LAST_ROWS:]]
        return {
            "steps": self.step,
            "final_loss": round(float(np.mean(losses)), 6),
            "seconds": self.history[-1]["seconds"],
            "devices": self.devices,
        }


def _shard(model: nn.Module, accelerator: Accelerator, bf16: bool) -> nn.Module:
    """Shard a model over the processes: each block of a stack by itself, and the rest together."""
    mesh = init_device_mesh(accelerator.device.type, (accelerator.num_processes,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    options: dict[str, Any] = {"mesh": mesh} | ({"mp_policy": policy} if bf16 else {})
    stacks = {name: part for name, part in model.named_modules() if isinstance(part, nn.ModuleList)}
    for name, stack in stacks.items():
        # The experts of a block are sharded together with it.
        if not any(name.startswith(f"{other}.") for other in stacks):
            for block in stack:
                fully_shard(block, **options)
    fully_shard(model, **options)
    return model


def complete(checkpoint: Path, history: Sequence[Mapping[str, Any]]) -> None:
    """Complete a checkpoint whose other files are written, with what was logged up to its step."""
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != _CONTENTS)
    contents = {
        "files": {str(path.relative_to(checkpoint)): path.stat().st_size for path in files},
        "history": history,
    }
    (checkpoint / _CONTENTS).write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")


def is_whole(checkpoint: Path) -> bool:
    """True if a checkpoint was completed, and each of its files still has its original size."""
    try:
        sizes = read_json(checkpoint / _CONTENTS).get("files", {})
    except UserError:
        return False
    files = {name: checkpoint / name for name in sizes}
    return bool(files) and all(
        path.is_file() and path.stat().st_size == sizes[name] for name, path in files.items()
    )


def checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """Return the steps and paths of all checkpoints in a folder, complete or not, beginning with the newest."""
    numbers = (path.name.removeprefix(_PREFIX) for path in folder.glob(f"{_PREFIX}*"))
    steps = sorted((int(number) for number in numbers if number.isdecimal()), reverse=True)
    return [(step, folder / f"{_PREFIX}{step}") for step in steps]


def last_checkpoint(folder: Path) -> tuple[int, Path | None]:
    """Return the step and the path of the newest complete checkpoint in a folder, or 0 and None if there is none. A
    checkpoint that a crash of the machine cut short is skipped."""
    return next(((step, path) for step, path in checkpoints(folder) if is_whole(path)), (0, None))


@contextmanager
def whole_run(loop: Loop, output: Path) -> Iterator[None]:
    """A context manager in which a loop trains and its model is written to the folder `output`.

    If interrupted, it prints how to resume the run. Raises `UserError` if memory or disk space runs out; the last
    checkpoint is kept. At the end, processes that were launched together wait for one another.
    """
    try:
        with _without_cudnn_attention():
            yield
    except KeyboardInterrupt:
        if loop.accelerator.is_main_process:
            step = last_checkpoint(loop.folder)[0]
            print(f"\nThe same command resumes from step {step:,} of {loop.steps:,}.", file=sys.stderr)
        raise
    except (MemoryError, RuntimeError, OSError, CheckpointException) as error:
        cause = error.__context__ if isinstance(error.__context__, OSError) else error
        text = " ".join(str(cause).split())
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or _has(text, _NO_MEMORY):
            raise UserError(
                f"memory ran out in step {loop.step + 1}.",
                "Raise accumulation, or set activation_checkpointing: true or bf16: true, or lower max_length. "
                "With the first two, the same run continues.",
            ) from None
        if not isinstance(cause, OSError) and not _has(text, _NOT_WRITTEN):
            raise
        reason = getattr(cause, "strerror", None) or text
        raise UserError(
            f"{output}: cannot be written in step {loop.step} ({reason:.200}).",
            f"Free some space; the same command continues from step {last_checkpoint(loop.folder)[0]}.",
        ) from None
    if loop.accelerator.num_processes > 1:
        # A process that exits while another is still writing would end the group's threads.
        loop.accelerator.wait_for_everyone()
        loop.accelerator.end_training()


def _has(text: str, parts: Sequence[str]) -> bool:
    return any(part in text.lower() for part in parts)


@contextmanager
def _without_cudnn_attention() -> Iterator[None]:
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
# Without this, a button would send the figure to a server.
_PAGE = {"displaylogo": False, "showSendToCloud": False}


def draw_history(rows: Sequence[Mapping[str, Any]], title: str) -> "go.Figure":
    """Plot loss, gradient norm (on a logarithmic axis) and learning rate against the optimiser step.

    In each row, the loss is the mean since the previous row, while the gradient norm and learning rate are those of
    the row's own step.
    """
    # This import loads all of Plotly, which only drawing needs.
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


def write_history(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write the rows to the file `log_history.json` in the folder of a run, and their curves to `training.html`."""
    (folder / "log_history.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    figure = draw_history(rows, folder.resolve().name)
    figure.write_html(folder / "training.html", include_plotlyjs=True, full_html=True, config=_PAGE)
