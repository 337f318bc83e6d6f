"""Heads built from a language model's output rows for the two answer tokens, which stand for right and wrong."""

from collections.abc import Mapping
from enum import StrEnum

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepsight.core.errors import UserError
from stepsight.core.formats.format import Loaded
from stepsight.core.models.backbone import backbone_of, beside
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import VALIDITY, linear_head
from stepsight.core.models.placement import Placement

_HEAD, _TIED = "lm_head.weight", "model.embed_tokens.weight"


class Softmax(StrEnum):
    """The tokens over which the probability of the token for right is normalised: the two answer tokens, or the
    whole vocabulary."""

    ANSWERS = "answers"
    VOCABULARY = "vocabulary"


def has_language_head(checkpoint: Checkpoint) -> bool:
    return any(name.endswith("ForCausalLM") for name in checkpoint.architectures)


def check_language_head(checkpoint: Checkpoint, kind: str) -> None:
    """Raise `UserError` unless the config belongs to a language model. The message calls the format `kind`."""
    if not has_language_head(checkpoint):
        raise UserError(
            f"{checkpoint.folder}/config.json: architectures is {checkpoint.config.get('architectures')!r:.60}, "
            f"expected a language model's for {kind}.",
            "Name another format in stepsight.json.",
        )


def head_rows(checkpoint: Checkpoint, rows: list[int]) -> Tensor:
    """Return the rows of the language model's head for the given token ids, or those of the embedding if the two
    are tied. Raises `UserError` if the weights lack these rows."""
    return checkpoint.rows(head_name(checkpoint), rows, _shape(checkpoint))


def head_name(checkpoint: Checkpoint) -> str:
    tied = checkpoint.config.get("tie_word_embeddings", False) and _HEAD not in checkpoint.weights
    return _TIED if tied else _HEAD


def answer_ids(checkpoint: Checkpoint, otherwise: Mapping[str, str | int] | None = None) -> list[int]:
    """Return the ids of the tokens for wrong and right, from stepsight.json or else from `otherwise`.

    Tokens are given as ids, or as texts whose last token is used. Raises `UserError` if neither source names the
    tokens, or if the weights have no row for a token.
    """
    tokens = checkpoint.card.get("tokens", otherwise)
    if not isinstance(tokens, Mapping) or set(tokens) != {"right", "wrong"}:
        raise UserError(
            f"{checkpoint.folder}: the tokens for right and wrong are not known.",
            'Name them in stepsight.json, such as {"tokens": {"right": " +", "wrong": " -"}}.',
        )
    ids = [_token_id(checkpoint, tokens[answer]) for answer in ("wrong", "right")]
    if ids[0] == ids[1]:
        raise UserError(
            f"{checkpoint.folder}: {tokens['right']!r} and {tokens['wrong']!r} are the same token, {ids[0]}.",
            "Name two tokens that differ.",
        )
    return ids


def answer_head(checkpoint: Checkpoint, place: Placement, ids: list[int]) -> Loaded:
    """Load the backbone with a head that gives the probability of the token for right. `ids` holds the tokens for
    wrong and right, in this order."""
    over = softmax_of(checkpoint)
    whole = checkpoint.tensor(head_name(checkpoint), _shape(checkpoint)) if over == Softmax.VOCABULARY else None
    weight = head_rows(checkpoint, ids)
    backbone = backbone_of(checkpoint, place)
    head = linear_head(weight, rows=VALIDITY) if whole is None else VocabularyHead(whole, ids[1])
    reading = () if over == Softmax.ANSWERS else (str(over),)
    return Loaded(backbone, beside(backbone, head, place), VALIDITY, reading)


def softmax_of(checkpoint: Checkpoint) -> Softmax:
    value = checkpoint.card.get("softmax", Softmax.ANSWERS)
    if value not in list(Softmax):
        raise UserError(
            f"{checkpoint.folder}/stepsight.json: softmax is {value!r:.40}.", f"Give one of: {', '.join(Softmax)}."
        )
    return Softmax(value)


class VocabularyHead(nn.Module):
    """A head whose logits have the softmax `(1 - v, 0, v)`, where `v` is one token's probability in the whole
    vocabulary."""

    def __init__(self, weight: Tensor, token: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.token = token

    def forward(self, hidden: Tensor) -> Tensor:
        logits = functional.linear(hidden, self.weight).float()
        right = logits[..., self.token]
        others = logits.clone()
        others[..., self.token] = -torch.inf
        return torch.stack([others.logsumexp(-1), torch.full_like(right, -torch.inf), right], dim=-1)


def _shape(checkpoint: Checkpoint) -> tuple[int, int]:
    return checkpoint.size("vocab_size"), checkpoint.size("hidden_size")


def exact_id(checkpoint: Checkpoint, token: str) -> int:
    """Return the id of a token of exactly this name. Raises `UserError` if there is none, or if the weights have no
    row for it."""
    number = checkpoint.vocabulary.token_id(token)
    return _token_id(checkpoint, -1 if number is None else number, token)


def _token_id(checkpoint: Checkpoint, token: object, name: object = None) -> int:
    number: int | None = None
    if isinstance(token, int) and not isinstance(token, bool):
        number = token
    elif isinstance(token, str) and token:
        (ids,) = checkpoint.vocabulary.encode([token])
        number = ids[-1] if ids else None
    if number is None or not 0 <= number < checkpoint.size("vocab_size"):
        raise UserError(
            f"{checkpoint.folder}: the tokenizer has no token {name or token!r} that the weights know.",
            "Copy the tokenizer that belongs to the checkpoint.",
        )
    return number
