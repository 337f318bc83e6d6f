"""The trainer of evaluators, with its batches, its loss and its checkpoints."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
from accelerate.utils.constants import FSDP_MODEL_NAME
from torch import Tensor, nn
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from transformers import PretrainedConfig, Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from stepsight.core.models.backbone import context_of
from stepsight.core.models.model import IGNORED, StepModel
from stepsight.core.trace import Label
from stepsight.training.data.examples import Batches, EpochLoader, Example, collate
from stepsight.training.runs.training import Safeguard, TrainingProgress, devices, logging_steps
from stepsight.training.train.config import TrainConfig
from stepsight.training.train.lora import adapted, trained_weights

# Up to this width, plain products are faster on a processor than fused attention, whose backward pass is slow
# there; their memory grows with the square of the width.
_NARROW = 256

# An example without a label, for an empty part of a step.
_EMPTY = Example(np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, IGNORED, np.int64))


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


class StepTrainer(Trainer):
    """A trainer that trains `model` on `examples`.

    Unlike the Transformers trainer, it can shard on CPUs as well as on GPUs, keeps only complete checkpoints,
    resumes from the last one, and reports which resource ran out.

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
    ) -> None:
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
        model.per_example = config.loss == "example"
        super().__init__(
            model=trained,
            args=arguments,
            train_dataset=[*examples, _EMPTY],
            data_collator=partial(collate, limit=context_of(model.model)),
            callbacks=[Safeguard(), TrainingProgress()],
        )
        # Standard output is reserved for the path of the result.
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
            # All its states are one, from which Accelerate derives every later one.
            PartialState().distributed_type = DistributedType.FSDP
            self.is_fsdp_enabled = True

    def describe(self, batch_size: int, done: int) -> str:
        """Describe the run, of which `done` steps are done, in a line."""
        epochs = int(self.args.num_train_epochs)
        some = f", {self.trained:,} trained" if self.trained != self.parameters else ""
        text = f"{self.steps:,} steps of {batch_size} in {epochs:,} {'epoch' if epochs == 1 else 'epochs'}"
        text += f"; {self.parameters:,} parameters{some}; {devices(self)}"
        return text + (f"; going on from step {done:,}." if done else ".")

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
            # One label for each example that has a labelled step end.
            labelled = [(batch["labels"] != IGNORED).any(1) for batch in batch_samples]
            batch_samples = [{"labels": torch.where(examples, 0, IGNORED)} for examples in labelled]
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
        """Like the base method, but choose the implementation of attention by the width of the batch."""
        if self.args.use_cpu:
            attention = "eager" if int(inputs["input_ids"].shape[1]) <= _NARROW else "sdpa"
            if self.step_model.model.config._attn_implementation != attention:
                self.step_model.model.set_attn_implementation(attention)
        return super().training_step(model, inputs, num_items_in_batch)
