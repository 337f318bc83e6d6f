"""The protocol of a checkpoint format, which recognises a folder, gives its prompt template and loads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from torch import nn

from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import THREE_WAY, Rows
from stepsight.core.models.placement import Placement

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, eq=False)
class Loaded:
    """A loaded backbone and its head.

    The head turns the hidden states of the backbone's last layer into three logits.
    `rows` gives the index of the checkpoint's class for each of neg, neu and pos, or None. `reading` lists
    everything else that the scores depend on, apart from weights and template.
    """

    backbone: "PreTrainedModel"
    head: nn.Module
    rows: Rows = THREE_WAY
    reading: tuple[object, ...] = ()


class CheckpointFormat(Protocol):
    """The names that the module of a format must define.

    If a prompt template cannot express the format's inputs, the module also defines its own kind of `Encoder` as
    `ENCODER`. A module defines `RecognisableFormat.recognises` only if its config can be told from that of an
    ordinary language model.
    """

    NAME: str
    """The value of `Evaluator.format`, and of `format` in stepsight.json."""

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        """Return the arguments of a `PromptTemplate` for this format. stepsight.json may override them. Raises
        `UserError` if the checkpoint lacks what they are derived from."""
        ...

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        """Load the checkpoint. Raises `UserError`, with a message that names the part, if a part is missing,
        misshapen or in a different format."""
        ...


class RecognisableFormat(CheckpointFormat, Protocol):
    """A format that can be recognised from the config alone."""

    def recognises(self, checkpoint: Checkpoint) -> bool:
        """True if the config alone shows that the folder is in this format."""
        ...
