r"""StepSight's own format: any backbone, including LLaDA's, with an added score head and a stepsight.json.

config.json is the backbone's. The tensors are the backbone's, under the prefix of its class (`model.*`, `bert.*`,
`transformer.*`), and `score.weight` of shape (3, hidden). stepsight.json, abbreviated:

    {"format": "stepsight", "version": 1, "attention": "bidirectional", "head": {"layers": "last"},
     "template": {"prompt": "Question:\n{problem}\n…", "separator": "<step>", "bos": null},
     "thresholds": {"validity": 0.5, "redundancy": 0.15}, "provenance": {…}}

If the head reads layer 12, `head` is `{"layers": 12}`. The backbone is then run only up to that layer, but the norm
that follows its last layer is still applied. With `{"layers": "mixture"}` there is also `mixture.weight` of shape
(layers).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from torch import nn

from stepsight.core.errors import UserError
from stepsight.core.formats.format import Loaded
from stepsight.core.hubs.checkpoint_files import CARD
from stepsight.core.label import Label
from stepsight.core.models import llada
from stepsight.core.models.backbone import backbone_of, beside
from stepsight.core.models.checkpoint import Checkpoint, read_tensor
from stepsight.core.models.model import LAST, MIXTURE, LayerMixture, Layers, linear_head
from stepsight.core.models.placement import Placement

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAME = "stepsight"

HEADS = ("score.weight", "score_head.weight", "model.score.weight")
"""Tensor names of a score head."""
_MIXTURE = "mixture.weight"


def recognises(checkpoint: Checkpoint) -> bool:
    return llada.recognises(checkpoint.config)


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    if "template" not in checkpoint.card:
        raise UserError(
            f"{checkpoint.folder}: no prompt template; this is a backbone, not an evaluator.",
            f"Train a score head with stepsight train, or write {CARD} with its template.",
        )
    return {}


def read_layers(checkpoint: Checkpoint) -> Layers:
    """Return the layers that the head reads, as given in stepsight.json. Raises `UserError` if the value is
    invalid."""
    head = checkpoint.card.get("head", {})
    layers = head.get("layers", LAST) if isinstance(head, dict) else head
    if layers in (LAST, MIXTURE) or (isinstance(layers, int) and not isinstance(layers, bool) and layers > 0):
        return cast(Layers, layers)
    raise UserError(
        f"{checkpoint.folder}/{CARD}: head is {head!r:.40}.",
        f'Give {{"layers": "{LAST}"}}, {{"layers": "{MIXTURE}"}} or the number of a layer.',
    )


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    layers = read_layers(checkpoint)
    depth = layers if isinstance(layers, int) else None
    backbone = backbone_of(checkpoint, place, depth, all_states=layers == MIXTURE)
    name = next((name for name in HEADS if name in checkpoint.files), None)
    if name is None:
        raise UserError(
            f"{checkpoint.folder}: there is no score head ({HEADS[0]}).", "Train one with stepsight train."
        )
    weight = read_tensor(checkpoint.files, [name])
    bias = read_tensor(checkpoint.files, [name.replace(".weight", ".bias")])
    assert weight is not None
    expected = (len(Label), int(backbone.config.hidden_size))
    if tuple(weight.shape) != expected:
        raise UserError(
            f"{checkpoint.folder}: the score head has shape {tuple(weight.shape)}, expected {expected}."
        )
    return Loaded(
        backbone,
        beside(backbone, linear_head(weight, bias), place),
        reading=() if layers == LAST else (layers,),
        mixture=beside(backbone, _mixture(checkpoint, backbone), place) if layers == MIXTURE else None,
    )


def _mixture(checkpoint: Checkpoint, backbone: "PreTrainedModel") -> LayerMixture:
    mixture = LayerMixture(int(backbone.config.num_hidden_layers))
    mixture.weight = nn.Parameter(checkpoint.tensor(_MIXTURE, tuple(mixture.weight.shape)))
    return mixture
