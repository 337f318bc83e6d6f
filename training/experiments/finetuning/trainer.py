"""TRL's SFTTrainer with resumable checkpoints and StepSight's error messages."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import datasets
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from stepsight.core.errors import UserError
from stepsight.training.experiments.finetuning.examples import IGNORED, TextExample
from stepsight.training.experiments.finetuning.recipe import Recipe
from stepsight.training.runs.batches import Batches, EpochLoader
from stepsight.training.runs.checkpoints import Checkpoints
from stepsight.training.runs.progress import TrainingProgress
from stepsight.training.runs.resumable import Resumable, arguments_for, check_processes, logging_steps

# The tokens of an example without a label: the first can never be learnt, the second could.
_EMPTY = 2


def arguments_of(recipe: Recipe, folder: Path) -> SFTConfig:
    """Translate a recipe into an `SFTConfig` whose checkpoints go to `folder`.

    As a side effect, this connects processes that were launched together. Raises `UserError` if the rows of an
    optimiser step cannot be divided among the processes, or if `fsdp` is set but there is only one process.
    """
    arguments = SFTConfig(
        **arguments_for(recipe, folder),
        # The rows are already token ids with labels, within the recipe's length.
        max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    # Each process uses one device.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    _share_out(arguments, recipe)
    return arguments


def _share_out(arguments: SFTConfig, recipe: Recipe) -> None:
    devices = arguments.world_size
    rows, left = divmod(recipe.batch_size, recipe.accumulation * devices)
    if left:
        raise UserError(
            f"batch_size {recipe.batch_size} cannot be divided among {devices} devices with accumulation "
            f"{recipe.accumulation}.",
            "Change accumulation, or launch another number of processes.",
        )
    check_processes(recipe, devices, "sft")
    arguments.per_device_train_batch_size = rows


class FineTuner(Resumable, SFTTrainer):
    """A trainer that fine-tunes `model` on `examples`.

    Every epoch uses each example once. The loss of an optimiser step is the mean over its learnt tokens, however
    many devices and micro-batches compute it. Raises `UserError` if memory or disk space runs out, or if the loss
    is not finite.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        examples: Sequence[TextExample],
        arguments: SFTConfig,
        checkpoints: Checkpoints,
    ) -> None:
        self.begin(checkpoints)
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        parts = arguments.gradient_accumulation_steps
        # Shuffled as by TRL: in batches of similar length, tokens of short rows would weigh more.
        self.batches = Batches(
            [len(example.ids) for example in examples],
            arguments.per_device_train_batch_size * parts * arguments.world_size,
            arguments.seed,
            accumulation=parts,
            processes=arguments.world_size,
            process=arguments.process_index,
            order="shuffled",
        )
        self.steps = len(self.batches) // parts * int(arguments.num_train_epochs)
        arguments.logging_steps = logging_steps(self.steps)
        end = cast(int, tokenizer.eos_token_id)
        rows = [*examples, TextExample((end,) * _EMPTY, (IGNORED,) * _EMPTY)]
        super().__init__(
            model=model,
            args=arguments,
            train_dataset=datasets.Dataset.from_dict(
                {"input_ids": [list(row.ids) for row in rows], "labels": [list(row.labels) for row in rows]}
            ),
            processing_class=tokenizer,
            callbacks=[TrainingProgress()],
        )
        self.keep_quiet()

    def get_train_dataloader(self) -> EpochLoader:
        """Return a loader of this process's share of the batches. The loader of the base class would repeat rows if
        the last step has too few rows for all processes."""
        return EpochLoader(
            cast(Any, self.train_dataset),
            batch_sampler=self.batches,
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory,
        )

    def whole_weights(self) -> dict[str, Tensor]:
        """Return all weights of the trained model, gathered in the main process. Every process must call this."""
        weights: dict[str, Tensor] = self.accelerator.get_state_dict(self.model)
        return weights

    def plain_model(self) -> PreTrainedModel:
        """Return the model without its distributed wrapper."""
        return cast(PreTrainedModel, self.accelerator.unwrap_model(self.model))

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """Like the base method, but raise `UserError` if the loss is not finite."""
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)  # type: ignore[no-untyped-call]
        if not torch.isfinite(loss):
            raise UserError(
                f"the loss became {float(loss)} in step {self.state.global_step + 1}.",
                "Lower learning_rate or clip, then start again with another --output.",
            )
        self._leave_empty_out(inputs["labels"])
        return loss

    def _leave_empty_out(self, labels: Tensor) -> None:
        """Exclude the empty examples that pad a micro-batch from TRL's statistics."""
        empty = (labels == IGNORED).all().long().to(self.args.device)
        count = int(self.accelerator.gather(empty).sum())
        self._total_train_tokens -= _EMPTY * count
        metrics = self._metrics["train"]
        metrics["num_tokens"] = [self._total_train_tokens]
        if count == self.args.world_size:
            for name in ("entropy", "mean_token_accuracy"):
                metrics[name].pop()

    def _init_training_state(self, *args: Any, **options: Any) -> Any:
        state = super()._init_training_state(*args, **options)
        # TRL starts counting from 0 again.
        self._total_train_tokens = int(self._last_row().get("num_tokens", 0))
        return state
