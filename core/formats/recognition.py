"""The checkpoint formats there are, and which of them a folder is in."""

from collections.abc import Mapping
from typing import Any, cast

from stepsight.core.errors import UserError
from stepsight.core.formats import (
    chat_two_token,
    ensemble_prm,
    llemma_prm,
    log_ratio,
    masked_tokens,
    math_shepherd,
    prefix_value,
    qwen_prm,
    reasoneval,
    stepsight,
    token_classification,
    two_token,
    value_head,
)
from stepsight.core.formats.format import CheckpointFormat
from stepsight.core.models import llada
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.location import CARD

FORMATS = cast(
    tuple[CheckpointFormat, ...],
    (
        reasoneval,
        math_shepherd,
        qwen_prm,
        value_head,
        two_token,
        chat_two_token,
        llemma_prm,
        ensemble_prm,
        log_ratio,
        masked_tokens,
        prefix_value,
        token_classification,
        stepsight,
    ),
)


def recognise(checkpoint: Checkpoint) -> CheckpointFormat:
    """The format that stepsight.json names, else the one that the config shows.

    Raises `UserError` where there is none of that name, or the config shows none.
    """
    named = checkpoint.card.get("format")
    names = {kind.NAME: kind for kind in FORMATS} | {llada.NAME: cast(CheckpointFormat, stepsight)}
    if named is not None:
        if not isinstance(named, str) or named not in names:
            raise UserError(
                f"{checkpoint.folder}/{CARD}: format {named!r:.40} found.", f"Expected one of: {', '.join(names)}."
            )
        return names[named]
    for kind in FORMATS:
        if kind.recognises(checkpoint):
            return kind
    if "template" in checkpoint.card:
        return names[stepsight.NAME]
    model = checkpoint.config.get("model_type")
    architecture = ", ".join(checkpoint.architectures) or "no architecture"
    raise UserError(
        f"{checkpoint.folder}: neither {CARD} nor a format that StepSight knows (model_type {model!r}, "
        f"{architecture}).",
        f'If it is an evaluator, name its format in {CARD}, such as {{"format": "{math_shepherd.NAME}"}}; the '
        f"formats are: {', '.join(names)}.",
    )


def format_of(checkpoint: Checkpoint, kind: CheckpointFormat) -> str:
    """The name of the format; LLaDA's backbones with a head of ours have their own."""
    return llada.NAME if kind.NAME == stepsight.NAME and llada.recognises(checkpoint.config) else kind.NAME


def checked_object(card: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The object of a key of stepsight.json, empty where it has none. Raises `UserError` where it is no object."""
    value = card.get(key, {})
    if not isinstance(value, dict):
        raise UserError(f"{CARD}: {key} is {type(value).__name__}, expected an object.")
    return value
