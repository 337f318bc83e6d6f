"""Finding and loading an evaluator: a shipped one by name, a folder by its path, one of a model hub by its id."""

import os
from pathlib import Path
from typing import Any

import torch

from core.assets import asset
from core.backbone import context_of
from core.backbone import load_backbone as load_backbone
from core.checkpoint import CARD, Checkpoint
from core.checkpoint import load_tokenizer as load_tokenizer
from core.encoding import Encoder, PromptTemplate
from core.errors import UserError
from core.evaluator import Evaluator, fingerprint
from core.formats.layout import Layout, Loaded
from core.formats.stepsight import HEADS as HEADS
from core.formats.stepsight import NAME as OWN
from core.head import outputs_of
from core.hub import cached, download, is_hub_id
from core.model import StepModel
from core.placement import Placement, dtype_name, typed_name
from core.recognition import format_of, recognise
from core.scores import Thresholds


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
    dtype: torch.dtype = torch.float32,
    device_map: str | dict[str, Any] | None = None,
) -> Evaluator:
    """Load a shipped evaluator by name, a folder in any of the formats of `core.formats`, or one from a model hub.

    `dtype` is the type of the weights in memory, and where it is not float32 part of the name and the fingerprint,
    since the scores are others; `device_map` is Accelerate's, such as "auto" for several GPUs, and wins over
    `device` (see `Placement`). `Evaluator.format` says what was recognised. Raises `UserError` where there is no
    such evaluator or device, its format is not known, or a file, tensor or token is missing, damaged or misshapen.
    """
    place = Placement(device, dtype, device_map).checked()
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
        name=typed_name(checkpoint.name, dtype),
        model=StepModel(loaded.backbone, loaded.head).eval(),
        encoder=encoder,
        fingerprint=_fingerprint(checkpoint, layout, template, loaded, dtype),
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
    checkpoint: Checkpoint, layout: Layout, template: PromptTemplate, loaded: Loaded, dtype: torch.dtype
) -> str:
    attention = str(checkpoint.card.get("attention"))
    # Weights that others wrote can be read in more than one way.
    more: tuple[object, ...] = () if layout.NAME == OWN else (layout.NAME, loaded.rows)
    if dtype != torch.float32:
        more = (*more, dtype_name(dtype))
    return fingerprint(checkpoint.folder, template.to_dict(), attention, *more)
