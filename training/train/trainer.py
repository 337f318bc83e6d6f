"""The trainer of evaluators, with its batches and its loss. It stops with an error if the loss is not finite."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from accelerate.utils.constants import FSDP_MODEL_NAME
from torch import Tensor, nn
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from transformers import PretrainedConfig, TrainingArguments

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.models.backbone import context_of
from stepsight.core.models.model import IGNORED, StepModel
from stepsight.training.data.examples import Example, collate
from stepsight.training.runs.batches import Batches, EpochLoader
from stepsight.training.runs.checkpoints import Checkpoints
from stepsight.training.runs.progress import TrainingProgress
from stepsight.training.runs.resumable import Resumable, arguments_for, check_processes, logging_steps
from stepsight.training.train.config import TrainConfig
from stepsight.training.train.lora import adapted, trained_weights

# Up to this width, plain products are faster on a processor than fused attention, whose backward pass is slow
# there; their memory grows with the square of the width.
_NARROW = 256

# An example without a label, for an empty part of a step.
_EMPTY = Example(np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, IGNORED, np.int64))


def arguments_of(config: TrainConfig, folder: Path) -> TrainingArguments:
    """Translate a configuration into `TrainingArguments` with checkpoints in `folder`.

    As a side effect, this connects processes that were launched together. Raises `UserError` if `fsdp` is set but
    there is only one process.
    """
    arguments = TrainingArguments(**arguments_for(config, folder), per_device_train_batch_size=config.batch_size)
    # Each process uses one device.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    check_processes(config, arguments.world_size, "train")
    return arguments


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


def _of_examples(labels: Tensor) -> Tensor:
    """Return one label per example, of shape (batch,), given the labels of step ends, of shape (batch, steps). The
    label is 0 for an example with a labelled step end, and `IGNORED` otherwise."""
    return torch.where((labels != IGNORED).any(1), 0, IGNORED)


class StepTrainer(Resumable):
    """A trainer that trains `model` on `examples`.

    The loss of an optimiser step is the mean cross-entropy over its labelled step ends or, if the loss is per
    example, the mean of the examples' means. It does not depend on how many micro-batches and processes compute it.
    Raises `UserError` if memory or disk space runs out, or if the loss is not finite.
    """

    def __init__(
        self,
        config: TrainConfig,
        model: StepModel,
        examples: Sequence[Example],
        arguments: TrainingArguments,
        checkpoints: Checkpoints,
    ) -> None:
        self.begin(checkpoints)
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
        self.step_model = model
        trained: Any = adapted(model, config.lora, config.seed) if config.lora else model
        self.adapter_config = trained.active_peft_config if config.lora else None
        self.trained = sum(weight.numel() for weight in trained_weights(trained).values())
        arguments.logging_steps = logging_steps(self.steps)
        self._backbone = model.model
        model.per_example = config.loss == "example"
        self._loss: Tensor | float = 0.0
        super().__init__(
            model=trained,
            args=arguments,
            train_dataset=[*examples, _EMPTY],
            data_collator=partial(collate, limit=context_of(model.model)),
            callbacks=[TrainingProgress()],
        )
        self.keep_quiet()

    def get_train_dataloader(self) -> EpochLoader:
        """Return a loader of this process's share of the batches, which are already divided among the processes."""
        dataset: Any = self.train_dataset
        return EpochLoader(
            dataset,
            batch_sampler=self.batches,
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory,
        )

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: torch.device) -> Any:
        """Like the base method, but count labelled examples instead of labels if the loss is per example."""
        if self.step_model.per_example:
            batch_samples = [{"labels": _of_examples(batch["labels"])} for batch in batch_samples]
        return super()._get_num_items_in_batch(batch_samples, device)

    def whole_model(self) -> StepModel:
        """Return the trained model, with all weights gathered in the main process. Every process must call this."""
        model: Any = self.model
        if not self.is_fsdp_enabled:
            return cast(StepModel, model)
        weights = self.accelerator.get_state_dict(model)
        return assembled(model.config, weights if self.args.should_save else {})

    def adapter_weights(self) -> dict[str, Tensor]:
        """Return the trained weights, gathered in the main process and keyed by their names in PEFT's model. Every
        process must call this method."""
        model: Any = self.model
        if not self.is_fsdp_enabled:
            return trained_weights(model)
        options = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=True)
        return cast(dict[str, Tensor], get_model_state_dict(model, options=options))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        """Like the base method, but load sharded adapters without PEFT, whose loading has no effect on shards."""
        if self.adapter_config is None or not self.is_fsdp_enabled:
            super()._load_from_checkpoint(resume_from_checkpoint, model)
            return
        from peft import get_peft_model_state_dict

        target: Any = self.model_wrapped if model is None else model
        state = {"model": get_peft_model_state_dict(target, adapter_name=target.active_adapter)}
        load(state, storage_reader=FileSystemReader(f"{resume_from_checkpoint}/{FSDP_MODEL_NAME}_0"))

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """Like the base method, but also add up the loss of a step's micro-batches, for the error message."""
        if self.args.use_cpu:
            width = int(inputs["input_ids"].shape[1])
            self._attend("eager" if width <= _NARROW else "sdpa")
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        self._loss = self._loss + loss
        return loss

    def _attend(self, implementation: str) -> None:
        if self._backbone.config._attn_implementation != implementation:
            self._backbone.set_attn_implementation(implementation)

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        """Clip the gradients, and raise `UserError` if their norm is not finite.

        The trainer calls this in every process, with the same norm, after computing a step's gradients and before
        updating the weights.
        """
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
