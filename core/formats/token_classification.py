"""Transformers' token classifiers: step evaluators with one, two or three classes, on any backbone in Transformers.

These are decoders as produced by TRL's PRM trainer, and encoders such as BERT, ModernBERT and EuroBERT.
config.json, abbreviated:

    {"architectures": ["LlamaForTokenClassification"], "model_type": "llama", "hidden_size": 2048, …}
    {"architectures": ["BertForTokenClassification"], "model_type": "bert", "max_position_embeddings": 512,
     "id2label": {"0": "wrong", "1": "right"}, "label2id": {"wrong": 0, "right": 1}, …}
    {"architectures": ["ModernBertForTokenClassification"], "model_type": "modernbert", "local_attention": 128, …}

Tensors: the backbone's under `model.` or `bert.`, then `score.weight` and `score.bias` (Llama, Mistral, Qwen) or
`classifier.weight` and `classifier.bias` (encoders; ModernBERT also has `head.dense.weight` and
`head.norm.weight`).

A single class, as in MATH-Minos, is a logit whose sigmoid is the probability that the step is valid.

The input is the same as in TRL: the begin-of-sequence token, if the tokenizer has one, then the problem, and then
each step followed by the separator. All of these are tokenized separately. A step is read at the last token of its
separator. TRL's default is a line break, but no file says which separator a model was trained with, so
stepsight.json or `core.hubs.public` has to name it (`recognition.read_card_of` asks for it). Classes that are
only numbered, such as LABEL_0 and LABEL_1, are those of TRL, in which 1 is right. Whether a backbone sees later
tokens is tested, not taken from its config.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from stepsight.core.errors import UserError, located
from stepsight.core.formats.format import CheckpointFormat, Loaded, other_architecture
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import (
    SIGMOID,
    ClassOrder,
    StepModel,
    decoder_of,
    linear_head,
    looks_ahead,
    main_device,
    to_device_of,
)
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.template import Separator
from stepsight.core.trace import Label

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_WORDS = {
    Label.NEG: ("neg", "negative", "wrong", "incorrect", "bad", "invalid", "error", "false", "no", "-"),
    Label.NEU: ("neu", "neutral", "redundant", "ok", "okay"),
    Label.POS: ("pos", "positive", "right", "correct", "good", "valid", "true", "yes", "+"),
}
_MEANING = {word: label for label, words in _WORDS.items() for word in words}
# A number has a meaning only in relation to the others: 0 is wrong beside 1, and neutral between -1 and 1.
_SCALES: dict[frozenset[int], dict[int, Label]] = {
    frozenset(scale): scale
    for scale in (
        {0: Label.NEG, 1: Label.POS},
        {-1: Label.NEG, 1: Label.POS},
        {-1: Label.NEG, 0: Label.NEU, 1: Label.POS},
        {0: Label.NEG, 1: Label.NEU, 2: Label.POS},
    )
}
_HINT = 'Say in stepsight.json what each class is, in their order, such as {"labels": ["neg", "pos"]}.'


class TokenClassification(CheckpointFormat):
    """Token classifiers of Transformers, as the module describes them."""

    name, is_served = "token-classification", True

    def recognises(self, checkpoint: Checkpoint) -> bool:
        return any(name.endswith("ForTokenClassification") for name in checkpoint.architectures)

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        return {
            "prompt": "{problem}",
            "separator": "\n",
            "separator_is": Separator.TEXT,
            "bos": checkpoint.special_token("bos_token"),
            "opening": False,
        }

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        if not self.recognises(checkpoint):
            raise other_architecture(checkpoint, "one for token classification")
        count, order = self.classes(checkpoint)
        head = _plain_head(checkpoint, order, count)
        decoder = decoder_of(checkpoint, place) if head is not None else None
        if head is not None and decoder is not None:
            return Loaded(cast("PreTrainedModel", decoder), to_device_of(decoder, head, place), order)
        model = _model(checkpoint, place, count)
        backbone = cast("PreTrainedModel", model.base_model)
        loaded = Loaded(backbone, _head(checkpoint, model, order, place), order)
        _check_attention(checkpoint, backbone)
        _check_head(checkpoint, model, loaded)
        return loaded

    def classes(self, checkpoint: Checkpoint) -> tuple[int, ClassOrder]:
        with located(str(checkpoint.folder)):
            words = class_words(checkpoint.config)
            return len(words), class_order(_class_names(checkpoint.card, words))


def _plain_head(checkpoint: Checkpoint, order: ClassOrder, classes: int) -> nn.Linear | None:
    """Return the head of a checkpoint if it is the single linear layer of Transformers' decoders, or None if it is
    different."""
    shape = (classes, checkpoint.size("hidden_size"))
    if checkpoint.shape("score.weight") != shape or checkpoint.shape("score.bias") != shape[:1]:
        return None
    return linear_head(checkpoint.tensor("score.weight", shape), checkpoint.tensor("score.bias", shape[:1]), order)


def _class_names(card: Mapping[str, Any], words: list[str]) -> list[Any]:
    """Return the names of the classes, from stepsight.json or else from the config. Raises `UserError` if
    stepsight.json names more or fewer classes than the config."""
    labels = card.get("labels", words)
    if not isinstance(labels, list) or len(labels) != len(words):
        raise UserError(
            f"stepsight.json: labels is {labels!r:.60}, expected a list with one word for each of {words}."
        )
    return labels


def _model(checkpoint: Checkpoint, place: Placement, classes: int) -> "PreTrainedModel":
    # This import loads Transformers.
    from stepsight.core.models.pretrained import load_weights, read_config

    config = read_config(checkpoint, checkpoint.card.get("attention"))
    config.num_labels = classes
    try:
        model = load_weights("AutoModelForTokenClassification", checkpoint, config, place)
    except ValueError as error:
        message = " ".join(str(error).split())
        raise UserError(f"{checkpoint.folder}: {message:.200}", "Choose another backbone.") from None
    return cast("PreTrainedModel", model.train(False))


def _head(checkpoint: Checkpoint, model: "PreTrainedModel", order: ClassOrder, place: Placement) -> nn.Module:
    """Return the layers of the model that follow its backbone, with the outputs of the last layer in the order neg,
    neu, pos."""
    parts = [
        (name, part)
        for name, part in model.named_children()
        if part is not model.base_model and not isinstance(part, nn.Dropout)
    ]
    name, last = parts[-1] if parts else ("", None)
    if model.base_model is model or not isinstance(last, nn.Linear):
        raise _unsplittable_head_error(checkpoint)
    # Read from the file, since Accelerate may keep the layer's weights out of memory.
    weight = checkpoint.tensor(f"{name}.weight", (last.out_features, last.in_features))
    bias = None if last.bias is None else checkpoint.tensor(f"{name}.bias", (last.out_features,))
    head = to_device_of(model if last.weight.is_meta else last, linear_head(weight, bias, order), place)
    before = [part for _, part in parts[:-1]]
    return nn.Sequential(*before, head) if before else head


def _check_attention(checkpoint: Checkpoint, backbone: "PreTrainedModel") -> None:
    """Test whether the backbone is causal, and record the result in its config. Raises `UserError` if
    stepsight.json contradicts the result."""
    attention = checkpoint.card.get("attention")
    with located(str(checkpoint.folder)):
        causal = not looks_ahead(backbone)
    if attention is not None and (attention == "causal") != causal:
        kind = backbone.config.model_type
        raise UserError(
            f"{checkpoint.folder}: a backbone of type {kind!r} cannot be {attention}, as stepsight.json says."
        )
    backbone.config.is_causal = causal


@torch.inference_mode()
def _check_head(checkpoint: Checkpoint, model: "PreTrainedModel", loaded: Loaded) -> None:
    """Raise `UserError` if the separated backbone and head do not reproduce the logits of the model."""
    ids = torch.arange(1, 9, device=main_device(model))[None] % int(model.config.vocab_size)
    mask, ends = torch.ones_like(ids), torch.tensor([[2, 7]], device=ids.device)
    original: Tensor = model(input_ids=ids, attention_mask=mask).logits[0, [2, 7]].float().cpu()
    separated: Tensor = StepModel(loaded.backbone, loaded.head)(ids, mask, ends)[0].float().cpu()
    tolerance = 1e-4 if model.dtype == torch.float32 else 5e-2
    if loaded.order == SIGMOID:
        separated = separated - separated[:, [Label.NEG]]
    for label, row in enumerate(loaded.order):
        if row is not None and not torch.allclose(
            separated[:, label], original[:, row], rtol=tolerance, atol=tolerance
        ):
            raise _unsplittable_head_error(checkpoint)


def _unsplittable_head_error(checkpoint: Checkpoint) -> UserError:
    return UserError(
        f"{checkpoint.folder}: the head of {', '.join(checkpoint.architectures)} is not a sequence of layers that "
        "ends in a linear one.",
        "Choose another backbone.",
    )


def class_words(config: Mapping[str, Any]) -> list[str]:
    """Return the names of the classes in a config.json, in order of their numbers.

    The names are taken from `id2label` or else from `label2id`; if there is neither, they are LABEL_0, LABEL_1, and
    so on. Raises `UserError` if the classes are not numbered from 0.
    """
    names, numbers = config.get("id2label"), config.get("label2id")
    try:
        if isinstance(names, dict):
            words = {int(number): str(word) for number, word in names.items()}
        elif isinstance(numbers, dict):
            words = {int(number): str(word) for word, number in numbers.items()}
        else:
            # The default in Transformers.
            words = {number: f"LABEL_{number}" for number in range(min(int(config.get("num_labels", 2)), 100))}
    except (TypeError, ValueError):
        words = {}
    if not words or sorted(words) != list(range(len(words))):
        raise UserError("config.json: id2label does not number its classes from 0.", "Copy it again.")
    return [words[number] for number in range(len(words))]


def class_order(words: Sequence[object]) -> ClassOrder:
    """Return the index of the class for each of neg, neu and pos. The index for neu is None if there are only two
    classes.

    `words` holds one name per class, such as LABEL_0, neg, wrong, 0, - or good. A single class means right,
    whatever its name; the result is then `SIGMOID`. Raises `UserError` if the names do not show which class is
    which, or if there are more than three.
    """
    listed = ", ".join(repr(word) for word in words)
    if len(words) not in (1, 2, 3):
        raise UserError(f"there are {len(words)} classes ({listed:.200}), expected one, two or three.")
    if len(words) == 1:
        return SIGMOID
    labels = _labels_of([str(word).strip().casefold().removeprefix("label_") for word in words])
    expected = {Label.NEG, Label.POS} if len(words) == 2 else set(Label)
    if set(labels) != expected:
        raise UserError(f"it is not clear which class is which: {listed:.200}.", _HINT)
    order = {label: number for number, label in enumerate(labels)}
    return order[Label.NEG], order.get(Label.NEU), order[Label.POS]


def _labels_of(words: Sequence[str]) -> list[Label | None]:
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        return [_MEANING.get(word) for word in words]
    scale = _SCALES.get(frozenset(numbers), {})
    return [scale.get(number) for number in numbers]
