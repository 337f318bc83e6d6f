"""Loading an evaluator from a folder, after recognising its checkpoint format."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch

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
from stepsight.core.formats.format import CheckpointFormat, Loaded
from stepsight.core.formats.stepsight import NAME as OWN
from stepsight.core.models import llada
from stepsight.core.models.abstract import Evaluator
from stepsight.core.models.assembly import open_checkpoint
from stepsight.core.models.backbone import context_of
from stepsight.core.models.checkpoint import Checkpoint, load_tokenizer
from stepsight.core.models.devices import check_placement, dtype_name
from stepsight.core.models.dtypes import resolved
from stepsight.core.models.evaluator import ModelEvaluator, fingerprint
from stepsight.core.models.location import CARD, EQUATIONS, TOKENIZER, evaluator_folder
from stepsight.core.models.model import StepModel, outputs_of
from stepsight.core.models.placement import STORED, Placement, typed_name
from stepsight.core.prompts.encoding import Encoder
from stepsight.core.prompts.template import PromptTemplate
from stepsight.core.scores import Thresholds

# Bytes that are read in less than a second.
_SMALL = 100_000_000

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


def load_evaluator(
    spec: str | Path,
    device: str = "cpu",
    dtype: torch.dtype | str | None = None,
    device_map: str | dict[str, Any] | None = None,
) -> Evaluator:
    """Load a shipped evaluator by name, a folder in any of `FORMATS`, or a model from a hub by its id; `equations`
    is the one that has no folder.

    `dtype` is the type of the weights in memory; None is the one in which they are stored where the device computes
    it well, else float32 (see `core.models.dtypes`). Where it is not float32 it is part of the name and of the
    fingerprint, since the scores differ. `device_map` is Accelerate's, such as "auto" for several GPUs, and wins
    over `device` (see `Placement`). `Evaluator.format` is the format recognised. Raises `UserError` where there is
    no such evaluator or device, its format is not known, or a file, tensor or token is missing, damaged or
    misshapen.
    """
    if str(spec) == EQUATIONS:
        # It brings SymPy.
        from stepsight.core.equations.evaluator import EquationsEvaluator

        return EquationsEvaluator()
    name = dtype_name(dtype) if isinstance(dtype, torch.dtype) else dtype or STORED
    place = check_placement(Placement(device, name, device_map))
    folder = evaluator_folder(spec, place)
    place = check_placement(resolved(place, folder))
    checkpoint = open_checkpoint(folder)
    kind = recognise(checkpoint)
    defaults = kind.template(checkpoint)
    try:
        template = PromptTemplate.from_dict({**defaults, **_object(checkpoint.card, "template")})
        thresholds = Thresholds.from_dict(_object(checkpoint.card, "thresholds"))
        provenance = _object(checkpoint.card, "provenance")
        encoder = getattr(kind, "ENCODER", Encoder)(load_tokenizer(checkpoint.folder), template)
    except UserError as error:
        raise error.at(str(checkpoint.folder)) from None
    loaded = kind.load(checkpoint, place)
    if context_of(loaded.backbone) is None:
        raise UserError(f"{checkpoint.folder}/config.json: max_position_embeddings is missing.", "Copy it again.")
    return ModelEvaluator(
        name=typed_name(checkpoint.name, place.dtype),
        model=StepModel(loaded.backbone, loaded.head, loaded.mixture).eval(),
        encoder=encoder,
        identify=_identity(checkpoint, kind, template, loaded, place.dtype),
        format=format_of(checkpoint, kind),
        thresholds=thresholds,
        provenance=provenance,
        outputs=outputs_of(loaded.rows),
    )


def _object(card: dict[str, Any], key: str) -> dict[str, Any]:
    value = card.get(key, {})
    if not isinstance(value, dict):
        raise UserError(f"{CARD}: {key} is {type(value).__name__}, expected an object.")
    return value


def _identity(
    checkpoint: Checkpoint, kind: CheckpointFormat, template: PromptTemplate, loaded: Loaded, dtype: str
) -> Callable[[], str]:
    """What gives the fingerprint of an evaluator that was loaded: of a small one at once, of a large one when it is
    first asked for, and then only of the files that it was loaded from."""
    attention = str(checkpoint.card.get("attention"))
    # Weights that others wrote can be read in more than one way.
    more = loaded.reading if kind.NAME == OWN else (kind.NAME, loaded.rows, *loaded.reading)
    if dtype != "float32":
        more = (*more, dtype)
    folder, before = checkpoint.folder, _state(checkpoint)

    @cache
    def identify() -> str:
        found = fingerprint(folder, template.to_dict(), attention, *more)
        if _state(checkpoint) != before:
            raise UserError(f"{folder} has changed since it was loaded.", "Load it again.")
        return found

    if sum(size for _, size, _ in before) <= _SMALL:
        identify()
    return identify


def _state(checkpoint: Checkpoint) -> list[tuple[int, int, int]]:
    """What tells whether the files of a checkpoint are still the same."""
    files = [checkpoint.folder / TOKENIZER, *sorted(set(checkpoint.files.values()))]
    found = [path.stat() for path in files if path.exists()]
    return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]
