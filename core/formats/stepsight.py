r"""StepSight's own format: any backbone, including LLaDA's, with an added score head and a stepsight.json.

config.json is the backbone's. The tensors are the backbone's, under the prefix of its class (`model.*`, `bert.*`,
`transformer.*`), and `score.weight` of shape (3, hidden). stepsight.json, abbreviated:

    {"format": "stepsight", "version": 1, "attention": "bidirectional",
     "template": {"prompt": "Question:\n{problem}\n…", "separator": "<step>", "bos": null},
     "thresholds": {"validity": 0.5, "redundancy": 0.15}, "provenance": {…}}
"""

from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.formats.format import Loaded
from stepsight.core.hubs.checkpoint_files import CARD
from stepsight.core.models import llada
from stepsight.core.models.backbone import backbone_of, beside
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import linear_head
from stepsight.core.models.placement import Placement
from stepsight.core.trace import Label

NAME = "stepsight"

HEADS = ("score.weight", "score_head.weight", "model.score.weight")
"""Tensor names of a score head."""
_LAST = {"layers": "last"}


def recognises(checkpoint: Checkpoint) -> bool:
    return llada.recognises(checkpoint.config)


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    if "template" not in checkpoint.card:
        raise UserError(
            f"{checkpoint.folder}: no prompt template; this is a backbone, not an evaluator.",
            f"Train a score head with stepsight train, or write {CARD} with its template.",
        )
    head = checkpoint.card.get("head", _LAST)
    if head != _LAST:
        raise UserError(
            f"{checkpoint.folder}/{CARD}: head is {head!r:.40}, and heads on a chosen or a mixed layer are gone.",
            "Train a head on the last layer with stepsight train.",
        )
    return {}


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    backbone = backbone_of(checkpoint, place)
    name = next((name for name in HEADS if name in checkpoint.weights), None)
    if name is None:
        raise UserError(
            f"{checkpoint.folder}: there is no score head ({HEADS[0]}).", "Train one with stepsight train."
        )
    expected = (len(Label), int(backbone.config.hidden_size))
    if checkpoint.shape(name) != expected:
        raise UserError(
            f"{checkpoint.folder}: the score head has shape {checkpoint.shape(name)}, expected {expected}."
        )
    biased = name.replace(".weight", ".bias")
    bias = checkpoint.weights.read(biased) if biased in checkpoint.weights else None
    return Loaded(backbone, beside(backbone, linear_head(checkpoint.weights.read(name), bias), place))
