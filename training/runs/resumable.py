"""The trainer behind `stepsight train`.

Unlike the Transformers trainer it builds on, it can shard on CPUs as well as on GPUs, keeps only complete
checkpoints, resumes from the last one, and reports which resource ran out.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
from safetensors import SafetensorError
from torch import nn
from transformers import Trainer
from transformers.trainer_callback import PrinterCallback

from stepsight.core.errors import UserError
from stepsight.training.runs.checkpoints import Checkpoints
from stepsight.training.runs.optimisation import Optimisation

# The least number of rows of a history, and the most steps per row.
_ROWS, _STEPS_A_ROW = 100, 20
# The number of last rows whose mean is the final loss.
_LAST_ROWS = 10
_NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
_NOT_WRITTEN = ("PytorchStreamWriter", "No space left", "file write failed")


def arguments_for(config: Optimisation, folder: Path) -> dict[str, Any]:
    """Translate a configuration into arguments of `TrainingArguments`. Checkpoints go to `folder`."""
    return {
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


def check_processes(config: Optimisation, processes: int, command: str) -> None:
    """Raise `UserError` if `fsdp` is set but there is only one process. Its hint shows how to launch `command`."""
    if config.fsdp and processes == 1:
        raise UserError(
            "fsdp is true, but there is one process only.",
            f"Launch several: torchrun --nproc-per-node N -m stepsight {command} …, or set fsdp: false.",
        )


def final_loss(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the mean loss of the last ten rows of a training history, or None if there are no rows."""
    losses = [row["loss"] for row in rows[-_LAST_ROWS:]]
    return round(float(np.mean(losses)), 6) if losses else None


def logging_steps(steps: int) -> int:
    """Return the number of optimiser steps that each row of the history covers in a run of `steps` steps."""
    return max(1, min(_STEPS_A_ROW, steps // _ROWS))


class Resumable(Trainer):
    """A trainer that can resume from checkpoints. `begin` must be called before `__init__`.

    `steps` is the number of optimiser steps in the whole run. `parameters` is the number of parameters of the
    model. `trained` is the number of trained parameters, or None if all are trained.
    """

    checkpoints: Checkpoints
    steps: int
    parameters: int
    trained: int | None = None
    _begun: float

    def begin(self, checkpoints: Checkpoints) -> None:
        """Set the attributes that `__init__` of the Transformers trainer needs."""
        self.checkpoints, self._begun = checkpoints, time.monotonic()

    def keep_quiet(self) -> None:
        """Stop Transformers from printing to standard output, which is reserved for the path of the result."""
        self.remove_callback(PrinterCallback)

    def create_accelerator_and_postprocess(self) -> None:
        """Create the accelerator, enabling FSDP on CPUs, where it works but Accelerate silently disables it."""
        super().create_accelerator_and_postprocess()
        if self.args.fsdp and not self.is_fsdp_enabled:
            plugin = FullyShardedDataParallelPlugin(**self.args.fsdp_plugin_args)
            if self.args.bf16:
                plugin.set_mixed_precision("bf16")
            state = self.accelerator.state
            state.distributed_type, state.fsdp_plugin = DistributedType.FSDP, plugin
            # Accelerate derives every later state from this one.
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP
            self.is_fsdp_enabled = True

    @contextmanager
    def whole_run(self, learnt: str, batch_size: int) -> Iterator[None]:
        """A context manager for the whole run. It prints how the run starts and, if interrupted, how to resume the
        run.

        `learnt` says what the run learns from, such as `24 traces, 900 tokens`. At the end, processes that were
        launched together wait for one another.
        """
        if self.args.should_save:
            self._announce(learnt, batch_size)
        try:
            yield
        except KeyboardInterrupt:
            if self.args.should_save:
                step = self.checkpoints.last_step()
                print(f"\nThe same command goes on from step {step:,} of {self.steps:,}.", file=sys.stderr)
            raise
        if self.args.world_size > 1:
            # A process that exits while another still writes would end the group's threads.
            self.accelerator.wait_for_everyone()
            self.accelerator.end_training()

    def _announce(self, learnt: str, batch_size: int) -> None:
        done, epochs = self.checkpoints.last_step(), int(self.args.num_train_epochs)
        print(
            f"{learnt}; {self.steps:,} steps of {batch_size} in {epochs:,} {'epoch' if epochs == 1 else 'epochs'}; "
            f"{self._counted}; {self.devices}" + (f"; going on from step {done:,}." if done else "."),
            file=sys.stderr,
        )

    @property
    def _counted(self) -> str:
        some = f", {self.trained:,} trained" if self.trained not in (None, self.parameters) else ""
        return f"{self.parameters:,} parameters{some}"

    @property
    def devices(self) -> str:
        """The devices in use, such as `2 x cuda`."""
        return f"{self.args.world_size} x {self.args.device.type}"

    def outcome(self) -> dict[str, Any]:
        """Return the outcome of the run for its record. `seconds` includes the time before the run was resumed."""
        rows = self.state.log_history
        some = {} if self.trained in (None, self.parameters) else {"trained_parameters": self.trained}
        return {
            "parameters": self.parameters,
            **some,
            "steps": self.state.global_step,
            "final_loss": final_loss(rows),
            "seconds": rows[-1]["seconds"],
            "devices": self.devices,
        }

    def finish(self) -> None:
        """Train to the end, starting from the last complete checkpoint if there is one.

        Raises `UserError` if memory or disk space runs out; the last checkpoint is kept.
        """
        last = self.checkpoints.last()
        try:
            with without_cudnn_attention():
                self.train(resume_from_checkpoint=str(last) if last else None)
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and not _has(error, _NO_MEMORY):
                raise
            raise UserError(
                f"memory ran out in step {self.state.global_step + 1}.",
                "Raise accumulation, or set activation_checkpointing: true or bf16: true, or lower max_length; "
                "the first two go on with the same run.",
            ) from None

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log a row with the seconds spent on the run so far, including the time before it was resumed. The
        trainer's final summary is dropped, because it covers only the time since the run was resumed."""
        if "train_runtime" not in logs:
            super().log(logs | {"seconds": round(time.monotonic() - self._begun, 2)}, start_time)

    def _init_training_state(self, *args: Any, **options: Any) -> Any:
        state = super()._init_training_state(*args, **options)
        self._begun = time.monotonic() - self._last_row().get("seconds", 0.0)
        return state

    def _last_row(self) -> dict[str, Any]:
        history = self.state.log_history
        return history[-1] if history else {}

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        folder, self.args.output_dir = self.args.output_dir, str(self.checkpoints.partial)
        try:
            # Transformers' own method: subclasses add pages for a model hub.
            Trainer._save_checkpoint(self, model, trial)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                self.checkpoints.publish(self.state.global_step)
        except (OSError, SafetensorError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not _has(error, _NOT_WRITTEN):
                raise
            self.checkpoints.clear()
            raise UserError(
                f"{folder}: the checkpoint of step {self.state.global_step} cannot be written ({_reason(error)}).",
                f"Make room; the same command goes on from step {self.checkpoints.last_step()}.",
            ) from None
        finally:
            self.args.output_dir = folder
        self.accelerator.wait_for_everyone()


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


def _has(error: BaseException, texts: Sequence[str]) -> bool:
    return any(text.lower() in str(error).lower() for text in texts)


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
