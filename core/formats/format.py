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
    """A loaded backbone with its head.

    The head turns the hidden states of the backbone, or a `mixture` of those of its layers, into three logits.
    `rows` gives the checkpoint's classes in the order neg, neu, pos. `reading` lists whatever else the scores
    depend on besides weights and template.
    """

    backbone: "PreTrainedModel"
    head: nn.Module
    rows: Rows = THREE_WAY
    reading: tuple[object, ...] = ()
    mixture: LayerMixture | None = None


class CheckpointFormat(Protocol):
    """The names that a format's module in this package defines.

    If a template cannot express the format's inputs, the module has its own kind of `Encoder` as `ENCODER`. If the
    module lacks `RecognisableFormat.recognises`, its config is that of an ordinary language model.
    """

    NAME: str
    """The value of `Evaluator.format`, and of `format` in stepsight.json."""

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        """Return the values of a `PromptTemplate` for this format. Raises `UserError`.

        They apply unless stepsight.json overrides them.
        """
        ...

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        """Load the folder. Raises `UserError` that names a part that is missing, misshapen or of another format."""
        ...


class RecognisableFormat(CheckpointFormat, Protocol):
    """A format that can be recognised by its config."""

    def recognises(self, checkpoint: Checkpoint) -> bool:
        """True if the config alone shows that the folder is in this format."""
        ...
