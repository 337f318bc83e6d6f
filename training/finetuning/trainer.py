"""TRL's SFTTrainer, with whole checkpoints and errors as a run of ours has them."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import datasets
import torch
from accelerate import PartialState
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase, Trainer
from transformers.trainer_callback import PrinterCallback
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from core.errors import UserError
from training.checkpoints import Checkpoints
from training.finetuning.examples import Example
from training.finetuning.recipe import Recipe
from training.progress import Progress

# A history of at least so many rows, and at most so many steps a row.
_ROWS, _STEPS_A_ROW = 100, 20
_NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


def arguments_of(recipe: Recipe, folder: Path) -> SFTConfig:
    """What the trainer takes of a recipe, with checkpoints in `folder`; joins the processes that were launched
    together. Raises `UserError` where the rows of a step cannot be shared out among them, or `fsdp` is asked for
    and there is one process."""
    sharded: Any = recipe.fsdp or None
    arguments = SFTConfig(
        output_dir=str(folder),
        gradient_accumulation_steps=recipe.accumulation,
        num_train_epochs=recipe.epochs,
        learning_rate=recipe.learning_rate,
        adam_beta1=recipe.betas[0],
        adam_beta2=recipe.betas[1],
        weight_decay=recipe.weight_decay,
        lr_scheduler_type="cosine",
        warmup_steps=recipe.warmup_steps,
        max_grad_norm=recipe.clip,
        use_cpu=not torch.cuda.is_available(),
        bf16=recipe.bf16,
        seed=recipe.seed,
        logging_nan_inf_filter=False,
        save_steps=recipe.save_steps,
        report_to="none",
        remove_unused_columns=False,
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        ddp_find_unused_parameters=False,
        # With FSDP it is FSDP's own, which gathers the weights once only.
        activation_checkpointing=recipe.activation_checkpointing and not recipe.fsdp,
        fsdp=sharded,
        fsdp_config={
            "version": 2,
            "state_dict_type": "SHARDED_STATE_DICT",
            "activation_checkpointing": recipe.activation_checkpointing,
        },
        # The rows are token ids of the length that the recipe allows, with their labels.
        max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    # Several devices are used by several processes, never by one.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    _share_out(arguments, recipe)
    return arguments


def _share_out(arguments: SFTConfig, recipe: Recipe) -> None:
    devices = arguments.world_size
    rows, left = divmod(recipe.batch_size, recipe.accumulation * devices)
    if left:
        raise UserError(
            f"batch_size {recipe.batch_size} cannot be shared out over {devices} devices with accumulation "
            f"{recipe.accumulation}.",
            "Change accumulation, or launch another number of processes.",
        )
    if recipe.fsdp and devices == 1:
        raise UserError(
            "fsdp is true, but there is one process only.",
            "Launch several: torchrun --nproc-per-node N -m app.cli sft …, or set fsdp: false.",
        )
    arguments.per_device_train_batch_size = rows


class FineTuner(SFTTrainer):
    """Trains `model` on `examples`. A step's loss is the mean over its learnt tokens, however many parts and
    devices compute it. Raises `UserError` where memory or disk run out, or the loss is no number."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        examples: Sequence[Example],
        arguments: SFTConfig,
        checkpoints: Checkpoints,
    ) -> None:
        self.checkpoints = checkpoints
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        batch = arguments.per_device_train_batch_size * arguments.gradient_accumulation_steps * arguments.world_size
        self.steps = -(-len(examples) // batch) * int(arguments.num_train_epochs)
        arguments.logging_steps = max(1, min(_STEPS_A_ROW, self.steps // _ROWS))
        self._begun = time.monotonic()
        super().__init__(
            model=model,
            args=arguments,
            train_dataset=datasets.Dataset.from_dict(
                {
                    "input_ids": [list(example.ids) for example in examples],
                    "labels": [list(example.labels) for example in examples],
                }
            ),
            processing_class=tokenizer,
            callbacks=[Progress()],
        )
        # It prints to standard output, where the path of the model belongs.
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
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP
            self.is_fsdp_enabled = True

    def finish(self) -> None:
        """Train to the end, from the last whole checkpoint where there is one; what runs out leaves that."""
        last = self.checkpoints.last()
        try:
            self.train(resume_from_checkpoint=str(last) if last else None)
        except (MemoryError, RuntimeError) as error:
            told = isinstance(error, (MemoryError, torch.OutOfMemoryError))
            if not told and not any(text in str(error).lower() for text in _NO_MEMORY):
                raise
            raise UserError(
                f"memory ran out in step {self.state.global_step + 1}.",
                "Raise accumulation, or set activation_checkpointing: true or bf16: true, or lower max_length.",
            ) from None

    def whole_weights(self) -> dict[str, Tensor]:
        """All weights of the trained model, whole in the main process; every process has to call it."""
        weights: dict[str, Tensor] = self.accelerator.get_state_dict(self.model)
        return weights

    def plain_model(self) -> PreTrainedModel:
        """The model without what spreads it over devices."""
        return cast(PreTrainedModel, self.accelerator.unwrap_model(self.model))

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """The trainer's own; a loss that is no number ends the run."""
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)  # type: ignore[no-untyped-call]
        if not torch.isfinite(loss):
            raise UserError(
                f"the loss became {float(loss)} in step {self.state.global_step + 1}.",
                "Lower learning_rate or clip, then start again with another --output.",
            )
        return loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log with the seconds that the run has taken, over all its calls; not the totals of this call."""
        if "train_runtime" not in logs:
            super().log(logs | {"seconds": round(time.monotonic() - self._begun, 2)}, start_time)

    def _init_training_state(self, *args: Any, **options: Any) -> Any:
        found = super()._init_training_state(*args, **options)
        last = self.state.log_history[-1] if self.state.log_history else {}
        self._begun = time.monotonic() - last.get("seconds", 0.0)
        # TRL counts from 0 again.
        self._total_train_tokens = int(last.get("num_tokens", 0))
        return found

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        folder, self.args.output_dir = self.args.output_dir, str(self.checkpoints.partial)
        try:
            # TRL's own writes a page for the model hub too, which asks git and others for what to put there.
            Trainer._save_checkpoint(self, model, trial)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                self.checkpoints.publish(self.state.global_step)
        except (OSError, SafetensorError) as error:
            self.checkpoints.clear()
            raise UserError(
                f"{folder}: the checkpoint of step {self.state.global_step} cannot be written ({error}).",
                f"Make room; the same command goes on from step {self.checkpoints.last_step()}.",
            ) from None
        finally:
            self.args.output_dir = folder
        self.accelerator.wait_for_everyone()
