"""The protocol of a checkpoint format: recognising a folder in it, its prompt template, and loading it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from torch import nn

from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import THREE_WAY, Mixture, Rows
from stepsight.core.models.placement import Placement

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, eq=False)
class Loaded:
    """A backbone with the head that makes three logits of its hidden states, or of a `mixture` of its layers'.

    `rows` are the checkpoint's classes that they stand for, `reading` what else the scores depend on and neither
    weights nor template tell.
    """

    backbone: "PreTrainedModel"
    head: nn.Module
    rows: Rows = THREE_WAY
    reading: tuple[object, ...] = ()
    mixture: Mixture | None = None


class CheckpointFormat(Protocol):
    """A module of this package. One whose inputs are more than a template can say has a kind of `Encoder` of
    its own, as `ENCODER`."""

    NAME: str
    """The value of `Evaluator.format`, and of `format` in stepsight.json."""

    def recognises(self, checkpoint: Checkpoint) -> bool:
        """Whether the folder is in this format, by its config alone."""
        ...

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        """The values of a `PromptTemplate` that hold where stepsight.json names no others. Raises `UserError`."""
        ...

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        """Raises `UserError` naming what is missing, misshapen or of another format."""
        ...
