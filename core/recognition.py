"""Which layout a checkpoint is in."""

from typing import cast

from core.checkpoint import CARD, Checkpoint
from core.errors import UserError
from core.formats import llada, math_shepherd, qwen_prm, reasoneval, stepsight, token_classification
from core.formats.layout import Layout

LAYOUTS = cast(tuple[Layout, ...], (reasoneval, math_shepherd, qwen_prm, token_classification, stepsight))


def recognise(checkpoint: Checkpoint) -> Layout:
    """The layout that stepsight.json names as its `format`, else the one that the config shows.

    Raises `UserError` where there is none of that name, or the config shows none.
    """
    named = checkpoint.card.get("format")
    names = {layout.NAME: layout for layout in LAYOUTS} | {llada.NAME: cast(Layout, stepsight)}
    if named is not None:
        if not isinstance(named, str) or named not in names:
            raise UserError(
                f"{checkpoint.folder}/{CARD}: format {named!r:.40} found.", f"Expected one of: {', '.join(names)}."
            )
        return names[named]
    for layout in LAYOUTS:
        if layout.recognises(checkpoint):
            return layout
    if "template" in checkpoint.card:
        return names[stepsight.NAME]
    kind = checkpoint.config.get("model_type")
    architecture = ", ".join(checkpoint.architectures) or "no architecture"
    raise UserError(
        f"{checkpoint.folder}: neither {CARD} nor a layout that StepSight knows (model_type {kind!r}, "
        f"{architecture}).",
        f'If it is an evaluator, name its format in {CARD}, such as {{"format": "{math_shepherd.NAME}"}}; the '
        f"formats are: {', '.join(names)}.",
    )


def format_of(checkpoint: Checkpoint, layout: Layout) -> str:
    """What the layout is called; LLaDA's backbones with a head of ours go by their own name."""
    return llada.NAME if layout.NAME == stepsight.NAME and llada.recognises(checkpoint.config) else layout.NAME
