"""How a run learns: the keys that a training run and a fine-tuning run share."""

from typing import Literal, Protocol

from stepsight.core.validation import invalid

Precision = Literal["float16", "bfloat16", "float32"]


class Optimisation(Protocol):
    """The keys that say how a run learns, as `TrainConfig` and the recipe of a fine-tuning run have them."""

    @property
    def accumulation(self) -> int: ...
    @property
    def epochs(self) -> int: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def betas(self) -> tuple[float, float]: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def warmup_steps(self) -> int: ...
    @property
    def clip(self) -> float: ...
    @property
    def bf16(self) -> bool: ...
    @property
    def seed(self) -> int: ...
    @property
    def save_steps(self) -> int: ...
    @property
    def activation_checkpointing(self) -> bool: ...
    @property
    def fsdp(self) -> bool: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def saved_dtype(self) -> Precision: ...


def check_batches(settings: Optimisation, counted: str) -> None:
    """For validators: a batch, of what is `counted`, can be divided into its parts."""
    if settings.batch_size % settings.accumulation:
        raise invalid(
            f"batch_size {settings.batch_size} is no multiple of accumulation {settings.accumulation}.",
            f"batch_size counts the {counted} of a whole optimiser step.",
        )
