"""The optimiser settings that training and fine-tuning configurations share."""

from dataclasses import KW_ONLY
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Strict, model_validator
from pydantic.dataclasses import dataclass

from stepsight.core.validation import STRICT, Record, invalid

Precision = Literal["float16", "bfloat16", "float32"]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Beta = Annotated[float, Field(ge=0, lt=1)]
Betas = Annotated[tuple[Beta, Beta], Strict(False)]


@dataclass(frozen=True, config=STRICT)
class Optimisation(Record):
    """The settings of AdamW with a cosine schedule, and of how an optimiser step is computed.

    `batch_size` counts traces or rows over all processes. `accumulation` and `activation_checkpointing` do not
    affect what is learnt.
    """

    _: KW_ONLY
    epochs: PositiveInt = 1
    batch_size: PositiveInt = 32
    learning_rate: PositiveFloat = 1e-3
    betas: Betas = (0.9, 0.95)
    weight_decay: NonNegativeFloat = 0.1
    warmup_steps: NonNegativeInt = 100
    clip: PositiveFloat = 1.0
    seed: Seed = 13
    accumulation: PositiveInt = 1
    activation_checkpointing: bool = False
    fsdp: bool = False
    bf16: bool = False
    saved_dtype: Precision = "float16"
    save_steps: PositiveInt = 200

    @model_validator(mode="after")
    def _check_batches(self) -> "Optimisation":
        if self.batch_size % self.accumulation:
            raise invalid(
                f"batch_size {self.batch_size} is not a multiple of accumulation {self.accumulation}.",
                "batch_size is that of a whole optimiser step.",
            )
        return self
