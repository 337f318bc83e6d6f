"""Finding and loading an evaluator: a shipped one by name, a folder by its path, one of a model hub by its id."""

import os
from pathlib import Path
from typing import Any, cast

import torch

from stepsight.core.errors import UserError
from stepsight.core.files import asset
from stepsight.core.formats import math_shepherd, qwen_prm, reasoneval, stepsight, token_classification
from stepsight.core.formats.hub import cached, download, is_hub_id
from stepsight.core.formats.layout import CheckpointFormat, Loaded
from stepsight.core.formats.stepsight import HEADS as HEADS
from stepsight.core.formats.stepsight import NAME as OWN
from stepsight.core.models import llada
from stepsight.core.models.backbone import context_of
from stepsight.core.models.backbone import load_backbone as load_backbone
from stepsight.core.models.checkpoint import CARD, Checkpoint
from stepsight.core.models.checkpoint import load_tokenizer as load_tokenizer
from stepsight.core.models.devices import check_placement, dtype_name
from stepsight.core.models.evaluator import Evaluator, fingerprint
from stepsight.core.models.model import StepModel, outputs_of
from stepsight.core.models.placement import Placement, typed_name
from stepsight.core.prompts.encoding import Encoder, PromptTemplate
from stepsight.core.scores import Thresholds

LAYOUTS = cast(tuple[CheckpointFormat, ...], (reasoneval, math_shepherd, qwen_prm, token_classification, stepsight))


def recognise(checkpoint: Checkpoint) -> CheckpointFormat:
    """The layout that stepsight.json names as its `format`, else the one that the config shows.

    Raises `UserError` where there is none of that name, or the config shows none.
    """
    named = checkpoint.card.get("format")
    names = {layout.NAME: layout for layout in LAYOUTS} | {llada.NAME: cast(CheckpointFormat, stepsight)}
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


def format_of(checkpoint: Checkpoint, layout: CheckpointFormat) -> str:
    """What the layout is called; LLaDA's backbones with a head of ours go by their own name."""
    return llada.NAME if layout.NAME == stepsight.NAME and llada.recognises(checkpoint.config) else layout.NAME


def shipped_evaluators() -> list[str]:
    """Names of the evaluators in the assets folder, bidirectional ones first."""
    return sorted(path.parent.name for path in asset("evaluators").glob(f"*/{CARD}"))


def can_load(spec: str | Path) -> bool:
    """Whether there is a folder to load of that name, path or id, on this machine; its content is not looked at."""
    folder = _local(spec) or (cached(str(spec)) if is_hub_id(str(spec)) else None)
    return folder is not None and (folder / "config.json").is_file()


def load_evaluator(
    spec: str | Path,
    device: str = "cpu",
    dtype: torch.dtype | str = "float32",
    device_map: str | dict[str, Any] | None = None,
) -> Evaluator:
    """Load a shipped evaluator by name, a folder in any of the formats of `core.formats`, or one from a model hub.

    `dtype` is the type of the weights in memory, and where it is not float32 part of the name and the fingerprint,
    since the scores are others; `device_map` is Accelerate's, such as "auto" for several GPUs, and wins over
    `device` (see `Placement`). `Evaluator.format` says what was recognised. Raises `UserError` where there is no
    such evaluator or device, its format is not known, or a file, tensor or token is missing, damaged or misshapen.
    """
    name = dtype if isinstance(dtype, str) else dtype_name(dtype)
    place = check_placement(Placement(device, name, device_map))
    checkpoint = Checkpoint.open(evaluator_folder(spec))
    layout = recognise(checkpoint)
    defaults = layout.template(checkpoint)
    try:
        template = PromptTemplate.from_dict({**defaults, **_object(checkpoint.card, "template")})
        thresholds = Thresholds.from_dict(_object(checkpoint.card, "thresholds"))
        provenance = _object(checkpoint.card, "provenance")
        encoder = Encoder(load_tokenizer(checkpoint.folder), template)
    except UserError as error:
        raise error.at(str(checkpoint.folder)) from None
    loaded = layout.load(checkpoint, place)
    if context_of(loaded.backbone) is None:
        raise UserError(f"{checkpoint.folder}/config.json: max_position_embeddings is missing.", "Copy it again.")
    return Evaluator(
        name=typed_name(checkpoint.name, place.dtype),
        model=StepModel(loaded.backbone, loaded.head).eval(),
        encoder=encoder,
        fingerprint=_fingerprint(checkpoint, layout, template, loaded, place.dtype),
        format=format_of(checkpoint, layout),
        thresholds=thresholds,
        provenance=provenance,
        outputs=outputs_of(loaded.rows),
    )


def evaluator_folder(spec: str | Path) -> Path:
    """The folder of a shipped evaluator's name, of a path, or of a hub's id, fetched where it is not there yet.

    Raises `UserError` where there is none.
    """
    folder = _local(spec)
    if folder is not None:
        return folder
    if is_hub_id(str(spec)):
        return download(str(spec))
    names = ", ".join(shipped_evaluators()) or "none"
    raise UserError(
        f"there is no evaluator {str(spec)!r}.", f"Give a folder, a model hub's OWNER/NAME, or one of: {names}."
    )


def _local(spec: str | Path) -> Path | None:
    folder = asset("evaluators", str(spec)) if str(spec) in shipped_evaluators() else Path(spec)
    return folder if os.path.isdir(folder) else None


def _object(card: dict[str, Any], key: str) -> dict[str, Any]:
    value = card.get(key, {})
    if not isinstance(value, dict):
        raise UserError(f"{CARD}: {key} is {type(value).__name__}, expected an object.")
    return value


def _fingerprint(
    checkpoint: Checkpoint, layout: CheckpointFormat, template: PromptTemplate, loaded: Loaded, dtype: str
) -> str:
    attention = str(checkpoint.card.get("attention"))
    # Weights that others wrote can be read in more than one way.
    more: tuple[object, ...] = () if layout.NAME == OWN else (layout.NAME, loaded.rows)
    if dtype != "float32":
        more = (*more, dtype)
    return fingerprint(checkpoint.folder, template.to_dict(), attention, *more)
