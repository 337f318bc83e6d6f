"""Transformers' token classifiers: step evaluators of two or three classes on any of its backbones.

Decoders as TRL's PRM trainer leaves them, and encoders such as BERT, ModernBERT and EuroBERT. config.json,
abbreviated:

    {"architectures": ["LlamaForTokenClassification"], "model_type": "llama", "hidden_size": 2048, …}
    {"architectures": ["BertForTokenClassification"], "model_type": "bert", "max_position_embeddings": 512,
     "id2label": {"0": "wrong", "1": "right"}, "label2id": {"wrong": 0, "right": 1}, …}
    {"architectures": ["ModernBertForTokenClassification"], "model_type": "modernbert", "local_attention": 128, …}

Tensors: the backbone's below `model.` or `bert.`, then `score.weight` and `score.bias` (Llama, Mistral, Qwen) or
`classifier.weight` and `classifier.bias` (encoders; ModernBERT has `head.dense.weight` and `head.norm.weight` too).

The input is TRL's: the token that begins an input, if the tokenizer has one, the problem, and each step with a line
break after it, all turned into tokens by themselves; a step is read at the last token of its line break.
Whether a backbone sees later tokens is tried out, not taken from its config.
"""

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoModelForTokenClassification, PreTrainedModel

from stepsight.core.errors import UserError
from stepsight.core.formats.classes import class_rows, class_words
from stepsight.core.formats.format import Loaded
from stepsight.core.models.backbone import load_weights, looks_ahead, main_device, read_config
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.devices import torch_dtype
from stepsight.core.models.location import CARD
from stepsight.core.models.model import Rows, StepModel, linear_head
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.template import Separator

NAME = "token-classification"


def recognises(checkpoint: Checkpoint) -> bool:
    return any(name.endswith("ForTokenClassification") for name in checkpoint.architectures)


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    return {
        "prompt": "{problem}",
        "separator": "\n",
        "separator_is": Separator.TEXT,
        "bos": checkpoint.special_token("bos_token"),
        "opening": False,
    }


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    if not recognises(checkpoint):
        raise UserError(
            f"{checkpoint.folder}/config.json: architectures is {checkpoint.config.get('architectures')!r:.60}, "
            "expected one for token classification.",
            f"Name another format in {CARD}.",
        )
    try:
        words = class_words(checkpoint.config)
        rows = class_rows(_labels(checkpoint.card, words))
    except UserError as error:
        raise error.at(str(checkpoint.folder)) from None
    model = _model(checkpoint, place, len(words))
    backbone = cast(PreTrainedModel, model.base_model)
    loaded = Loaded(backbone, _head(checkpoint, model, rows, place), rows)
    _check_attention(checkpoint, backbone)
    _check_head(checkpoint, model, loaded)
    return loaded


def _labels(card: Mapping[str, Any], words: list[str]) -> list[Any]:
    """The words of stepsight.json for the classes, else those of the config."""
    labels = card.get("labels", words)
    if not isinstance(labels, list) or len(labels) != len(words):
        raise UserError(f"{CARD}: labels is {labels!r:.60}, expected a list of one word for each of {words}.")
    return labels


def _model(checkpoint: Checkpoint, place: Placement, classes: int) -> PreTrainedModel:
    config = read_config(checkpoint.folder, checkpoint.config, checkpoint.card.get("attention"))
    config.num_labels = classes
    try:
        model = load_weights(AutoModelForTokenClassification, checkpoint.folder, config, place)
    except ValueError as error:
        message = " ".join(str(error).split())
        raise UserError(f"{checkpoint.folder}: {message:.200}", "Choose another backbone.") from None
    return cast(PreTrainedModel, model.train(False))


def _head(checkpoint: Checkpoint, model: PreTrainedModel, rows: Rows, place: Placement) -> nn.Module:
    """The layers after the model's backbone, with the rows of the last as neg, neu and pos."""
    parts = [
        (name, part)
        for name, part in model.named_children()
        if part is not model.base_model and not isinstance(part, nn.Dropout)
    ]
    name, last = parts[-1] if parts else ("", None)
    if model.base_model is model or not isinstance(last, nn.Linear):
        raise _not_taken_apart(checkpoint)
    # From the file: where Accelerate keeps weights out of memory, the layer has none.
    weight = checkpoint.tensor(f"{name}.weight", (last.out_features, last.in_features))
    bias = None if last.bias is None else checkpoint.tensor(f"{name}.bias", (last.out_features,))
    device = last.weight.device if last.weight.device.type != "meta" else main_device(model)
    head = linear_head(weight, bias, rows).to(device, torch_dtype(place.dtype))
    before = [part for _, part in parts[:-1]]
    return nn.Sequential(*before, head) if before else head


def _check_attention(checkpoint: Checkpoint, backbone: PreTrainedModel) -> None:
    """Set the mask that the backbone has in its config. Raises `UserError` where stepsight.json asks for
    another."""
    attention = checkpoint.card.get("attention")
    try:
        causal = not looks_ahead(backbone)
    except UserError as error:
        raise error.at(str(checkpoint.folder)) from None
    if attention is not None and (attention == "causal") != causal:
        kind = backbone.config.model_type
        raise UserError(f"{checkpoint.folder}: a backbone of type {kind!r} cannot be {attention}, as {CARD} says.")
    backbone.config.is_causal = causal


@torch.inference_mode()
def _check_head(checkpoint: Checkpoint, model: PreTrainedModel, loaded: Loaded) -> None:
    """Raises `UserError` where backbone and head together do not compute what the model does."""
    ids = torch.arange(1, 9, device=main_device(model))[None] % int(model.config.vocab_size)
    mask, ends = torch.ones_like(ids), torch.tensor([[2, 7]], device=ids.device)
    theirs: Tensor = model(input_ids=ids, attention_mask=mask).logits[0, [2, 7]].float().cpu()
    ours: Tensor = StepModel(loaded.backbone, loaded.head)(ids, mask, ends)["logits"][0].float().cpu()
    within = 1e-4 if model.dtype == torch.float32 else 5e-2
    for label, row in enumerate(loaded.rows):
        if row is not None and not torch.allclose(ours[:, label], theirs[:, row], rtol=within, atol=within):
            raise _not_taken_apart(checkpoint)


def _not_taken_apart(checkpoint: Checkpoint) -> UserError:
    return UserError(
        f"{checkpoint.folder}: the head of {', '.join(checkpoint.architectures)} is not layers one after the other "
        "that end in a linear one.",
        "Choose another backbone.",
    )
