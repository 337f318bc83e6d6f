"""Transformers' trainer, with batches, checkpoints and errors as a run of ours has them."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from core.errors import UserError
from core.model import IGNORED, StepModel
from training.batches import Batches
from training.checkpoints import Checkpoints
from training.config import TrainConfig
from training.examples import Example, collate
from training.progress import Progress

# One without a label, for the part of a step that has too few traces for all parts.
_EMPTY = Example(np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, IGNORED, np.int64))
# A history of at least so many rows, and at most so many steps a row.
_ROWS, _STEPS_A_ROW = 100, 20
_NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
_NOT_WRITTEN = ("PytorchStreamWriter", "No space left", "file write failed")


def arguments_of(config: TrainConfig, folder: Path) -> TrainingArguments:
    """What the trainer takes of a configuration, with checkpoints in `folder`; joins the processes that were
    launched together. Raises `UserError` where `fsdp` is asked for and there is one process."""
    sharded: Any = config.fsdp or None
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=config.batch_size,
        gradient_accumulation_steps=config.accumulation,
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
        logging_nan_inf_filter=False,
        save_steps=config.save_steps,
        report_to="none",
        remove_unused_columns=False,
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        ddp_find_unused_parameters=False,
        # With FSDP it is FSDP's own, which gathers the weights once only.
        activation_checkpointing=config.activation_checkpointing and not config.fsdp,
        fsdp=sharded,
        fsdp_config={
            "version": 2,
            "state_dict_type": "SHARDED_STATE_DICT",
            "activation_checkpointing": config.activation_checkpointing,
        },
    )
    # Several devices are used by several processes, never by one.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    if config.fsdp and arguments.world_size == 1:
        raise UserError(
            "fsdp is true, but there is one process only.",
            "Launch several: torchrun --nproc-per-node N -m app.cli train …, or set fsdp: false.",
        )
    return arguments


class EpochLoader(DataLoader[Example]):
    """Tells its batches which epoch it is."""

    def set_epoch(self, epoch: int) -> None:
        """Called by the trainer before each epoch."""
        assert isinstance(self.batch_sampler, Batches)
        self.batch_sampler.set_epoch(epoch)


class StepTrainer(Trainer):
    """Trains `model` on `examples`. A step's loss is the mean cross-entropy over its supervised ends, however many
    parts and processes compute it. Raises `UserError` where memory or disk run out, or the loss is no number."""

    def __init__(
        self,
        config: TrainConfig,
        model: StepModel,
        examples: Sequence[Example],
        arguments: TrainingArguments,
        checkpoints: Checkpoints,
    ) -> None:
        self.checkpoints = checkpoints
        self.batches = Batches(
            [len(example.ids) for example in examples],
            config.batch_size,
            config.seed,
            accumulation=config.accumulation,
            processes=arguments.world_size,
            process=arguments.process_index,
            order=config.order,
        )
        self.steps = len(self.batches) // config.accumulation * config.epochs
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        arguments.logging_steps = max(1, min(_STEPS_A_ROW, self.steps // _ROWS))
        self._loss: Tensor | float = 0.0
        self._begun = time.monotonic()
        super().__init__(
            model=model,
            args=arguments,
            train_dataset=[*examples, _EMPTY],
            data_collator=collate,
            callbacks=[Progress()],
        )
        # It prints to standard output, where the path of the evaluator belongs.
        self.remove_callback(PrinterCallback)

    def create_accelerator_and_postprocess(self) -> None:
        """The trainer's own; where processors take the place of devices, Accelerate leaves FSDP out, and without a
        word, though its FSDP runs on them."""
        super().create_accelerator_and_postprocess()
        if self.args.fsdp and not self.is_fsdp_enabled:
            plugin = FullyShardedDataParallelPlugin(**self.args.fsdp_plugin_args)
            if self.args.bf16:
                plugin.set_mixed_precision("bf16")
            state = self.accelerator.state
            state.distributed_type, state.fsdp_plugin = DistributedType.FSDP, plugin
            # Every later state is made from this one.
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP
            self.is_fsdp_enabled = True

    def get_train_dataloader(self) -> EpochLoader:
        """The process's own parts: the batches know of the processes, so nothing shares them out once more."""
        dataset: Any = self.train_dataset
        return EpochLoader(
            dataset,
            batch_sampler=self.batches,
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory,
        )

    def finish(self) -> None:
        """Train to the end, from the last whole checkpoint where there is one; what runs out leaves that."""
        last = self.checkpoints.last()
        try:
            self.train(resume_from_checkpoint=str(last) if last else None)
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and not _tells(error, _NO_MEMORY):
                raise
            raise UserError(
                f"memory ran out in step {self.state.global_step + 1}.",
                "Raise accumulation, or set activation_checkpointing: true or bf16: true, or lower max_length; "
                "the first two go on with the same run.",
            ) from None

    def whole_model(self) -> StepModel:
        """The trained model with all its weights, whole in the main process; every process has to call it."""
        model: Any = self.model
        if not self.is_fsdp_enabled:
            return cast(StepModel, model)
        weights = self.accelerator.get_state_dict(model)
        with torch.device("meta"):
            whole = StepModel.from_config(model.config)
        if self.args.should_save:
            whole.load_state_dict(weights, assign=True)
        return whole

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """The trainer's own; the loss of the parts is added up, for the error that tells of it."""
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        self._loss = self._loss + loss
        return loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log with the seconds that the run has taken, over all its calls; not the totals of this call."""
        if "train_runtime" not in logs:
            super().log(logs | {"seconds": round(time.monotonic() - self._begun, 2)}, start_time)

    def _init_training_state(self, *args: Any, **options: Any) -> Any:
        found = super()._init_training_state(*args, **options)
        history = self.state.log_history
        self._begun = time.monotonic() - (history[-1].get("seconds", 0.0) if history else 0.0)
        return found

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        """Every step passes here between its gradients and its update, in every process with the same norm."""
        norm: Any = super()._clip_grad_norm(model)  # type: ignore[no-untyped-call]
        loss, self._loss = float(self._loss), 0.0
        if not np.isfinite(float(norm)):
            what = f"the loss became {loss}" if not np.isfinite(loss) else f"the gradient became {float(norm)}"
            raise UserError(
                f"{what} in step {self.state.global_step + 1}.",
                "Lower learning_rate or clip, then start again with another --output; "
                f"the checkpoint of step {self.checkpoints.last_step()} is from before.",
            )
        return norm

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        folder, self.args.output_dir = self.args.output_dir, str(self.checkpoints.partial)
        try:
            super()._save_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                self.checkpoints.publish(self.state.global_step)
        except (OSError, SafetensorError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not _tells(error, _NOT_WRITTEN):
                raise
            self.checkpoints.clear()
            raise UserError(
                f"{folder}: the checkpoint of step {self.state.global_step} cannot be written ({_reason(error)}).",
                f"Make room; the same command goes on from step {self.checkpoints.last_step()}.",
            ) from None
        finally:
            self.args.output_dir = folder
        self.accelerator.wait_for_everyone()


def _tells(error: BaseException, texts: Sequence[str]) -> bool:
    return any(text.lower() in str(error).lower() for text in texts)


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
