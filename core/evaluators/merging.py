"""Merging an adapter with its base model into one evaluator that needs neither of them."""

import os
import shutil
from pathlib import Path

from safetensors import SafetensorError

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.formats.stepsight import NAME
from stepsight.core.models.checkpoint_resolver import evaluator_folder, open_checkpoint
from stepsight.core.models.devices import torch_dtype
from stepsight.core.models.evaluator import ModelEvaluator, save_evaluator


def write_merged(spec: str, output: Path, dtype: str = "float32") -> Path:
    """Merge an adapter with its base model, write the evaluator to the folder `output`, and return its path.

    `dtype` is the type of the written weights. In float32 the merged evaluator gives the same scores as the
    adapter. Raises `UserError` if `spec` is not an adapter trained with StepSight, or if `output` is not empty or
    cannot be written. In these cases no files are left behind.
    """
    folder = evaluator_folder(spec)
    checkpoint = open_checkpoint(folder)
    if checkpoint.weights.base is None:
        raise UserError(f"{spec} is not an adapter, so there is nothing to merge.", "Use it as it is.")
    if checkpoint.card.get("format") != NAME:
        raise UserError(
            f"{spec} was not trained with StepSight; only adapters that were are merged into a folder.",
            "Use it as it is, or merge it with PEFT.",
        )
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output} holds something else.", "Choose another --output, or an empty folder.")
    evaluator = load_evaluator(folder, dtype=dtype)
    assert isinstance(evaluator, ModelEvaluator)
    partial = output.with_name(f"{output.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        model, encoder = evaluator.model, evaluator.encoder
        save_evaluator(partial, model, encoder, evaluator.provenance, evaluator.thresholds, torch_dtype(dtype))
        os.replace(partial, output)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"{output}: cannot be written ({reason}).", "Make room, or choose another --output."
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return output
