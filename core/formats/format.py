"""The protocol of a checkpoint format: recognising a folder, its prompt template, and loading it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from torch import nn

from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import THREE_WAY, LayerMixture, Rows
from stepsight.core.models.placement import Placement

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, eq=False)
class Loaded:
    """A backbone with the head that turns its hidden states, or a `mixture` of its layers', into three logits.

    `rows` are the checkpoint's classes in the order neg, neu, pos. `reading` names whatever else the scores depend
    on besides weights and template.
    """

    backbone: "PreTrainedModel"
    head: nn.Module
    rows: Rows = THREE_WAY
    reading: tuple[object, ...] = ()
    mixture: LayerMixture | None = None


class CheckpointFormat(Protocol):
    """A module of this package. If a template cannot express its inputs, it has its own kind of `Encoder` as
    `ENCODER`. Without `RecognisableFormat.recognises`, its config is that of an ordinary language model."""

    NAME: str
    """The value of `Evaluator.format`, and of `format` in stepsight.json."""

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        """The values of a `PromptTemplate` that apply unless stepsight.json overrides them. Raises `UserError`."""
        ...

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        """Load the folder. Raises `UserError` naming a part that is missing, misshapen or of another format."""
        ...


class RecognisableFormat(CheckpointFormat, Protocol):
    """A format that a config can show."""

    def recognises(self, checkpoint: Checkpoint) -> bool:
        """True if the config alone shows that the folder is in this format."""
        ...
