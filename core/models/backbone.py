"""Loading the backbone of a checkpoint, the network that computes hidden states."""

from typing import TYPE_CHECKING, TypeVar, cast

import torch
from torch import nn

from stepsight.core.errors import UserError
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.decoder import Decoder, read_decoder
from stepsight.core.models.devices import torch_dtype
from stepsight.core.models.placement import Placement

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Part = TypeVar("Part", bound=nn.Module)


def backbone_of(checkpoint: Checkpoint, place: Placement) -> "PreTrainedModel":
    """Load the backbone of a checkpoint, with the attention mask named in its stepsight.json.

    The backbone is a `Decoder` if possible, and otherwise the network that Transformers loads. Raises `UserError`
    if `core.models.pretrained.load_backbone` does.
    """
    decoder = decoder_of(checkpoint, place)
    if decoder is not None:
        return cast("PreTrainedModel", decoder)
    # It brings Transformers.
    from stepsight.core.models.pretrained import load_backbone

    return load_backbone(checkpoint, place, checkpoint.card.get("attention"))


def decoder_of(checkpoint: Checkpoint, place: Placement) -> Decoder | None:
    """Load the backbone as a `Decoder`, with memory-mapped weights.

    Returns None if the network or the device needs Transformers, or if the checkpoint has a fault (Transformers
    then reports the fault).
    """
    if not place.on_processor:
        return None
    return read_decoder(checkpoint, torch_dtype(place.dtype), checkpoint.card.get("attention"))


def main_device(model: nn.Module, otherwise: torch.device | None = None) -> torch.device:
    """Return the device on which a model expects its inputs. It is the device of the first weights in memory, or
    `otherwise` if none are in memory."""
    devices = (parameter.device for parameter in model.parameters() if parameter.device.type != "meta")
    return next(devices, otherwise or torch.device("cpu"))


def beside(model: nn.Module, part: Part, place: Placement) -> Part:
    """Move a part, such as a score head, to the device of a model's weights, convert it to the data type of
    `place`, and return it."""
    return part.to(main_device(model), torch_dtype(place.dtype))


def context_of(backbone: "PreTrainedModel") -> int | None:
    """Return the maximum input length in tokens, or None if the config sets no limit."""
    limit = getattr(backbone.config, "max_position_embeddings", None)
    if not isinstance(limit, int):
        return None
    tables = (part for name, part in backbone.named_modules() if name.endswith("position_embeddings"))
    skipped = [part.padding_idx for part in tables if isinstance(part, nn.Embedding)]
    # RoBERTa's positions begin after that of padding.
    return limit - skipped[0] - 1 if skipped and skipped[0] is not None else limit


@torch.inference_mode()
def looks_ahead(backbone: "PreTrainedModel") -> bool:
    """True if changing the last token changes any earlier hidden state.

    This is tested by running the backbone, since configs do not always say so. Raises `UserError` if the result
    depends on padding, because some encoders respect `is_causal` only in a batch without padding.
    """
    training = backbone.training
    backbone.train(False)
    ids = torch.tensor([[5, 6, 7, 8], [5, 6, 7, 9], [5, 6, 7, 8]], device=main_device(backbone))
    ids %= int(backbone.config.vocab_size)
    mask = torch.ones_like(ids)
    padded = mask.clone()
    padded[2, 2:] = 0
    results = set()
    for rows, attention_mask in ((2, mask), (3, padded)):
        hidden = backbone(input_ids=ids[:rows], attention_mask=attention_mask[:rows])[0][:2, :-1].float()
        results.add(not torch.allclose(hidden[0], hidden[1], rtol=1e-6, atol=0))
    backbone.train(training)
    if len(results) > 1:
        kind = backbone.config.model_type
        raise UserError(f"a backbone of type {kind!r} cannot have the mask that was asked for.", "Leave it out.")
    return results.pop()
