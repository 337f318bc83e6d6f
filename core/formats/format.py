"""The base class of checkpoint formats, and what several of them load: a head beside a backbone, and the rows of a
language model's head.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from stepsight.core.errors import UserError
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import THREE_WAY, ClassOrder, backbone_of, to_device_of
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.encoding import Encoder

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_HEAD = "lm_head.weight"


@dataclass(frozen=True, eq=False)
class Loaded:
    """A loaded backbone and its head.

    The head turns the hidden states of the backbone's last layer into three logits. `order` gives the index of the
    checkpoint's class for each of neg, neu and pos, or None.
    """

    backbone: "PreTrainedModel"
    head: nn.Module
    order: ClassOrder = THREE_WAY


class CheckpointFormat(ABC):
    """A layout of checkpoints. The docstring of each shows its genuine config.json, and says how it is read.

    `name` is the value of `Evaluator.format`, and of `format` in stepsight.json. `order` gives the index of the
    head's class for each of neg, neu and pos, or None. `encoder` is another kind of encoder if a prompt template
    cannot express the format's inputs. `is_served` is True if a vLLM server gives what the format reads: the
    classes of each token, or the probabilities of two answer tokens.
    """

    name: ClassVar[str]
    order: ClassVar[ClassOrder] = THREE_WAY
    encoder: ClassVar[type[Encoder]] = Encoder
    is_served: ClassVar[bool] = False

    def recognises(self, checkpoint: Checkpoint) -> bool:
        """True if the config alone shows that the folder is in this format. If it cannot be distinguished from that
        of an ordinary language model, the format is known by a repository's name, or named in stepsight.json."""
        return False

    @abstractmethod
    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        """Return the arguments of a `PromptTemplate` for this format. stepsight.json may override them. Raises
        `UserError` if the checkpoint lacks what they are derived from."""

    @abstractmethod
    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        """Load the checkpoint. Raises `UserError`, with a message that names the part, if a part is missing,
        misshapen or in a different format."""

    def classes(self, checkpoint: Checkpoint) -> tuple[int, ClassOrder]:
        """Return the number of classes of a head, and their order. Raises `UserError` if the checkpoint does not
        show which class is which."""
        return len(self.order) - self.order.count(None), self.order

    def identity(self, checkpoint: Checkpoint) -> tuple[object, ...]:
        """Return what the scores depend on besides weights, mask and template. This is part of the fingerprint, and
        known without loading the checkpoint."""
        return (self.name, self.classes(checkpoint)[1])


def load_beside(checkpoint: Checkpoint, place: Placement, head: nn.Module, order: ClassOrder = THREE_WAY) -> Loaded:
    """Load the backbone of a checkpoint and put `head` beside it."""
    backbone = backbone_of(checkpoint, place)
    return Loaded(backbone, to_device_of(backbone, head, place), order)


def other_architecture(checkpoint: Checkpoint, expected: str) -> UserError:
    """Return the error for a config of another family, which names the architecture that is `expected`."""
    return UserError(
        f"{checkpoint.folder}/config.json: architectures is {checkpoint.config.get('architectures')!r:.60}, "
        f"expected {expected}.",
        "Name another format in stepsight.json.",
    )


def check_language_head(checkpoint: Checkpoint, kind: str) -> None:
    """Raise `UserError` unless the config belongs to a language model. The message calls the format `kind`."""
    if not any(name.endswith("ForCausalLM") for name in checkpoint.architectures):
        raise other_architecture(checkpoint, f"a language model's for {kind}")


def head_name(checkpoint: Checkpoint) -> str:
    """Return the name of the language model's head, or of the embedding if the two are tied."""
    tied = checkpoint.config.get("tie_word_embeddings", False) and _HEAD not in checkpoint.weights
    return checkpoint.weights.embedding or _HEAD if tied else _HEAD


def head_rows(checkpoint: Checkpoint, rows: list[int] | None = None) -> Tensor:
    """Return the rows of the language model's head for the given token ids, or all of them. Raises `UserError` if
    the weights lack them."""
    name, shape = head_name(checkpoint), (checkpoint.size("vocab_size"), checkpoint.size("hidden_size"))
    return checkpoint.tensor(name, shape) if rows is None else checkpoint.rows(name, rows, shape)
